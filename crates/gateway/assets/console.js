// Keeps pages fresh, writes moments in the owner's own time, and copies. Without this file every page still does its work.
"use strict";

(() => {
  const told = document.getElementById("told");
  const tell = (text) => {
    if (told && told.textContent !== text) told.textContent = text;
  };

  // Moments in the time of whoever looks.
  const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
  const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hour12: false });
  const localise = (root) => {
    for (const time of root.querySelectorAll("time[datetime]:not([data-until])")) {
      const at = new Date(time.dateTime);
      if (Number.isNaN(at.getTime())) continue;
      const isToday = at.toDateString() === new Date().toDateString();
      time.textContent = (isToday ? clock : day).format(at);
      time.title = time.dateTime;
    }
  };
  const countDown = () => {
    for (const time of document.querySelectorAll("time[data-until]")) {
      const seconds = Math.max(0, Math.round((new Date(time.dateTime) - Date.now()) / 1000));
      time.textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
      if (seconds === 0 && !time.dataset.over) {
        time.dataset.over = "1";
        setTimeout(refresh, 1000);
      }
    }
  };

  // Copying: every command and address has a button beside it.
  const offerCopies = (root) => {
    for (const code of root.querySelectorAll("code[data-copy]")) {
      if (code.nextElementSibling?.matches("button.copy")) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "button small copy";
      button.textContent = "Copy";
      button.setAttribute("aria-label", `Copy ${code.textContent}`);
      button.addEventListener("click", async () => {
        try {
          await navigator.clipboard.writeText(code.textContent);
          button.textContent = "Copied";
          tell("Copied");
        } catch {
          getSelection().selectAllChildren(code);
          tell("The text is marked; copy it with your keyboard");
        }
        setTimeout(() => {
          button.textContent = "Copy";
        }, 2000);
      });
      code.after(button);
    }
  };

  // A form is sent once.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "post") return;
    if (form.dataset.sent) {
      event.preventDefault();
      return;
    }
    form.dataset.sent = "1";
    const button = event.submitter;
    if (!button) return;
    button.setAttribute("aria-disabled", "true");
    if (button.dataset.busy) {
      button.textContent = button.dataset.busy;
      tell(button.dataset.busy);
    }
  });
  // A page that comes back from the browser's memory can be used again.
  addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-sent]")) {
      delete form.dataset.sent;
      for (const button of form.querySelectorAll("[aria-disabled]")) button.removeAttribute("aria-disabled");
    }
  });

  // What is new: the page is asked for once more, and the parts that live are put in place of the old ones.
  const known = new Map();
  for (const part of document.querySelectorAll("[data-live]")) known.set(part.id, part.innerHTML);
  let isAsking = false;
  let isWanted = false;
  const refresh = async () => {
    if (isAsking) {
      isWanted = true;
      return;
    }
    isAsking = true;
    try {
      const answer = await fetch(location.href, { headers: { "x-haft-live": "1", accept: "text/html" }, credentials: "same-origin" });
      if (answer.status === 401) {
        location.reload();
        return;
      }
      if (answer.ok) put(new DOMParser().parseFromString(await answer.text(), "text/html"));
    } catch {
      // The host is gone; the next event finds it again.
    }
    isAsking = false;
    if (isWanted) {
      isWanted = false;
      refresh();
    }
  };
  const put = (page) => {
    document.title = page.title;
    for (const part of document.querySelectorAll("[data-live]")) {
      const fresh = page.getElementById(part.id);
      if (!fresh || known.get(part.id) === fresh.innerHTML) continue;
      const focused = part.contains(document.activeElement) ? document.activeElement : null;
      // Nobody loses what they are typing.
      if (focused && focused.matches("input, select, textarea")) continue;
      if (part.querySelector("form[data-sent]")) continue;
      known.set(part.id, fresh.innerHTML);
      const open = [...part.querySelectorAll("details[id][open]")].map((one) => one.id);
      part.replaceChildren(...fresh.childNodes);
      for (const id of open) document.getElementById(id)?.setAttribute("open", "");
      localise(part);
      offerCopies(part);
      if (focused) {
        const again = focused.id ? document.getElementById(focused.id) : null;
        (again ?? document.getElementById("main")).focus({ preventScroll: true });
      }
      if (fresh.dataset.say && fresh.dataset.say !== part.dataset.say) {
        part.dataset.say = fresh.dataset.say;
        tell(fresh.dataset.say);
      }
    }
    countDown();
  };
  const address = document.body.dataset.events;
  if (address) {
    const events = new EventSource(address);
    events.addEventListener("message", (event) => {
      // Of a page that shows nothing that lives, the beginning says nothing new.
      if (event.data !== "here" || document.querySelector("main [data-live]")) refresh();
    });
    addEventListener("pagehide", () => events.close());
  }

  // On a phone the menu is wider than the screen.
  const here = document.querySelector("#menu [aria-current]");
  if (here) here.closest("nav").scrollLeft = here.offsetLeft - 60;

  localise(document);
  offerCopies(document);
  countDown();
  setInterval(countDown, 1000);
})();

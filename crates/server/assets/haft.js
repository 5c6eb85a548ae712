// Search as you type, and copying. Without this file every page still does its work.
"use strict";

(() => {
  const told = document.getElementById("told");
  const tell = (text) => {
    if (told) told.textContent = text;
  };

  // Copying.
  for (const button of document.querySelectorAll("button.copy")) {
    const code = button.parentElement.querySelector("code");
    const label = button.firstChild;
    button.hidden = false;
    button.addEventListener("click", async () => {
      let done = false;
      try {
        await navigator.clipboard.writeText(code.textContent);
        done = true;
      } catch {
        // Over plain HTTP there is no clipboard for scripts; then the text is at least marked.
        const selection = getSelection();
        selection.selectAllChildren(code);
        done = document.execCommand("copy");
      }
      label.textContent = done ? "Copied" : "Marked";
      tell(done ? "Copied" : "The text is marked; copy it with your keyboard");
      setTimeout(() => {
        label.textContent = "Copy";
      }, 2000);
    });
  }

  // Search as you type.
  const field = document.querySelector("input[data-suggest]");
  if (!field) return;
  const form = field.form;
  const list = document.createElement("div");
  list.id = "suggestions";
  list.className = "suggestions";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Tools");
  list.hidden = true;
  form.append(list);
  for (const [name, value] of [
    ["role", "combobox"],
    ["aria-autocomplete", "list"],
    ["aria-expanded", "false"],
    ["aria-controls", list.id],
  ]) {
    field.setAttribute(name, value);
  }

  const WAIT = 120;
  let timer = 0;
  let asking = null;
  let chosen = -1;
  const options = () => [...list.querySelectorAll("[role=option]")];

  const close = () => {
    clearTimeout(timer);
    if (asking) asking.abort();
    asking = null;
    chosen = -1;
    list.hidden = true;
    field.setAttribute("aria-expanded", "false");
    field.removeAttribute("aria-activedescendant");
  };

  const choose = (at) => {
    const all = options();
    all.forEach((option, index) => option.setAttribute("aria-selected", String(index === at)));
    chosen = at;
    if (at < 0) {
      field.removeAttribute("aria-activedescendant");
    } else {
      field.setAttribute("aria-activedescendant", all[at].id);
      all[at].scrollIntoView({ block: "nearest" });
    }
  };

  const suggest = async () => {
    const words = field.value.trim();
    if (words === "") {
      close();
      return;
    }
    if (asking) asking.abort();
    const mine = new AbortController();
    asking = mine;
    try {
      const answer = await fetch(`${field.dataset.suggest}?q=${encodeURIComponent(words)}`, {
        signal: mine.signal,
        headers: { accept: "text/html" },
      });
      if (!answer.ok) throw new Error(String(answer.status));
      const text = await answer.text();
      if (asking !== mine) return;
      list.innerHTML = text;
      const all = options();
      all.forEach((option, index) => {
        option.id = `suggestion-${index}`;
      });
      choose(-1);
      const tools = list.querySelectorAll("[role=option]:not(.all)").length;
      list.hidden = tools === 0;
      field.setAttribute("aria-expanded", String(tools > 0));
      tell(tools === 0 ? "No tool is like that" : `${tools} ${tools === 1 ? "tool" : "tools"}; choose with the arrow keys`);
    } catch (error) {
      if (error.name !== "AbortError") close();
    }
  };

  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(suggest, WAIT);
  });

  field.addEventListener("keydown", (event) => {
    const all = options();
    if (list.hidden || all.length === 0) {
      if (event.key === "ArrowDown" && field.value.trim() !== "") {
        event.preventDefault();
        suggest();
      }
      return;
    }
    const last = all.length - 1;
    switch (event.key) {
      case "ArrowDown":
        choose(chosen >= last ? 0 : chosen + 1);
        break;
      case "ArrowUp":
        choose(chosen <= 0 ? last : chosen - 1);
        break;
      case "Escape":
        close();
        break;
      case "Enter":
        if (chosen < 0) {
          close();
          return;
        }
        all[chosen].click();
        break;
      default:
        return;
    }
    event.preventDefault();
  });

  form.addEventListener("submit", close);
  // Whoever goes elsewhere, by mouse or by keyboard, has done with suggestions.
  form.addEventListener("focusout", (event) => {
    if (!form.contains(event.relatedTarget)) close();
  });
  // A click on a suggestion must not take the focus away before it arrives.
  list.addEventListener("mousedown", (event) => event.preventDefault());
})();

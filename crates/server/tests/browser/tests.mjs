// What people do with the pages.
import assert from "node:assert/strict";
import { text, texts } from "./world.mjs";

const PAGES = [
  "/",
  "/search",
  "/search?q=read+a+pdf",
  "/search?q=words&tag=text&page=2",
  "/search?q=zzzzqqqq",
  "/namespaces/many",
  "/namespaces/acme",
  "/tools/acme.pdf.read",
  "/tools/acme.pdf.read/versions/1.0.0",
  "/tools/post.mail",
  "/tools/demo.text.report",
  "/tools/text-find",
  "/tools/dice-local",
  "/tools/gone.tool",
  "/tools/evil.tool",
  "/nothing/here",
];

const clickAndWait = (page, selector) => Promise.all([page.waitForNavigation(), page.click(selector)]);
const pressAndWait = (page, key) => Promise.all([page.waitForNavigation(), page.keyboard.press(key)]);
const focused = (page) => page.evaluate(() => document.activeElement.innerText || document.activeElement.name || document.activeElement.tagName);

// Presses Tab until something with this text has the focus.
const tabTo = async (page, wanted) => {
  for (let presses = 0; presses < 60; presses += 1) {
    await page.keyboard.press("Tab");
    if ((await focused(page)).includes(wanted)) return;
  }
  assert.fail(`no Tab reaches ${wanted}`);
};

export const tests = {
  async "anybody can use every page, in light and dark, wide and narrow"(world) {
    for (const [scheme, width] of [["light", 1280], ["dark", 1280], ["light", 360], ["dark", 360]]) {
      const page = await world.open(PAGES[0], { scheme, width });
      for (const path of PAGES) {
        await world.go(page, path);
        await world.shoot(page, path);
        // What is folded away is a part of the page too.
        await page.$$eval("details", (all) => all.forEach((one) => { one.removeAttribute("name"); one.open = true; }));
        await world.checkAccess(page);
        await world.checkWidth(page);
        await world.checkPolicy(page);
      }
      await page.close();
    }
  },

  async "those who check find what is wrong"(world) {
    const page = await world.open("/");
    await page.evaluate(() => {
      document.querySelector("main").insertAdjacentHTML("beforeend", "<input><p>faint</p>");
      document.querySelector("main p:last-child").style.color = "#ddd";
      document.body.append(Object.assign(document.createElement("div"), { className: "far" }));
      document.querySelector(".far").style.width = "3000px";
      document.querySelector(".far").style.height = "1px";
    });
    await assert.rejects(() => world.checkAccess(page), /label/);
    await assert.rejects(() => world.checkAccess(page), /color-contrast/);
    await assert.rejects(() => world.checkWidth(page), /wide/);
    // What axe cannot decide is looked at by somebody, or mended.
    const undecided = await world.open("/");
    await undecided.$eval(".hero", (hero) => { hero.style.backgroundImage = "linear-gradient(white, black)"; });
    await assert.rejects(() => world.checkAccess(undecided), /color-contrast.*gradient/);
    await page.evaluate(() => document.body.append(Object.assign(document.createElement("script"), { textContent: "window.owned = 1" })));
    await assert.rejects(() => world.checkPolicy(page), /policy/);
    assert.equal(await page.evaluate(() => window.owned), undefined, "the policy holds");
    assert.ok(world.complaints.length > 0, "the console tells of it");
    world.complaints.length = 0;
  },

  async "a search is typed, suggested, refined, opened and paged"(world) {
    const page = await world.open("/");
    await page.type("#q", "read pd");
    await page.waitForSelector("#suggestions:not([hidden]) .option");
    assert.ok((await texts(page, ".option .id")).includes("acme.pdf.read"));
    assert.match(await page.$eval("#told", (told) => told.textContent), /^\d+ tools?; choose with the arrow keys$/);
    await world.checkAccess(page);
    await page.keyboard.press("Escape");
    assert.equal(await page.$eval("#suggestions", (list) => list.hidden), true);
    await pressAndWait(page, "Enter");
    assert.match(page.url(), /\/search\?q=read\+pd$/);
    await world.go(page, "/search?q=one+of+many");
    const all = await text(page, ".row.head p");
    const value = await page.$$eval(".values a", (links) => links.find((link) => link.innerText.startsWith("numbers")).getAttribute("href"));
    await clickAndWait(page, `.values a[href="${value}"]`);
    assert.notEqual(await text(page, ".row.head p"), all);
    assert.match(page.url(), /q=one%20of%20many&tag=numbers/);
    assert.equal((await texts(page, ".chip.chosen")).length, 1);
    await clickAndWait(page, ".chip.chosen");
    assert.equal(await text(page, ".row.head p"), all);
    await clickAndWait(page, "a[rel=next]");
    assert.match(await text(page, ".paging"), /Page 2 of 3/);
    assert.match(page.url(), /q=one%20of%20many&page=2/);
    await clickAndWait(page, "a[rel=prev]");
    await clickAndWait(page, ".item h3 a");
    assert.match(page.url(), /\/tools\/many\.tool/);
    await world.checkPolicy(page);
  },

  async "suggestions of an earlier word never come after those of a later one"(world) {
    const page = await world.open("/");
    let asked = 0;
    await page.setRequestInterception(true);
    page.on("request", (request) => {
      if (!request.url().includes("/suggest")) return request.continue();
      asked += 1;
      // The first answer is slow.
      return setTimeout(() => request.continue().catch(() => {}), asked === 1 ? 800 : 0);
    });
    await page.type("#q", "mail");
    await new Promise((resolve) => setTimeout(resolve, 200));
    await page.$eval("#q", (field) => { field.value = ""; });
    await page.type("#q", "pdf", { delay: 10 });
    await page.waitForSelector("#suggestions:not([hidden]) .option");
    await new Promise((resolve) => setTimeout(resolve, 1000));
    assert.equal((await texts(page, ".option .id"))[0], "acme.pdf.read");
    assert.equal(asked, 2, "letters typed quickly are asked for once");
  },

  async "a tool is read, its versions are opened, a command is copied"(world) {
    const page = await world.open("/tools/acme.pdf.read");
    assert.equal(await text(page, "h1"), "Read PDFs locally");
    const command = await text(page, ".ways details[open] code");
    assert.match(command, /^haft registry get acme\.pdf\.read@1\.2\.0 -o acme\.pdf\.read-1\.2\.0\.mcpkg \\\n  --registry http:\/\/127\.0\.0\.1:\d+\n/);
    await page.click(".ways details[open] .copy");
    await page.waitForFunction(() => document.querySelector(".ways details[open] .copy").innerText.startsWith("Copied"));
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), command);
    assert.equal(await page.$eval("#told", (told) => told.textContent), "Copied");
    // One client at a time.
    const ways = await page.$$(".ways summary");
    assert.equal(ways.length, 6);
    await ways[5].click();
    assert.equal((await page.$$(".ways details[open]")).length, 1);
    assert.match(await text(page, ".ways details[open] code"), /sha256sum --check/);
    const schema = await page.$$eval(".schema tbody th", (all) => all.map((cell) => cell.innerText));
    assert.ok(schema.some((cell) => cell.startsWith("path") && cell.includes("required")), String(schema));
    await clickAndWait(page, 'a[href="/tools/acme.pdf.read/versions/1.0.0"]').catch(async () => {
      // It is among the earlier ones, behind a click.
      await page.click(".rest summary");
      await clickAndWait(page, 'a[href="/tools/acme.pdf.read/versions/1.0.0"]');
    });
    assert.match(await text(page, ".banner"), /1\.0\.0 was yanked\.\s+leaks temporary files/);
    assert.equal((await page.$$(".ways details[open]")).length, 0, "what was taken back is not put forward");
    await clickAndWait(page, ".banner a");
    assert.match(page.url(), /\/tools\/acme\.pdf\.read$/);
    await world.checkPolicy(page);
  },

  async "everything is done by keyboard"(world) {
    const page = await world.open("/");
    await page.keyboard.press("Tab");
    assert.equal(await focused(page), "Skip to the content");
    assert.ok(await page.$eval(".skip", (skip) => skip.getBoundingClientRect().top >= 0), "the link is seen");
    await page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
    assert.equal(await focused(page), "q", "past the frame");
    await page.keyboard.type("read pdf");
    await page.waitForSelector("#suggestions:not([hidden]) .option");
    await page.keyboard.press("ArrowDown");
    const active = await page.$eval("#q", (field) => document.getElementById(field.getAttribute("aria-activedescendant")).innerText);
    assert.match(active, /acme\.pdf\.read/);
    await pressAndWait(page, "Enter");
    assert.match(page.url(), /\/tools\/acme\.pdf\.read$/);
    await tabTo(page, "Copy");
    const ring = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
    assert.equal(ring, "solid", "the focus is seen");
    await page.keyboard.press("Space");
    await page.waitForFunction(() => document.activeElement.innerText.startsWith("Copied"));
    await tabTo(page, "Claude Code");
    await page.keyboard.press("Enter");
    assert.match(await text(page, ".ways details[open]"), /no MCP server/);
    await tabTo(page, "1.1.1");
    await pressAndWait(page, "Enter");
    assert.match(page.url(), /versions\/1\.1\.1$/);
    await world.go(page, "/search?q=one+of+many");
    await tabTo(page, "numbers");
    await pressAndWait(page, "Enter");
    assert.match(page.url(), /tag=numbers/);
  },

  async "nothing needs JavaScript"(world) {
    const page = await world.open("/", { script: false });
    await page.type("#q", "read pdf");
    await pressAndWait(page, "Enter");
    assert.match(page.url(), /\/search\?q=read\+pdf$/);
    await world.go(page, "/search?q=one+of+many&tag=numbers");
    await page.click("#q", { clickCount: 3 });
    await page.type("#q", "count words");
    await pressAndWait(page, "Enter");
    assert.match(page.url(), /q=count\+words&tag=numbers/, "filters stay when words change");
    await world.go(page, "/search?q=one+of+many");
    await clickAndWait(page, "a[rel=next]");
    assert.match(page.url(), /page=2/);
    await world.go(page, "/tools/acme.pdf.read");
    await page.click(".raw summary");
    await page.waitForSelector(".raw[open] pre");
    const summaries = await page.$$(".ways summary");
    await summaries[5].click();
    await page.waitForSelector(".ways details:last-of-type[open] code");
    assert.equal(await page.$eval(".copy", (button) => button.offsetParent), null, "no button that does nothing");
  },

  async "a narrow page has its filters behind a click and a wide one has not"(world) {
    const narrow = await world.open("/search", { width: 360 });
    const seen = (page) => page.$eval(".filters .values", (list) => list.checkVisibility({ contentVisibilityAuto: true }));
    assert.equal(await seen(narrow), false);
    await narrow.click(".fold > summary");
    assert.equal(await seen(narrow), true);
    await world.checkWidth(narrow);
    const wide = await world.open("/search");
    assert.equal(await seen(wide), true);
  },

  async "a hostile package is shown and does nothing"(world) {
    const page = await world.open("/tools/evil.tool");
    for (const path of ["/", "/search?q=window.owned", "/namespaces/evil", "/tools/evil.tool"]) {
      await world.go(page, path);
      await page.$$eval("details", (all) => all.forEach((one) => { one.removeAttribute("name"); one.open = true; }));
      assert.equal(await page.evaluate(() => document.querySelectorAll("script").length), 1);
      assert.equal(await page.evaluate(() => document.querySelectorAll("main img, iframe, object, embed, style, base, meta[http-equiv]").length), 0);
      const links = await page.$$eval("a[href]", (all) => all.map((link) => link.protocol));
      assert.ok(links.every((protocol) => ["http:", "https:", "mailto:"].includes(protocol)), String(links));
      const handlers = await page.$$eval("main *", (all) => all.flatMap((one) => one.getAttributeNames()).filter((name) => name.startsWith("on") || name === "style"));
      assert.deepEqual(handlers, []);
      await world.checkWidth(page);
      await world.checkPolicy(page);
    }
    const shown = await page.evaluate(() => document.body.innerText);
    assert.ok(shown.includes("<script>window.owned=1</script>"), "it is shown as it was written");
    assert.ok(shown.includes("[U+202E]") && !/[\u202a-\u202e\u2066-\u2069]/.test(shown), "nothing turns letters around");
    assert.ok(shown.includes("{{ 7 * 7 }}"));
    const outside = await page.$$eval('a[href^="http"]', (all) => all.filter((link) => link.origin !== location.origin).map((link) => link.rel));
    assert.ok(outside.length > 0 && outside.every((rel) => rel.includes("nofollow") && rel.includes("noopener")), String(outside));
    await page.type("#q", "window.owned");
    await page.waitForSelector("#suggestions:not([hidden]) .option");
    await world.checkPolicy(page);
  },

  async "a private registry is read by whoever shows a token as a password"(world) {
    const wrong = await world.open("/search", { password: "haft_wrong" });
    assert.equal(await text(wrong, "h1"), "Sign in with a token");
    assert.match(await text(wrong, "main"), /The token is not good\.[^]*Password\s+a token that is good for reading/);
    await world.shoot(wrong, "sign in");
    await world.checkAccess(wrong);
    await world.checkPolicy(wrong);
    // A page beneath the first one is where the password is asked for first.
    const page = await world.open("/tools/acme.pdf.read", { password: world.privately.token });
    assert.equal(await text(page, "h1"), "Read PDFs locally");
    await page.type("#q", "count wo");
    await page.waitForSelector("#suggestions:not([hidden]) .option");
    await page.keyboard.press("Escape");
    await pressAndWait(page, "Enter");
    assert.match(page.url(), /\/search\?q=count\+wo$/);
    assert.ok((await texts(page, ".item h3")).length > 10);
    await world.checkPolicy(page);
  },

  async "a publisher is read: its tools page by page, its keys"(world) {
    const page = await world.open("/tools/acme.pdf.read");
    const key = await text(page, "#provenance ~ .card code");
    await clickAndWait(page, 'dd a[href="/namespaces/acme"]');
    assert.equal(await text(page, "h1"), "acme");
    assert.deepEqual(await texts(page, "#keys ~ .card code"), [key]);
    assert.match(await text(page, "main"), /last published \d+ \w+ 20\d\d/);
    await world.go(page, "/namespaces/many");
    await clickAndWait(page, "a[rel=next]");
    assert.match(page.url(), /\/namespaces\/many\?page=2$/);
    assert.match(await text(page, ".paging"), /Page 2 of 3/);
    assert.ok((await texts(page, ".item h3")).every((id) => id.startsWith("many.tool")));
  },

  async "what is reported of tests is told as a claim"(world) {
    const page = await world.open("/tools/acme.pdf.read");
    const told = await text(page, "#tests ~ .card");
    assert.match(told, /^All 2 passed as reported by its publisher/);
    assert.match(told, /one_page 2 checks passed in 21 ms/);
    assert.match(told, /haft 0\.1\.0 inside walls of level L3[^]*has not tried it/);
    await world.go(page, "/tools/acme.pdf.read/versions/1.1.1");
    assert.match(await text(page, "#tests ~ .card"), /Nobody has reported how they went/);
  },

  async "pages stay where they are while they load"(world) {
    const page = await world.open("/");
    for (const path of ["/", "/search", "/tools/acme.pdf.read"]) {
      await page.evaluateOnNewDocument(() => {
        window.shifted = 0;
        new PerformanceObserver((list) => {
          for (const entry of list.getEntries()) window.shifted += entry.value;
        }).observe({ type: "layout-shift", buffered: true });
      });
      await world.go(page, path);
      assert.ok((await page.evaluate(() => window.shifted)) < 0.01, `${path} shifts`);
    }
  },
};

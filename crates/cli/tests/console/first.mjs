// A newcomer who has typed `haft up`: they sign in, and the first page explains itself.
import assert from "node:assert/strict";

import { DESK, PHONE, check, enter, go, take, text } from "./driver.mjs";

// What is seen without scrolling.
const seen = (page) => page.$$eval("main h1, main h2, main p, main li, main code", (all) => all
  .filter((one) => { const { top, bottom, height } = one.getBoundingClientRect(); return height > 0 && top >= 0 && bottom <= innerHeight; })
  .map((one) => one.innerText).join("\n"));

await take({
  async "the address that was printed signs in"(page) {
    await page.goto(process.env.CONSOLE, { waitUntil: "load" });
    await enter(page, "main button[type=submit]");
    assert.equal(new URL(page.url()).pathname, "/");
  },
  async "the first page explains itself, without scrolling, also on a phone"(page) {
    for (const size of [DESK, PHONE]) {
      await page.setViewport(size);
      await go(page, "/");
      const words = await seen(page);
      for (const expected of ["Nothing needs you", "What this is"]) assert.ok(words.includes(expected), `${expected} in ${words}`);
    }
    await page.setViewport(DESK);
    assert.match(await text(page), /3 tools installed/);
    assert.match(await text(page), /haft connect CLIENT/);
    await check(page, "first");
  },
  async "every page leads on, and none is broken before anything was called"(page) {
    const links = await page.$$eval("nav a", (all) => all.map((one) => new URL(one.href).pathname));
    assert.ok(links.length >= 7, links.join(" "));
    for (const path of new Set(links)) {
      assert.equal((await go(page, path)).status(), 200, path);
      await check(page, `first${path.replaceAll("/", "-")}`);
    }
  },
});

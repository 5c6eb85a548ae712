// The owner in their console: from the sign-in to the end of everything. MCP is where agents ask, with TOKEN; HAFT is the program, and
// HAFT_HOME its home; WORD is the file that its server `moody` describes its tool by.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";

import { DESK, PHONE, check, enter, go, open, press, tabTo, take, text } from "./driver.mjs";

const has = (page, words) => page.waitForFunction((words) => document.querySelector("main").innerText.includes(words), { timeout: 20000 }, words);

// One call of an agent, as clients of the stateful revision make it.
let session;
async function ask(method, params) {
  const headers = { authorization: `Bearer ${process.env.TOKEN}`, "content-type": "application/json", accept: "application/json, text/event-stream" };
  if (session) headers["mcp-session-id"] = session;
  const answer = await fetch(process.env.MCP, { method: "POST", headers, body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }) });
  session ??= answer.headers.get("mcp-session-id");
  const body = await answer.text();
  const data = body.startsWith("{") ? body : body.split("\n").filter((line) => line.startsWith("data: {")).pop().slice(6);
  return JSON.parse(data);
}
async function call(name, input) {
  if (!session) {
    await ask("initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "agent", version: "1" } });
  }
  return (await ask("tools/call", { name, arguments: input })).result;
}

// Types into what has the focus once the keyboard has reached it.
async function typeInto(page, selector, words) {
  await tabTo(page, selector);
  await page.keyboard.type(words);
}

// Goes down a list with the keyboard alone until something is chosen.
async function choose(page, selector, value) {
  await tabTo(page, selector);
  for (let at = 0; at < 20; at += 1) {
    if ((await page.$eval(selector, (one) => one.value)) === value) return;
    await page.keyboard.press("ArrowDown");
  }
  assert.fail(`${value} is not chosen in ${selector}`);
}

// What the program says, as programs are told.
const said = (...words) => JSON.parse(spawnSync(process.env.HAFT, [...words, "--json"], { encoding: "utf8" }).stdout);

// How many such shapes are seen.
const drawn = (page, selector) => page.$$eval(selector, (all) => all.filter((one) => {
  const { width, height } = one.getBoundingClientRect();
  return width > 0 || height > 0;
}).length);

const SHREDDER = "/tools/mcpkg%3Ademo.shredder";
const steps = {
  async "an address signs in once, by a button"(page) {
    await page.goto(process.env.CONSOLE, { waitUntil: "load" });
    await check(page, "sign-in");
    await enter(page, "button[type=submit]");
    assert.equal(new URL(page.url()).pathname, "/");
    const [cookie] = await page.cookies();
    assert.deepEqual([cookie.httpOnly, cookie.sameSite, cookie.session], [true, "Strict", true]);
    const other = await open();
    await other.goto(process.env.CONSOLE, { waitUntil: "load" });
    assert.match(await text(other), /does not count any more/);
    await go(other, "/tools");
    assert.match(await text(other), /haft console/);
    await check(other, "signed-out");
    await other.close();
  },
  async "the first page says what there is"(page) {
    assert.match(await text(page), /Nothing waits for you; 1 thing worth a look/);
    assert.match(await text(page), /4 tools installed/);
    const looks = await text(page, "#looks");
    assert.match(looks, /got worse[^]*demo\.text\.clean is slower: a call typically takes/);
    assert.equal(await drawn(page, "#looks .spark path"), 1);
    await check(page, "today");
  },
  async "a tool is found in a registry, its card read, and installed by consent, with the keyboard alone"(page) {
    await go(page, "/install");
    await check(page, "install");
    await typeInto(page, "#q", "shred a note");
    await enter(page, "form[role=search] button");
    await check(page, "found");
    await enter(page, "article h3 a[href*='demo.shredder']");
    const card = await text(page);
    for (const words of ["Shredder <img src=x onerror=alert(1)>", "[U+202E]", "python3 ./shred.py", "cannot be undone", "trust: community"]) {
      assert.ok(card.includes(words), `${words} in ${card}`);
    }
    await check(page, "card");
    await enter(page, "form.consent button[type=submit]");
    assert.match(await text(page), /demo\.shredder 1\.0\.0 is installed/);
    assert.equal(decodeURIComponent(new URL(page.url()).pathname), "/tools/mcpkg:demo.shredder");
    // What is not what was shown is not installed.
    await go(page, "/install/card?what=demo.echo@0.1.0");
    await page.$eval("input[name=card]", (one) => { one.value = `sha256:${"0".repeat(64)}`; });
    await press(page, "form.consent button[type=submit]");
    assert.match(await text(page), /not the one that was accepted/);
    await press(page, "form.consent button[type=submit]");
    assert.match(await text(page), /demo\.echo 0\.1\.0 is installed/);
  },
  async "a call is seen as it happens"(page) {
    // Its author does not say what it changes, so the first call of an agent waits.
    assert.ok((await call("demo_echo", { message: "hello" })).isError);
    await go(page, "/approvals");
    await press(page, "button[value=once]");
    await go(page, "/calls");
    const result = await call("demo_echo", { message: "hello" });
    assert.ok(!result.isError, JSON.stringify(result));
    // Nobody loads the page anew.
    await page.waitForFunction(() => /demo\.echo[^]*ok/.test(document.querySelector("#entries tbody tr")?.innerText), { timeout: 20000 });
    await check(page, "calls");
  },
  async "a call that waits is allowed with the keyboard alone"(page) {
    await go(page, "/");
    const asked = await call("demo_shredder", { name: "letter" });
    assert.ok(asked.isError && asked.content[0].text.includes("waits for the owner"), JSON.stringify(asked));
    await has(page, "One call waits for you");
    assert.match(await page.title(), /One call waits/);
    assert.match(await text(page, "#waiting"), /letter/);
    await check(page, "waiting");
    await enter(page, "button[value=once]");
    assert.match(await text(page), /may be called this once/);
    const made = await call("demo_shredder", { name: "letter" });
    assert.ok(!made.isError && JSON.stringify(made).includes("letter"), JSON.stringify(made));
    const again = await call("demo_shredder", { name: "letter" });
    assert.ok(again.isError, "a yes counted twice");
  },
  async "a call that waits is denied, on a phone"(page) {
    await page.setViewport(PHONE);
    await go(page, "/approvals");
    await has(page, "One call waits for you");
    await press(page, "button[value=deny]");
    assert.match(await text(page), /is not called/);
    const refused = await call("demo_shredder", { name: "letter" });
    assert.ok(refused.isError && /said no/.test(refused.content[0].text), JSON.stringify(refused));
    await page.setViewport(DESK);
  },
  async "an answer can be for longer, and be taken back"(page) {
    await call("demo_shredder", { name: "draft" });
    await go(page, "/approvals");
    await page.click(".longer summary");
    await press(page, "button[value=always]");
    assert.match(await text(page), /exactly these arguments/);
    for (let at = 0; at < 2; at += 1) assert.ok(!(await call("demo_shredder", { name: "draft" })).isError);
    await check(page, "approvals");
    await Promise.all([page.waitForNavigation({ waitUntil: "load" }), page.evaluate(() => [...document.querySelectorAll("tbody tr")].find((one) => one.innerText.includes("draft")).querySelector("button").click())]);
    assert.ok((await call("demo_shredder", { name: "draft" })).isError);
  },
  async "a call that waits is denied with the keyboard alone"(page) {
    await go(page, "/approvals");
    await has(page, "One call waits for you");
    await enter(page, "button[value=deny]");
    assert.match(await text(page), /is not called/);
    const refused = await call("demo_shredder", { name: "draft" });
    assert.ok(refused.isError && /said no/.test(refused.content[0].text), JSON.stringify(refused));
  },
  async "what a server offers anew is called once its owner has looked at it"(page) {
    assert.ok((await call("moody_act", {})).isError);
    await go(page, "/approvals");
    await press(page, "button[value=once]");
    assert.ok(!(await call("moody_act", {})).isError);
    writeFileSync(process.env.WORD, "Sends it <b>all</b>.");
    await call("moody_act", {});
    const refused = await call("moody_act", {});
    assert.ok(refused.isError && /other tools than its owner approved: `act` changed/.test(refused.content[0].text), JSON.stringify(refused));
    assert.ok(!JSON.stringify(refused).includes("Sends it"), JSON.stringify(refused));
    await go(page, "/calls");
    assert.match(await text(page, "#entries"), /its server offers other tools than you approved: `act` changed/);
    await go(page, "/");
    await has(page, "offers something else");
    await check(page, "other-tools");
    await enter(page, "#looks a[href$='/surface']");
    assert.match(await text(page), /was "first" and is "Sends it <b>all<\/b>\."/);
    await check(page, "surface");
    await enter(page, "form.stacked button");
    assert.match(await text(page), /is approved, and agents are told of it/);
    let made;
    for (let at = 0; at < 20 && (made?.isError ?? true); at += 1) {
      await new Promise((after) => setTimeout(after, 250));
      made = await call("moody_act", {});
    }
    assert.ok(!made.isError, JSON.stringify(made));
    await go(page, "/");
    assert.ok(!(await text(page)).includes("offers something else"));
  },
  async "a tool that an agent asks for is a wish and nothing more"(page) {
    await ask("tools/call", { name: "request_tool", arguments: { tool: "demo.units", why: "to convert <b>miles</b>" } });
    await go(page, "/");
    await has(page, "An agent asks for a tool");
    await go(page, "/approvals");
    assert.match(await text(page, "#wishes"), /demo\.units[^]*<b>miles<\/b>/);
    await check(page, "wishes");
    await press(page, "#wishes button");
    assert.match(await text(page), /not asked for any more/);
  },
  async "the audit is filtered and looked at with the keyboard alone, and its chain is whole"(page) {
    await go(page, "/calls");
    await choose(page, "#package", "mcpkg:demo.shredder");
    await choose(page, "#outcome", "trouble");
    await enter(page, ".filters button");
    const shown = await text(page, "#entries");
    assert.ok(shown.includes("demo.shredder") && !shown.includes("demo.echo"), shown);
    await tabTo(page, "#entries details summary");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#entries details[open]");
    assert.match(await text(page, "#entries details[open]"), /Decision/);
    await enter(page, ".row.head button");
    assert.match(await text(page), /The log is whole/);
    await check(page, "verified");
  },
  async "what was measured of a tool is drawn and said, and so are its rank and what got worse"(page) {
    await go(page, "/tools/mcpkg%3Ademo.text.clean");
    assert.match(await text(page, "section[aria-labelledby=measured]"), /Got worse\. [^]*demo\.text\.clean is slower: a call typically takes/);
    const [latency, calls] = await page.$$("#measures figure");
    for (const shape of [".p50", ".p95"]) assert.ok((await drawn(latency, `.plot ${shape}`)) > 0, shape);
    assert.match(await latency.evaluate((one) => one.innerText), /How long calls took[^]*Half of the calls took [^]*95 of 100 /);
    for (const shape of [".well", ".failed"]) assert.ok((await drawn(calls, `.plot ${shape}`)) > 0, shape);
    assert.match(await calls.evaluate((one) => one.innerText), /3\d\d calls, 3 of them failed \(99\.\d % went well\)/);
    await page.click("#numbers summary");
    assert.ok((await drawn(latency, ".plot polyline.p50")) > 0, "hours beside each other are one line");
    assert.match(await text(page, "#numbers tbody"), /\s12\d\s+1\s/);
    const rank = await page.$$eval("section[aria-labelledby=rank] tbody tr", (all) => all.map((one) => one.innerText.replaceAll(/\s+/g, " ")));
    const terms = said("rank", "text", "--installed").tools.find((one) => one.id === "mcpkg:demo.text.clean").terms;
    assert.deepEqual(rank.map((line) => line.split(/ |(?=not known)/)[0]), terms.map((one) => one.dimension));
    terms.forEach((one, at) => assert.ok(rank[at].includes(one.because ?? "not known") && rank[at].includes(one.weight.toFixed(2)), rank[at]));
    assert.match(await text(page, "section[aria-labelledby=rank]"), /Score 0\.\d{3}: \d of 3 among the installed tools for text\./);
    assert.match(await text(page, "#by-version"), /1\.0\.0 demo\.text\.clean\s+3\d\d\s/);
    await check(page, "measured");
  },
  async "a chain is drawn, and told in words"(page) {
    await go(page, "/tools/mcpkg%3Ademo.text.report");
    const words = await page.$$eval("section[aria-labelledby=graph] figcaption li", (all) => all.map((one) => one.innerText));
    assert.deepEqual(words, ["clean: demo.text.clean, at once", "measure: demo.text.stats, after clean"]);
    assert.deepEqual([await drawn(page, ".graph .step"), await drawn(page, ".graph .flow"), await drawn(page, ".graph .missing")], [2, 1, 0]);
    await check(page, "chain");
  },
  async "the machine is told as the doctor tells it"(page) {
    const changed = `${process.env.HAFT_HOME}/tools/demo.text.stats/stats.mjs`;
    const before = readFileSync(changed);
    writeFileSync(changed, "// Somebody was here.\n");
    await go(page, "/machine");
    const { sandbox, runtimes, home } = said("doctor");
    writeFileSync(changed, before);
    assert.match(await text(page, "h1"), new RegExp(`^Walls ${sandbox.level}$`));
    assert.equal(await text(page, ".level"), `walls ${sandbox.level}`);
    assert.match(await text(page), /Your policy wants L2 or better: that is so\./);
    const walls = await page.$$eval("section[aria-labelledby=walls] tbody tr", (all) => all.map((one) => [one.cells[0].innerText, one.cells[1].innerText]));
    assert.deepEqual(walls, Object.entries(sandbox.primitives).map(([name, one]) => [name.replaceAll("_", " "), one.works ? "works" : "missing"]));
    const lines = (selector) => page.$$eval(selector, (all) => all.map((one) => one.innerText));
    assert.deepEqual(await lines(".note.undone li"), sandbox.remedies);
    assert.deepEqual(await lines("section[aria-labelledby=walls] .card li"), home.faults);
    assert.match(home.faults.join(), /demo\.text\.stats. was changed/);
    const { python3 } = runtimes;
    assert.ok((await text(page, "section[aria-labelledby=runtimes]")).includes(`${python3.version} at ${python3.path}`));
    await check(page, "machine");
  },
  async "every other page can be used by anybody"(page) {
    for (const [name, path] of [["tools", "/tools"], ["tool", SHREDDER], ["secrets", "/secrets"], ["policy", "/policy"], ["missing", "/nothing-here"]]) {
      await go(page, path);
      await check(page, name);
    }
    await go(page, "/policy");
    assert.match(await text(page), /Which packages may be called at all/);
    const approval = await text(page, "section[aria-labelledby=s-approval]");
    assert.match(approval, /refused .*by \w+[^]*the owner said no/, "a no is told with its rule");
    assert.match(approval, /\bok .*by \w+/, "and so is what came through");
    assert.equal(await page.$$eval(".group", (all) => all.filter((one) => one.innerText.includes("`")).length), 0, "what is typed is shown as that");
  },
  async "a secret goes in and never comes out"(page) {
    await go(page, "/secrets");
    await page.select("#package", "mcpkg:demo.echo");
    await page.type("#name", "API_KEY");
    await page.type("#value", "s3cret-of-mine");
    await press(page, "form.stacked button");
    assert.match(await text(page), /API_KEY of mcpkg:demo\.echo is kept/);
    assert.match(await page.$eval("tr time[datetime]", (one) => one.title), /^\d{4}-\d\d-\d\dT/, "a moment is the owner's own");
    for (const path of ["/secrets", "/calls", "/tools/mcpkg%3Ademo.echo"]) {
      await go(page, path);
      assert.ok(!(await page.content()).includes("s3cret-of-mine"), path);
    }
  },
  async "a tool is switched off and on"(page) {
    await go(page, "/tools/mcpkg%3Ademo.echo");
    await page.click("main .copy");
    await page.waitForFunction(() => document.querySelector("main .copy").textContent !== "Copy" || document.getElementById("told").textContent.includes("marked"));
    await press(page, "button[value=disable]");
    assert.match(await text(page), /nobody can call it/);
    assert.match(JSON.stringify(await ask("tools/call", { name: "demo_echo", arguments: { message: "x" } })), /error|isError/);
    await press(page, "button[value=enable]");
    assert.ok(!(await call("demo_echo", { message: "back" })).isError);
  },
  async "an update shows what is different, and can be taken back"(page) {
    await go(page, "/tools/mcpkg%3Ademo.echo");
    await Promise.all([page.waitForNavigation({ waitUntil: "load" }), page.click("a[href$='/update']")]);
    const shown = await text(page);
    for (const words of ["0.1.0", "0.2.0", "asks for more", "api.example.com", "manifest.json"]) assert.ok(shown.includes(words), `${words} in ${shown}`);
    await check(page, "update");
    await press(page, "form.stacked button");
    assert.match(await text(page), /is updated to 0\.2\.0/);
    await press(page, "button[value=rollback]");
    assert.match(await text(page), /rolled back/);
    assert.match(await text(page, ".row.head"), /0\.1\.0/);
  },
  async "one tool is revoked with the keyboard alone, and then everything"(page) {
    await go(page, SHREDDER);
    await enter(page, ".danger .revoke");
    await check(page, "revoke");
    await enter(page, ".danger button[type=submit]");
    assert.match(await text(page), /is revoked/);
    assert.match(JSON.stringify(await ask("tools/call", { name: "demo_shredder", arguments: { name: "x" } })), /error|isError/);
    await check(page, "revoked");
    await go(page, "/");
    await press(page, "a[href='/revoke']");
    await check(page, "revoke-all");
    await press(page, ".danger button[type=submit]");
    assert.match(await text(page), /6 tools revoked/);
    await check(page, "all-revoked");
    const listed = await ask("tools/list", {});
    assert.ok(!JSON.stringify(listed).includes("demo_echo"), JSON.stringify(listed));
  },
  async "everything works without a script"(page) {
    const plain = await open();
    await plain.setJavaScriptEnabled(false);
    const link = execFileSync(process.env.HAFT, ["console"], { encoding: "utf8" }).trim();
    await plain.goto(link, { waitUntil: "load" });
    await press(plain, "main button[type=submit]");
    assert.equal(new URL(plain.url()).pathname, "/");
    for (const path of ["/tools", "/approvals", "/calls", "/install", "/secrets", "/policy", "/machine"]) {
      assert.equal((await go(plain, path)).status(), 200, path);
    }
    await press(plain, "form[action='/sign-out'] button");
    await go(plain, "/tools");
    assert.match(await plain.$eval("main", (one) => one.textContent), /haft console/);
    await plain.close();
    assert.equal((await go(page, "/")).status(), 200, "another session went with it");
  },
};

await take(steps);

// Drives a real Chromium over the console of a gateway, as its owner would use it.
//
// Whoever runs a script that has this gives it BROWSER TOOLS: TOOLS is the folder with puppeteer-core and axe-core. CONSOLE is the
// address that signs in. With HAFT_SHOTS a picture of every page is put into that folder. Prints a line for each step and ends with 1
// when one fails.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [program, tools] = process.argv.slice(2);
const require = createRequire(`${tools}/node_modules/`);
const puppeteer = require("puppeteer-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const address = new URL(process.env.CONSOLE).origin;
const shots = process.env.HAFT_SHOTS;
if (shots) mkdirSync(shots, { recursive: true });

// A container has no user namespaces and a small /dev/shm.
const args = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run", "--lang=en"];
const browser = await puppeteer.launch({ executablePath: program, headless: true, args });
const complaints = [];

export const DESK = { width: 1280, height: 900 };
export const PHONE = { width: 360, height: 740 };

export async function open() {
  const page = await (await browser.createBrowserContext()).newPage();
  await page.setViewport(DESK);
  page.on("console", (message) => {
    // A page that is not there says so itself.
    if (message.type() === "error" && !/\b(404|401)\b/.test(message.text())) complaints.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => complaints.push(`script: ${error.message}`));
  page.on("dialog", (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(address)) complaints.push(`asked for ${request.url()}`);
  });
  return page;
}

export const go = (page, path) => page.goto(address + path, { waitUntil: "load" });
export const text = (page, of = "main") => page.$eval(of, (one) => one.innerText);
export const press = (page, of) => Promise.all([page.waitForNavigation({ waitUntil: "load" }), page.click(of)]);

// Whether anybody can use the page: by the rules of axe, in light and dark and on a phone, where it is no wider than that.
export async function check(page, name) {
  for (const scheme of ["light", "dark"]) {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }, { name: "prefers-reduced-motion", value: "reduce" }]);
    await rules(page, `${name}, ${scheme}`);
    await shoot(page, `${name}-${scheme}`);
  }
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "light" }, { name: "prefers-reduced-motion", value: "reduce" }]);
  await page.setViewport(PHONE);
  await rules(page, `${name}, on a phone`);
  const [inner, wide] = await page.evaluate(() => [document.documentElement.clientWidth, document.documentElement.scrollWidth]);
  assert.ok(wide <= inner, `${name} is ${wide} wide in ${inner}`);
  await shoot(page, `${name}-phone`);
  await page.setViewport(DESK);
}

async function rules(page, name) {
  await page.evaluate(axe);
  const found = await page.evaluate(async () => {
    const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
    return violations.flatMap((one) => one.nodes.slice(0, 3).map((node) => `${one.id}: ${node.html.slice(0, 200)} ${node.failureSummary}`));
  });
  assert.deepEqual(found, [], `axe on ${name}`);
}

async function shoot(page, name) {
  if (shots) await page.screenshot({ path: `${shots}/${name}.png`, fullPage: true });
}

// Goes on with the keyboard alone until something has the focus.
export async function tabTo(page, selector) {
  for (let at = 0; at < 120; at += 1) {
    const [isIt, isSeen] = await page.evaluate((selector) => {
      const one = document.activeElement;
      return [one.matches(selector), one === document.body || one.id === "main" || getComputedStyle(one).outlineStyle !== "none"];
    }, selector);
    assert.ok(isSeen || at === 0, "the focus is not seen");
    if (isIt) return;
    await page.keyboard.press("Tab");
  }
  assert.fail(`${selector} is not reached by the keyboard`);
}

// Goes to a button or a link with the keyboard alone, and on by it.
export async function enter(page, selector) {
  await tabTo(page, selector);
  await Promise.all([page.waitForNavigation({ waitUntil: "load" }), page.keyboard.press("Enter")]);
}

// Takes one step after the other on one page, until one fails.
export async function take(steps) {
  let failed = 0;
  const page = await open();
  for (const [name, step] of Object.entries(steps)) {
    try {
      await step(page);
      assert.deepEqual(complaints.splice(0), [], "complaints of the browser");
      console.log(`ok      ${name}`);
    } catch (error) {
      failed += 1;
      await shoot(page, `failed-${failed}`);
      console.log(`FAILED  ${name}\n${error.stack}\n${page.url()}\n${await text(page).catch(() => "")}`);
      break;
    }
  }
  await browser.close();
  process.exit(failed === 0 ? 0 : 1);
}

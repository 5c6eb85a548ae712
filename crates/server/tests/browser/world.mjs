// Pages, and everything they do that they should not.
import assert from "node:assert/strict";

// What axe cannot decide, and where it is right all the same.
const UNDECIDED = [
  // In a box that scrolls, what is beside the box covers what lies beyond its edge.
  { rule: "color-contrast", within: ".wide, pre" },
  // An open list of suggestions covers what is beneath it: that is what it is for.
  { rule: "color-contrast", within: "main, .suggestions", whileThereIs: "#suggestions:not([hidden])" },
];

export class World {
  constructor(browser, address, axe, privately) {
    Object.assign(this, { browser, address, axe, privately, contexts: [], complaints: [] });
  }

  // Opens a page: of a width, in a colour scheme, with or without JavaScript; of the private registry with a password.
  async open(path, { width = 1280, height = 900, scheme = "light", script = true, password } = {}) {
    const context = await this.browser.createBrowserContext();
    this.contexts.push(context);
    await context.overridePermissions(this.address, ["clipboard-read", "clipboard-write", "clipboard-sanitized-write"]);
    const page = await context.newPage();
    await page.setViewport({ width, height });
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    await page.setJavaScriptEnabled(script);
    page.on("console", (message) => {
      // A page that is not there says so itself.
      if (message.type() === "error" && !/\b(404|401)\b/.test(message.text())) {
        this.complaints.push(`console: ${message.text()}`);
      }
    });
    page.on("pageerror", (error) => this.complaints.push(`script: ${error.message}`));
    page.on("dialog", (dialog) => {
      this.complaints.push(`dialog: ${dialog.message()}`);
      dialog.dismiss();
    });
    page.on("request", (request) => {
      if (![this.address, this.privately.address].some((ours) => request.url().startsWith(ours))) this.complaints.push(`asked for ${request.url()}`);
    });
    if (script) {
      await page.evaluateOnNewDocument(() => {
        window.violations = [];
        document.addEventListener("securitypolicyviolation", (event) => {
          window.violations.push(`${event.violatedDirective} ${event.blockedURI}`);
        });
      });
    }
    if (password === undefined) {
      await this.go(page, path);
    } else {
      await page.authenticate({ username: "ann", password });
      await page.goto(this.privately.address + path, { waitUntil: "load" });
    }
    return page;
  }

  async go(page, path) {
    return page.goto(this.address + path, { waitUntil: "load" });
  }

  // A picture for whoever wants to look.
  async shoot(page, name) {
    if (!process.env.HAFT_SHOTS) return;
    const { width } = page.viewport();
    const dark = await page.evaluate(() => matchMedia("(prefers-color-scheme: dark)").matches).catch(() => false);
    const file = `${name.replace(/[^a-z0-9.]+/gi, "_")}-${width}${dark ? "-dark" : ""}.png`;
    await page.screenshot({ path: `${process.env.HAFT_SHOTS}/${file}`, fullPage: true });
  }

  // Whether anybody can use the page, by the rules of axe: those of WCAG 2.2 AA and of good practice. What axe cannot
  // decide counts as wrong, unless it is known.
  // The rules come in as the debugger's own script, which the policy of the page does not bind.
  async checkAccess(page) {
    await page.evaluate(this.axe);
    const found = await page.evaluate(async (undecided) => {
      const result = await axe.run(document, { resultTypes: ["violations", "incomplete"] });
      const told = (one, node) => `${one.id}: ${node.html.slice(0, 160)} ${node.any.concat(node.all, node.none).map((check) => check.message)}`;
      const isKnown = (one, node) => undecided.some(({ rule, within, whileThereIs }) =>
        one.id === rule && document.querySelector(node.target[0])?.closest(within) && (!whileThereIs || document.querySelector(whileThereIs)));
      const open = result.incomplete.map((one) => ({ ...one, nodes: one.nodes.filter((node) => !isKnown(one, node)) }));
      return [...result.violations, ...open].flatMap((one) => one.nodes.slice(0, 3).map((node) => told(one, node)));
    }, UNDECIDED);
    assert.deepEqual(found, [], `axe on ${page.url()}`);
  }

  async checkWidth(page) {
    const [inner, wide] = await page.evaluate(() => [document.documentElement.clientWidth, document.documentElement.scrollWidth]);
    assert.ok(wide <= inner, `${page.url()} is ${wide} wide in ${inner}`);
  }

  async checkPolicy(page) {
    assert.deepEqual(await page.evaluate(() => window.violations), [], `policy on ${page.url()}`);
    assert.equal(await page.evaluate(() => window.owned), undefined, "something ran");
  }

  check() {
    assert.deepEqual(this.complaints, []);
  }

  async close() {
    for (const context of this.contexts) await context.close();
  }
}

export const text = (page, selector) => page.$eval(selector, (element) => element.innerText.trim());
export const texts = (page, selector) => page.$$eval(selector, (all) => all.map((element) => element.innerText.trim()));

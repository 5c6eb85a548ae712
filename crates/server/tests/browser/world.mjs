// Pages, and everything they do that they should not.
import assert from "node:assert/strict";

export class World {
  constructor(browser, address, axe) {
    Object.assign(this, { browser, address, axe, contexts: [], complaints: [] });
  }

  // Opens a page: of a width, in a colour scheme, with or without JavaScript.
  async open(path, { width = 1280, height = 900, scheme = "light", script = true } = {}) {
    const context = await this.browser.createBrowserContext();
    this.contexts.push(context);
    await context.overridePermissions(this.address, ["clipboard-read", "clipboard-write", "clipboard-sanitized-write"]);
    const page = await context.newPage();
    await page.setViewport({ width, height });
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    await page.setJavaScriptEnabled(script);
    page.on("console", (message) => {
      // A page that is not there says so itself.
      if (message.type() === "error" && !message.text().includes("404")) {
        this.complaints.push(`console: ${message.text()}`);
      }
    });
    page.on("pageerror", (error) => this.complaints.push(`script: ${error.message}`));
    page.on("dialog", (dialog) => {
      this.complaints.push(`dialog: ${dialog.message()}`);
      dialog.dismiss();
    });
    page.on("request", (request) => {
      if (!request.url().startsWith(this.address)) this.complaints.push(`asked for ${request.url()}`);
    });
    if (script) {
      await page.evaluateOnNewDocument(() => {
        window.violations = [];
        document.addEventListener("securitypolicyviolation", (event) => {
          window.violations.push(`${event.violatedDirective} ${event.blockedURI}`);
        });
      });
    }
    await this.go(page, path);
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

  // Whether anybody can use the page, by the rules of axe: those of WCAG 2.2 AA and of good practice.
  // The rules come in as the debugger's own script, which the policy of the page does not bind.
  async checkAccess(page) {
    await page.evaluate(this.axe);
    const found = await page.evaluate(async () => {
      const result = await axe.run(document, { resultTypes: ["violations"] });
      return result.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html.slice(0, 160)).slice(0, 3).join(" | ")}`);
    });
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

// Drives a real Chromium over the pages of a registry.
//
// node main.mjs ADDRESS BROWSER TOOLS PRIVATE TOKEN: TOOLS is the folder with puppeteer-core and axe-core, PRIVATE a
// registry that is read with TOKEN. Prints a line for each test and ends with 1 when one fails. With HAFT_SHOTS a picture of every page is put into that folder.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { tests } from "./tests.mjs";
import { World } from "./world.mjs";

const [address, program, tools, privately, token] = process.argv.slice(2);
const require = createRequire(`${tools}/node_modules/`);
const puppeteer = require("puppeteer-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

// A container has no user namespaces and a small /dev/shm.
const args = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run", "--lang=en"];
const browser = await puppeteer.launch({ executablePath: program, headless: true, args });
let failed = 0;
for (const [name, test] of Object.entries(tests)) {
  const world = new World(browser, address, axe, { address: privately, token });
  try {
    await test(world);
    world.check();
    console.log(`ok      ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${name}\n${error.stack}`);
  }
  await world.close();
}
await browser.close();
process.exit(failed === 0 ? 0 : 1);

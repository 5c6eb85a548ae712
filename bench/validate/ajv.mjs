// How fast ajv judges one manifest in a running process.
//
// usage: node ajv.mjs SCHEMA MANIFEST SECONDS
// Prints one line: {"per_second": …, "micros": …}, the median of the batches.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

// ajv lies in the build cache, which is no ancestor of this file, so a plain import would not find it.
const require = createRequire(new URL("../../target/bench/npm/", import.meta.url));
const Ajv2020 = require("ajv/dist/2020.js").default;

const BATCHES = 15;

const [schemaFile, manifestFile, seconds] = process.argv.slice(2);
// Formats are advisory in this dialect. Leaving them out spares ajv the work and is its fastest setting.
const ajv = new Ajv2020({ strict: false, validateFormats: false });
const validate = ajv.compile(JSON.parse(readFileSync(schemaFile, "utf8")));
const text = readFileSync(manifestFile, "utf8");

function judge() {
  // Looking at the answer keeps the optimiser from dropping the work.
  if (!validate(JSON.parse(text))) throw new Error(ajv.errorsText(validate.errors));
}

// Runs for about `budget` milliseconds and answers the microseconds of one round.
function batch(budget) {
  const start = performance.now();
  let rounds = 0;
  let elapsed = 0;
  while (elapsed < budget) {
    for (let i = 0; i < 20; i++) judge();
    rounds += 20;
    elapsed = performance.now() - start;
  }
  return (elapsed * 1000) / rounds;
}

// The warm-up lets the optimising compiler finish before anything counts.
const budget = (Number(seconds) * 1000) / (BATCHES + 5);
batch(5 * budget);
const micros = Array.from({ length: BATCHES }, () => batch(budget)).sort((a, b) => a - b)[BATCHES >> 1];
console.log(JSON.stringify({ per_second: Math.round(1e6 / micros), micros: Number(micros.toFixed(2)) }));

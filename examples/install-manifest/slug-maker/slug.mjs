#!/usr/bin/env node
// Turns a title into a slug: `slug.mjs make [--separator S] -- TITLE`,
// or many at once: `slug.mjs batch` with {"titles": [...]} on stdin.

import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";

function slug(title, separator) {
  return title
    .normalize("NFKD")
    .replace(/\p{Mark}/gu, "")
    .toLowerCase()
    .split(/[^\p{Letter}\p{Number}]+/u)
    .filter(Boolean)
    .join(separator);
}

function fail(code, message) {
  console.log(JSON.stringify({ error: { code, message } }));
  process.exit(1);
}

const [command, ...rest] = process.argv.slice(2);

if (command === "make") {
  const { values, positionals } = parseArgs({
    args: rest,
    options: { separator: { type: "string", default: "-" } },
    allowPositionals: true,
  });
  const made = slug(positionals.join(" "), values.separator);
  if (made === "") fail("empty_slug", "the title has no letter and no digit");
  console.log(JSON.stringify({ slug: made, separator: values.separator }));
} else if (command === "batch") {
  let titles;
  try {
    titles = JSON.parse(readFileSync(0, "utf8")).titles;
  } catch {
    fail("bad_json", "stdin holds no JSON object");
  }
  if (!Array.isArray(titles)) fail("bad_input", "titles must be a list");
  console.log(JSON.stringify({ slugs: titles.map((title) => slug(String(title), "-")) }));
} else {
  fail("unknown_command", "say make or batch");
}

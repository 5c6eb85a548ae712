// Runs one function as a tool: JSON object in (last argument or stdin), one line of JSON out.

import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const FILE = "@FILE@";
const EXPORT = "@EXPORT@";
const CALL = @CALL@;

// @CALLING@

// --- running ---

/** A text's JSON object, or undefined when it is none. */
function objectIn(text) {
  try {
    const value = JSON.parse(text);
    return value !== null && typeof value === "object" && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The input object: the last argument if it is a JSON object, else what stdin holds. */
async function readInput() {
  const last = process.argv.length > 2 ? objectIn(process.argv[process.argv.length - 1]) : undefined;
  if (last) return last;
  const chunks = [];
  for await (const chunk of process.stdin) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString("utf8").replace(/^\uFEFF/, "");
  const given = text.trim() === "" ? {} : objectIn(text);
  if (!given) throw new TypeError("the input is not a JSON object");
  return given;
}

/** Loads the tool's file and calls its function. */
async function run() {
  const given = await readInput();
  const here = dirname(fileURLToPath(import.meta.url));
  const loaded = await settled(import(pathToFileURL(join(here, FILE)).href));
  const holder = exportsOf(loaded).get(EXPORT);
  if (!holder) throw new TypeError(`${FILE} exports no function "${EXPORT}"`);
  return callTool(holder, EXPORT, CALL, given);
}

const exit = process.exit.bind(process);
const print = process.stdout.write.bind(process.stdout);
const fail = (error) => {
  process.stderr.write(`${JSON.stringify({ error: errorText(error) })}\n`, () => exit(1));
};

// Stdout is kept for the one result line: what the tool prints goes to stderr, and it may not end the process.
process.stdout.write = process.stderr.write.bind(process.stderr);
process.exit = (code = 0) => {
  throw new Error(`the tool called process.exit(${code})`);
};
process.on("uncaughtException", fail);
run().then((line) => print(`${line}\n`, () => exit(0)), fail);

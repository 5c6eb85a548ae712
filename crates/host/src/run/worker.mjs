// Waits for requests to one Node tool. A line of JSON each way; what the tool prints is no answer.
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import { Socket } from "node:net";
import { dirname, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

// Requests and answers go where neither the tool nor what it starts can put a word in: what these read is
// empty, and what they print is no answer. A file that is opened takes the lowest number that is free.
const own = process.platform === "linux" ? "/proc/self/fd" : "/dev/fd";
const asks = fs.openSync(`${own}/0`, "r");
const answers = fs.openSync(`${own}/1`, "w");
fs.closeSync(0);
fs.openSync("/dev/null", "r");
fs.closeSync(1);
fs.openSync(`${own}/2`, "w");

// Half a surrogate is no character of Unicode. JSON.stringify writes it, and nothing else, in this way.
const halves = /(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g;
const whole = (text) => (text.includes("\\ud") ? text.replace(halves, "$1\\ufffd") : text);

function say(text) {
  // Only the words of an error, or of a question, can still hold one.
  let rest = Buffer.from(whole(text) + "\n");
  while (rest.length > 0) rest = rest.subarray(fs.writeSync(answers, rest));
}

// Lines end at a line feed and nowhere else.
async function* lines(stream) {
  let parts = [];
  for await (let chunk of stream) {
    for (let end; (end = chunk.indexOf(10)) >= 0; chunk = chunk.subarray(end + 1)) {
      yield Buffer.concat([...parts, chunk.subarray(0, end)]).toString();
      parts = [];
    }
    parts.push(chunk);
  }
}

let tool;
let load;

const path = () => resolve(load.root, load.main);

// The first line of the tool's own files on the way to an error. What the tool threw may be anything.
function place(error) {
  try {
    const folder = `${dirname(path())}/`;
    for (const line of String(error.stack).split("\n")) {
      const found = /(\/[^()]*?):(\d+)(?::\d+)?\)?$/.exec(line.replace("file://", ""));
      // These lines here are none of its files, though they seem to lie beside them.
      if (found?.[1].startsWith(folder) && !found[1].includes("/[eval")) return `${found[1].slice(folder.length)}:${found[2]}`;
    }
  } catch {
    // It has no such line.
  }
  return null;
}

// Where a file of the tool is no JavaScript. Node tells that only to who has the file checked, which runs nothing of
// it; the files that it names are looked at in turn.
function misspelt(error) {
  const most = 20;
  const files = error instanceof SyntaxError && !place(error) ? [path()] : [];
  for (const file of files) {
    const ways = { encoding: "utf8", stdio: ["ignore", "ignore", "pipe"], timeout: 5000 };
    const [first] = String(spawnSync(process.execPath, ["--check", file], ways).stderr).split("\n");
    const found = /^(\/.*):(\d+)$/.exec(first.startsWith("file://") ? fileURLToPath(first) : first);
    if (found) return place({ stack: found[0] });
    for (const [, name] of fs.readFileSync(file, "utf8").matchAll(/["'](\.{1,2}\/[^"'\n]+)["']/g)) {
      const next = resolve(dirname(file), name);
      if (files.length < most && !files.includes(next) && /\.[cm]?js$/.test(next) && fs.existsSync(next)) files.push(next);
    }
  }
  return null;
}

// What is behind an error that says little itself, as those of `fetch` do.
function behind(error) {
  try {
    const cause = error.cause;
    const parts = [cause?.code, cause?.message].filter((part) => part && typeof part === "string");
    return parts.length > 0 ? `: ${parts.join(", ")}` : "";
  } catch {
    return "";
  }
}

const fail = (error) => ({
  error: {
    // What is thrown may be no error.
    type: error?.name ?? "thrown",
    message: String(error?.message ?? error) + behind(error),
    at: place(error),
  },
});

async function begin(line) {
  load = JSON.parse(line);
  const loaded = await import(pathToFileURL(path()).href);
  // The one that is named, and no other in its place.
  const names = load.export ? [load.export] : ["tool", "default"];
  // What a CommonJS module exports is the default of what is imported, and not all of it has a name there.
  const places = [loaded, loaded.default].filter((one) => one && /^(object|function)$/.test(typeof one));
  const found = names.flatMap((name) => places.map((place) => place[name]));
  tool = found.find((one) => typeof one?.execute === "function");
  if (!tool) {
    const wanted = names.map((name) => `\`${name}\``).join(" or ");
    throw new Error(`\`${load.main}\` has no export ${wanted} that is a tool with \`execute\``);
  }
  return JSON.stringify({ ready: true });
}

const asked = async (value, input) => (typeof value === "function" ? value.call(tool, input) : value);

// What a tool says of a call before it is made. One that cannot say wants the owner asked.
async function consider(input) {
  const answer = { requiresApproval: false, failed: null, requiredSecrets: [], message: null };
  try {
    const wanted = await asked(tool.requiresApproval, input);
    answer.requiresApproval = Boolean(wanted ?? false);
    if (typeof (wanted ?? false) !== "boolean") throw new TypeError("it said neither true nor false");
  } catch (error) {
    answer.failed = fail(error).error.message;
  }
  const secrets = (await asked(tool.requiredSecrets, input)) ?? [];
  if (!Array.isArray(secrets) || secrets.some((name) => typeof name !== "string")) {
    throw new TypeError("`requiredSecrets` of the tool is no list of names");
  }
  answer.requiredSecrets = secrets;
  try {
    const message = await tool.getApprovalMessage?.(input);
    if (typeof message === "string") answer.message = message;
  } catch {
    // The owner sees the input itself.
  }
  return answer;
}

// Where a call belongs among those of others; that of the call before counts no more.
const variables = ["TRACEPARENT", "TRACESTATE"];
const hasOwn = variables.some((variable) => variable in process.env);

function belong(told = {}) {
  if (hasOwn) return;
  for (const variable of variables) delete process.env[variable];
  Object.assign(process.env, told);
}

async function answer(line) {
  const request = JSON.parse(line);
  belong(request.trace);
  try {
    const result =
      request.do === "consider"
        ? await consider(request.input)
        : await tool.execute(request.input, { toolName: load.toolName ?? tool.name, env: request.env ?? {} });
    const text = JSON.stringify({ id: request.id, result: result ?? null });
    if (request.do !== "consider" && whole(text) !== text) {
      throw new TypeError("the result holds half a surrogate, which is no character of Unicode");
    }
    return text;
  } catch (error) {
    return JSON.stringify({ id: request.id, ...fail(error) });
  }
}

for await (const line of lines(new Socket({ fd: asks, readable: true, writable: false }))) {
  if (tool) {
    say(await answer(line));
  } else {
    try {
      say(await begin(line));
    } catch (error) {
      const failed = fail(error);
      failed.error.at ??= misspelt(error);
      say(JSON.stringify(failed));
      process.exitCode = 1;
      break;
    }
  }
}

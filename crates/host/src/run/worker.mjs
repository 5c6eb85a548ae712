// Waits for requests to one Node tool. A line of JSON each way; what the tool prints is no answer.
import fs from "node:fs";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

process.stdout.write = process.stderr.write.bind(process.stderr);

function say(text) {
  let rest = Buffer.from(text + "\n");
  while (rest.length > 0) {
    try {
      rest = rest.subarray(fs.writeSync(1, rest));
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}

const fail = (error) => ({
  error: { type: error?.name ?? typeof error, message: String(error?.message ?? error) },
});

let tool;
let load;

async function begin(line) {
  load = JSON.parse(line);
  const loaded = await import(pathToFileURL(load.main).href);
  const names = [load.export, "tool", "default"].filter(Boolean);
  const places = [loaded, loaded.default].filter((one) => one && typeof one === "object");
  const found = places.flatMap((place) => names.map((name) => place[name]));
  tool = [...found, loaded.default].find((one) => typeof one?.execute === "function");
  if (!tool) throw new Error(`no export of \`${load.main}\` is a tool with \`execute\``);
  return JSON.stringify({ ready: true });
}

const asked = async (value, input) => (typeof value === "function" ? value.call(tool, input) : value);

// What a tool says of a call before it is made. One that cannot say wants the owner asked.
async function consider(input) {
  const answer = { requiresApproval: false, requiredSecrets: [], message: null };
  try {
    answer.requiresApproval = Boolean(await asked(tool.requiresApproval, input));
  } catch {
    answer.requiresApproval = true;
  }
  const secrets = await asked(tool.requiredSecrets, input);
  answer.requiredSecrets = Array.isArray(secrets) ? secrets.map(String) : [];
  try {
    const message = await tool.getApprovalMessage?.(input);
    if (typeof message === "string") answer.message = message;
  } catch {
    // The owner sees the input itself.
  }
  return answer;
}

async function answer(line) {
  const request = JSON.parse(line);
  try {
    const result =
      request.do === "consider"
        ? await consider(request.input)
        : await tool.execute(request.input, { toolName: load.toolName ?? tool.name, env: request.env ?? {} });
    return JSON.stringify({ id: request.id, result: result ?? null });
  } catch (error) {
    return JSON.stringify({ id: request.id, ...fail(error) });
  }
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  if (tool) {
    say(await answer(line));
  } else {
    try {
      say(await begin(line));
    } catch (error) {
      say(JSON.stringify(fail(error)));
      process.exitCode = 1;
      break;
    }
  }
}

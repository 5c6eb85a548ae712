#!/usr/bin/env node
// A small MCP server over stdio that finds lines in text files.
//
// One JSON-RPC message a line. The arguments are the folders it may look into; FIND_LIMIT bounds
// how many lines are answered. It has no dependencies and opens no connection.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const readline = require("node:readline");

const REVISIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
const LARGEST_FILE = 1024 * 1024;
const MOST_FILES = 2000;
const LIMIT = Number(process.env.FIND_LIMIT) || 20;
const FOLDERS = process.argv.slice(2).map((folder) => path.resolve(folder));

const TOOLS = [
  {
    name: "find_lines",
    description: "Find lines that hold a text, in the .txt and .md files of the folders.",
    inputSchema: {
      type: "object",
      properties: { text: { type: "string", minLength: 1, description: "What to look for." } },
      required: ["text"],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: true, openWorldHint: false },
  },
  {
    name: "list_files",
    description: "List the text files that can be searched.",
    inputSchema: { type: "object", properties: {}, additionalProperties: false },
    annotations: { readOnlyHint: true, openWorldHint: false },
  },
];

class Refused extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

// Links are not followed, so nothing outside the folders is read.
function textFiles() {
  const found = [];
  const left = [...FOLDERS];
  while (left.length > 0 && found.length < MOST_FILES) {
    const folder = left.pop();
    let entries;
    try {
      entries = fs.readdirSync(folder, { withFileTypes: true });
    } catch {
      continue;
    }
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const file = path.join(folder, entry.name);
      if (entry.isDirectory()) left.push(file);
      else if (entry.isFile() && /\.(txt|md)$/.test(entry.name)) found.push(file);
    }
  }
  return found.slice(0, MOST_FILES);
}

function findLines({ text }) {
  if (typeof text !== "string" || text === "") throw new Error("text must be a text that is not empty");
  const hits = [];
  for (const file of textFiles()) {
    if (fs.statSync(file).size > LARGEST_FILE) continue;
    const lines = fs.readFileSync(file, "utf8").split(/\r?\n/);
    for (const [index, line] of lines.entries()) {
      if (!line.toLowerCase().includes(text.toLowerCase())) continue;
      if (hits.length >= LIMIT) return [...hits, `(only the first ${LIMIT} are shown)`].join("\n");
      hits.push(`${file}:${index + 1}: ${line.trim()}`);
    }
  }
  return hits.length > 0 ? hits.join("\n") : "nothing found";
}

function call({ name, arguments: given }) {
  const tools = { find_lines: findLines, list_files: () => textFiles().join("\n") || "no files" };
  if (!Object.hasOwn(tools, name)) throw new Refused(-32602, `unknown tool: ${name}`);
  try {
    return { content: [{ type: "text", text: tools[name](given ?? {}) }] };
  } catch (problem) {
    return { isError: true, content: [{ type: "text", text: problem.message }] };
  }
}

function answer(method, params) {
  switch (method) {
    case "initialize":
      return {
        protocolVersion: REVISIONS.includes(params.protocolVersion) ? params.protocolVersion : REVISIONS[0],
        capabilities: { tools: {} },
        serverInfo: { name: "line-finder", version: "1.0.0" },
      };
    case "ping":
      return {};
    case "tools/list":
      return { tools: TOOLS };
    case "tools/call":
      return call(params);
    default:
      throw new Refused(-32601, `method not found: ${method}`);
  }
}

function send(message) {
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
}

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  if (line.trim() === "") return;
  let request;
  try {
    request = JSON.parse(line);
  } catch {
    return send({ id: null, error: { code: -32700, message: "not JSON" } });
  }
  if (request === null || typeof request !== "object" || request.id === undefined) return;
  try {
    send({ id: request.id, result: answer(request.method, request.params ?? {}) });
  } catch (problem) {
    send({ id: request.id, error: { code: problem.code ?? -32603, message: problem.message } });
  }
});

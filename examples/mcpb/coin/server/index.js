#!/usr/bin/env node
// The smallest MCP server that is of use: it tosses a coin. One JSON-RPC message a line.
"use strict";

const { randomInt } = require("node:crypto");

const TOSS = {
  name: "toss",
  description: "Toss a coin.",
  inputSchema: { type: "object", properties: {}, additionalProperties: false },
};

const ANSWERS = {
  initialize: (params) => ({
    protocolVersion: params.protocolVersion ?? "2024-11-05",
    capabilities: { tools: {} },
    serverInfo: { name: "coin", version: "0.1.0" },
  }),
  ping: () => ({}),
  "tools/list": () => ({ tools: [TOSS] }),
  "tools/call": (params) =>
    params.name === "toss"
      ? { content: [{ type: "text", text: randomInt(2) === 0 ? "heads" : "tails" }] }
      : { isError: true, content: [{ type: "text", text: `unknown tool: ${params.name}` }] },
};

require("node:readline")
  .createInterface({ input: process.stdin })
  .on("line", (line) => {
    let request;
    try {
      request = JSON.parse(line);
    } catch {
      request = { id: null };
    }
    if (request === null || typeof request !== "object" || request.id === undefined) return;
    const known = Object.hasOwn(ANSWERS, request.method ?? "");
    const reply = known
      ? { result: ANSWERS[request.method](request.params ?? {}) }
      : { error: { code: request.id === null ? -32700 : -32601, message: "not understood" } };
    process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id: request.id, ...reply })}\n`);
  });

// Lists and calls through the gateway with the TypeScript library of the first major version, or the client of the second.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, library, way, first, ...rest] = process.argv.slice(2);
const require = createRequire(`${folder}/package.json`);
const load = (name) => import(pathToFileURL(require.resolve(name)));

async function parts() {
  if (library === "sdk") {
    const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
    const { StdioClientTransport } = await load("@modelcontextprotocol/sdk/client/stdio.js");
    const { StreamableHTTPClientTransport } = await load("@modelcontextprotocol/sdk/client/streamableHttp.js");
    return { Client, StdioClientTransport, StreamableHTTPClientTransport };
  }
  const whole = await load("@modelcontextprotocol/client");
  const { StdioClientTransport } = await load("@modelcontextprotocol/client/stdio");
  return { ...whole, StdioClientTransport };
}

const { Client, StdioClientTransport, StreamableHTTPClientTransport } = await parts();
const transport =
  way === "stdio"
    ? new StdioClientTransport({ command: first, args: rest })
    : new StreamableHTTPClientTransport(new URL(first), {
        requestInit: { headers: { Authorization: `Bearer ${rest[0]}` } },
      });
const client = new Client({ name: "test", version: "1" }, { capabilities: {} });
await client.connect(transport);
const { tools } = await client.listTools();
const called = await client.callTool({ name: "plain_say", arguments: { words: "hello" } });
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), said: called.content[0].text }));
await client.close();

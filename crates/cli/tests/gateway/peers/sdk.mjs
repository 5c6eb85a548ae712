// Lists and calls through the gateway with the TypeScript library of the first major version, or the client of the second in one of
// its modes.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, library, mode, way, first, ...rest] = process.argv.slice(2);
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
const client = new Client({ name: "test", version: "1" }, { capabilities: {}, versionNegotiation: { mode } });
// The first version tells its transport alone what was agreed on.
let agreed;
const tell = transport.setProtocolVersion?.bind(transport);
transport.setProtocolVersion = (revision) => {
  agreed = revision;
  tell?.(revision);
};
await client.connect(transport);
const revision = client.getNegotiatedProtocolVersion?.() ?? agreed;
const { tools } = await client.listTools();
const called = await client.callTool({ name: "plain_say", arguments: { words: "hello" } });
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), said: called.content[0].text, revision }));
await client.close();

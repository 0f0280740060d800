// The TypeScript SDK's client against the gateway, both revisions: list, allow, ask, grant, retry, deny.
//
//     npm install @modelcontextprotocol/client
//     node typescript_client.mjs PORTCULLIS                            over stdio
//     node typescript_client.mjs PORTCULLIS http://127.0.0.1:8460/mcp  over HTTP, with the agent's token in MCP_TOKEN
//
// Run it in a workspace of its own, with HOME (or PORTCULLIS_STATE and PORTCULLIS_CONFIG) set to a throw-away place.
// Where the SDK is installed elsewhere, NODE_MODULES names that directory.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(pathToFileURL(resolve(process.env.NODE_MODULES ?? ".", "x.js")));
const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");
const { StdioClientTransport } = require("@modelcontextprotocol/client/stdio");
const [program, url] = process.argv.slice(2);

function transport(name) {
  if (!url) {
    return new StdioClientTransport({ command: program, args: ["mcp", "serve", "--wait", "0"], env: process.env });
  }
  const headers = { Authorization: `Bearer ${process.env.MCP_TOKEN}`, "Portcullis-Session": `typescript-${name}`, "Portcullis-Wait": "0" };
  return new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
}

async function session(name, mode) {
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode } });
  await client.connect(transport(name));
  const call = (tool, args) => client.callTool({ name: tool, arguments: args });
  const said = (result) => result.content[0].text;

  const names = (await client.listTools()).tools.map((tool) => tool.name);
  assert.deepEqual(names, [...names].sort());
  const read = await call("Read", { path: "hello.txt" });
  assert.ok(!read.isError && said(read).includes("good morning"), said(read));
  const asked = await call("Bash", { command: "ls" });
  assert.ok(asked.isError && said(asked).startsWith("PENDING"), said(asked));
  const approval = said(asked).match(/approvals grant (\S+)/)[1];
  execFileSync(program, ["approvals", "grant", approval]);
  const ran = await call("Bash", { command: "ls" });
  assert.ok(!ran.isError && said(ran).includes("hello.txt"), said(ran));
  const denied = await call("Bash", { command: "rm -rf /" });
  assert.ok(denied.isError && said(denied).startsWith("DENIED by portcullis: "), said(denied));
  await client.close();
  console.log(`${name}: ${names.length} tools; read, ask, grant, retry, deny as expected; ${said(denied).split("\n")[0]}`);
}

await session("legacy", "legacy");
await session("stateless", { pin: "2026-07-28" });
await session("auto", "auto");

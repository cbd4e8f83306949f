// Uses a server on stdio through an official client of the TypeScript SDK, and prints what it got as one JSON object.
// Arguments: the generation of the SDK ("1" or "2"), a file of JSON with the command and its variables.
import { readFileSync } from "node:fs";

const [generation, settings] = process.argv.slice(2);
const { command, args, env } = JSON.parse(readFileSync(settings, "utf8"));
const [{ Client }, { StdioClientTransport }] = generation === "1"
  ? await Promise.all([
      import("@modelcontextprotocol/sdk/client/index.js"),
      import("@modelcontextprotocol/sdk/client/stdio.js"),
    ])
  : await Promise.all([import("@modelcontextprotocol/client"), import("@modelcontextprotocol/client/stdio")]);

const client = new Client({ name: "peers", version: "1" });
await client.connect(new StdioClientTransport({ command, args, env: { ...process.env, ...env } }));
const call = (name, args) => client.callTool({ name, arguments: args });
const { tools } = await client.listTools();
const stored = await call("remember", { content: "Ana moved to Lisbon in May.", user: "ana", tags: ["home"] });
const { id } = stored.structuredContent;
const out = {
  tools: tools.map((tool) => tool.name),
  stored: stored.structuredContent,
  recalled: (await call("recall", { question: "Where does Ana live?", user: "ana" })).structuredContent,
  updated: (await call("update", { id, content: "Ana moved to Porto in June." })).structuredContent,
  context: (await call("context", { question: "Where does Ana live?" })).content[0].text,
  refused: await call("recall", { query: "Ana" }),
  forgotten: (await call("forget", { id })).structuredContent,
  prompt: await client.getPrompt({ name: "recall_for_task", arguments: { task: "book a flight for Ana" } }),
  resources: (await client.listResources()).resources.map((resource) => resource.uri),
};
await client.close();
console.log(JSON.stringify(out));

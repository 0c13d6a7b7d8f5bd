// Lists the tools of a server as the libraries of MCP clients and model providers do, for
// the test beside it. The arguments are pairs: the URL of a server, and the profile of its
// schemas or "". For each, it prints a line of JSON: {"tools": [names], "faults": [texts]}.
// $AGENTD_NODE_MODULES names the node_modules with the libraries.
import assert from "node:assert";
import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(join(process.env.AGENTD_NODE_MODULES, "clients.js"));
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
const { mcpTools } = require("@anthropic-ai/sdk/helpers/beta/mcp");
const { transformJSONSchema } = require("@anthropic-ai/sdk/lib/transform-json-schema");
const { toStrictJsonSchema } = require("openai/lib/transform");
const { mcpToTool } = require("@google/genai");

// each visits a schema and all inside of it. Values of const and enum are none.
function each(schema, visit) {
  visit(schema);
  for (const map of ["properties", "$defs"]) Object.values(schema[map] ?? {}).forEach((s) => each(s, visit));
  for (const list of ["anyOf"]) (schema[list] ?? []).forEach((s) => each(s, visit));
  if (schema.items) each(schema.items, visit);
  if (typeof schema.additionalProperties === "object") each(schema.additionalProperties, visit);
}

const profiles = {
  // The library makes a schema strict, or refuses it. Ours is strict as it is.
  "openai-strict": (s) => assert.deepEqual(toStrictJsonSchema(s), s),
  // The library moves what is not taken into descriptions. In ours there is nothing of the
  // kind, but for patterns, which the provider takes and the library does not know of; and it
  // leaves out the type beside an enum, and does not know types beside each other.
  anthropic: (s) => {
    const known = structuredClone(s);
    each(known, (at) => {
      delete at.pattern;
      if (at.enum) delete at.type;
      if (at.properties && Object.keys(at.properties).length > 0) {
        for (const name of Object.keys(at.properties)) assert.match(name, /^[a-zA-Z0-9_.-]{1,64}$/);
      }
      if (Array.isArray(at.type)) {
        assert.ok(!at.type.includes("object") && !at.type.includes("array"));
        delete at.format;
      }
    });
    assert.deepEqual(transformJSONSchema(known), known);
  },
  // The keywords that @google/genai lists for JSON Schema, without those that the older
  // field refuses.
  gemini: (s) => each(s, (at) => {
    const taken = ["type", "format", "title", "description", "enum", "items", "minItems", "maxItems", "minimum", "maximum", "anyOf", "properties", "additionalProperties", "required"];
    for (const key of Object.keys(at)) assert.ok(taken.includes(key), key);
    if (at.type === "array") assert.ok(at.items);
    for (const v of at.enum ?? []) assert.ok(["string", "number"].includes(typeof v));
    for (const name of Object.keys(at.properties ?? {})) assert.match(name, /^[a-zA-Z_][a-zA-Z0-9_]{0,63}$/);
  }),
};
for (const args = process.argv.slice(2); args.length > 0; ) {
  const [url, profile] = args.splice(0, 2);
  const faults = [];
  const check = (what, f) => { try { f(); } catch (e) { faults.push(`${what}: ${e.message}`); } };
  const client = new Client({ name: "clients", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  const { tools } = await client.listTools();
  for (const tool of tools) {
    // What every client needs: a name that each provider takes, a description, an object.
    check(tool.name, () => {
      assert.match(tool.name, /^[a-zA-Z0-9_-]{1,64}$/);
      assert.ok(tool.description);
      assert.equal(tool.inputSchema.type, "object");
    });
    // The protocol's library loses a property of this name, and openai misses it then.
    const lost = profile === "openai-strict" && tool.inputSchema.required.includes("__proto__");
    if (profile && !lost) check(`${tool.name} for ${profile}`, () => profiles[profile](tool.inputSchema));
  }
  check("@anthropic-ai/sdk mcpTools", () => assert.equal(mcpTools(tools, client).length, tools.length));
  const { functionDeclarations } = await mcpToTool(client).tool();
  check("@google/genai mcpToTool", () => assert.equal(functionDeclarations.length, tools.length));
  await client.close();
  console.log(JSON.stringify({ tools: tools.map((t) => t.name), faults }));
}

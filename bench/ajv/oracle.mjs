// Judges payloads by ajv, for the tests beside it: each line on standard input is
// {"dialect": "draft7" | "2019-09" | "2020-12", "formats": bool, "rewriting": bool,
//  "schema": …, "payloads": […]}
// and is answered by a line {"valid": [bool, …]}, or {"error": "…"} if ajv refuses the schema.
// $AGENTD_NODE_MODULES names the node_modules with ajv and ajv-formats.
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";

const require = createRequire(join(process.env.AGENTD_NODE_MODULES, "oracle.js"));
const packages = { draft7: "ajv", "2019-09": "ajv/dist/2019.js", "2020-12": "ajv/dist/2020.js" };
const addFormats = require("ajv-formats");

// One instance for each dialect and choice of formats. Without metaschemas they keep nothing between
// schemas: whether a schema is well-formed is not what is compared.
const instances = new Map();
function instance(dialect, formats) {
  const key = `${dialect} ${formats}`;
  if (!instances.has(key)) {
    const { default: Ajv } = require(packages[dialect]);
    const ajv = new Ajv({
      strict: false, validateSchema: false, meta: false, addUsedSchema: false, logger: false,
      validateFormats: formats, ownProperties: true, multipleOfPrecision: 9,
    });
    if (formats) addFormats(ajv, { mode: "full" });
    instances.set(key, ajv);
  }
  return instances.get(key);
}

// What ajv gets wrong although another way to write it means the same, it is given in that way; see
// testdata/ajv-faults.json. Payloads and names that are drawn hold none of these keywords.
function rewrite(value) {
  if (value === null || typeof value !== "object") return;
  Object.values(value).forEach(rewrite);
  if ("if" in value && !("then" in value) && !("else" in value)) value.then = true;
  if ("contains" in value) value.minItems = Math.max(value.minItems ?? 0, value.minContains ?? 1);
}

function judge({ dialect, formats, rewriting, schema, payloads }) {
  const ajv = instance(dialect, formats);
  try {
    if (rewriting) rewrite(schema);
    // ajv finds "#" only in a schema with a URI.
    if (typeof schema === "object") schema.$id ??= "https://example.com/schema";
    const validate = ajv.compile(schema);
    return { valid: payloads.map((p) => validate(p)) };
  } catch (e) {
    return { error: String(e.message) };
  } finally {
    ajv.removeSchema();
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(JSON.stringify(judge(JSON.parse(line))) + "\n");
}

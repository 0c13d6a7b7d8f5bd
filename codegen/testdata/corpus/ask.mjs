// Answers the question on standard input, a list of {schema, values?}: what values each schema may have, by
// json-schema-faker, and which of the values that are given it accepts, by ajv. go test ./codegen -run TestCorpus -sample asks.
import { createRequire } from "node:module";
const require = createRequire(process.env.AGENTD_NODE_MODULES + "/");
const faker = require("json-schema-faker");
const Ajv = require("ajv").default;
const formats = require("ajv-formats").default;

let text = "";
process.stdin.setEncoding("utf8");
for await (const chunk of process.stdin) text += chunk;

// A generator of numbers that are always the same (mulberry32).
let state = 18;
const random = () => {
  state = (state + 0x6d2b79f5) | 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
};
faker.option({ random, alwaysFakeOptionals: false, optionalsProbability: 0.6, maxItems: 3, maxLength: 12, failOnInvalidTypes: false, failOnInvalidFormat: false, refDepthMax: 3, ignoreMissingRefs: true });

const answers = [];
for (const { schema, values } of JSON.parse(text)) {
  const ajv = new Ajv({ strict: false, ownProperties: true });
  formats(ajv);
  const accepts = ajv.compile(schema);
  const answer = { fakes: [], verdicts: (values ?? []).map((v) => accepts(v)) };
  for (let i = 0; !values && i < 12; i++) {
    try {
      answer.fakes.push(faker.generate(schema));
    } catch {
      // It gives up on schemas that nothing or little fits.
    }
  }
  answers.push(answer);
}
process.stdout.write(JSON.stringify(answers));

// Measures ajv from bytes to verdict on the payloads of the Go benchmarks, and how long it takes to compile
// their schemas: the text is parsed and becomes a function.
//   npm install && node bench.mjs
// Prints lines in the format of "go test -bench", for benchstat.
import { readFileSync } from "node:fs";
import Ajv from "ajv";
import Ajv2020 from "ajv/dist/2020.js";

const rounds = Number(process.argv[2] ?? 5);
const read = (name) => readFileSync(new URL(`../testdata/${name}`, import.meta.url));

// measure prints what one call of once takes, so many times.
function measure(name, once) {
  const run = (n) => {
    // As the Go benchmarks: the time of computing, of which other work takes nothing.
    const start = process.threadCpuUsage?.() ?? process.cpuUsage();
    for (let i = 0; i < n; i++) once();
    const end = process.threadCpuUsage?.() ?? process.cpuUsage();
    return (end.user + end.system - start.user - start.system) * 1e3;
  };
  let n = 10;
  while (run(n) < 1e8) n *= 2; // warm up, and find a count worth measuring
  for (let i = 0; i < rounds; i++) {
    const ns = run(n) / n;
    console.log(`${name}/engine=ajv\t${n}\t${ns.toFixed(1)} cpu-ns/op`);
  }
}

for (const size of ["small", "medium", "large"]) {
  const schema = JSON.parse(read(`${size}.schema.json`).toString());
  const payload = read(`${size}.json`);
  const validate = new Ajv({ strict: false }).compile(schema);
  measure(`BenchmarkValidate/size=${size}`, () => {
    if (!validate(JSON.parse(payload.toString("utf8")))) throw new Error(`the ${size} payload is not valid`);
  });
}

const full = (name) => [name, `full/${name}.schema.json`];
for (const [name, file] of [
  ...["small", "medium", "large"].map((size) => [size, `${size}.schema.json`]),
  ...["tool-call", "manifest", "metaschema", "openapi", "strict-tree", "events"].map(full),
]) {
  const text = read(file).toString("utf8");
  const Class = text.includes("draft/2020-12") ? Ajv2020 : Ajv;
  // One instance for all: it reads the metaschema once. The schema is forgotten each time.
  const ajv = new Class({ strict: false, validateSchema: false, validateFormats: false, logger: false });
  measure(`BenchmarkCompile/schema=${name}`, () => {
    const schema = JSON.parse(text);
    if (schema.$schema?.includes("draft-07")) delete schema.$schema;
    ajv.compile(schema);
    ajv.removeSchema(schema);
  });
}

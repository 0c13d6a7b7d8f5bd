// Measures ajv from bytes to verdict on the payloads of the Go benchmarks:
//   npm install && node bench.mjs
// Prints lines in the format of "go test -bench", for benchstat.
import { readFileSync } from "node:fs";
import Ajv from "ajv";

const rounds = Number(process.argv[2] ?? 5);

for (const size of ["small", "medium", "large"]) {
  const read = (name) => readFileSync(new URL(`../testdata/${name}`, import.meta.url));
  const schema = JSON.parse(read(`${size}.schema.json`).toString());
  const payload = read(`${size}.json`);
  const validate = new Ajv({ strict: false }).compile(schema);
  const once = () => validate(JSON.parse(payload.toString("utf8")));
  if (!once()) throw new Error(`the ${size} payload is not valid`);

  const run = (n) => {
    const start = process.hrtime.bigint();
    for (let i = 0; i < n; i++) if (!once()) throw new Error("not valid");
    return Number(process.hrtime.bigint() - start);
  };
  let n = 100;
  while (run(n) < 3e8) n *= 2; // warm up, and find a count worth measuring
  for (let i = 0; i < rounds; i++) {
    const ns = run(n) / n;
    console.log(`BenchmarkValidate/size=${size}/engine=ajv\t${n}\t${ns.toFixed(1)} ns/op`);
  }
}

// Finds services with the framework's own client, and prints what it finds:
//
//   node find.mjs <url> <name>
//
// one JSON value: {ping, info, stats}, a list each.
import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(join(process.env.AGENTD_NODE_MODULES ?? process.cwd(), "find.cjs"));
const { connect } = require("@nats-io/transport-node");
const { Svcm } = require("@nats-io/services");

const [url, name] = process.argv.slice(2);
const nc = await connect({ servers: url });
const client = new Svcm(nc).client();
const found = {};
for (const verb of ["ping", "info", "stats"]) {
  found[verb] = [];
  for await (const s of await client[verb](name)) found[verb].push(s);
}
await nc.close();
console.log(JSON.stringify(found));

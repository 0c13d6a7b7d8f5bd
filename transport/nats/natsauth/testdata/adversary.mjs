// A hostile client: it connects as an agent, with both of the agent's keys, and does what
// it is told, whatever the server says to it.
//
//   node adversary.mjs <url> <file>
//
// The file is JSON: {keys: {calls, jetstream}, steps: [{by, subscribe | publish, reply, data}]}.
// It prints {"subject","data"} for each message that it gets, a line each, then
// {"done":true}, and goes on until its standard input ends.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const base = process.env.AGENTD_NODE_MODULES ?? process.cwd();
const { connect, credsAuthenticator, nkeyAuthenticator } = createRequire(join(base, "adversary.cjs"))("@nats-io/transport-node");

const [, , servers, file] = process.argv;
const { keys, steps } = JSON.parse(readFileSync(file, "utf8"));
const print = (value) => process.stdout.write(JSON.stringify(value) + "\n");

const connections = {};
for (const [name, key] of Object.entries(keys)) { // each a seed, credentials, or ""
  const options = { servers };
  const authenticator = key.startsWith("-----") ? credsAuthenticator : nkeyAuthenticator;
  if (key) options.authenticator = authenticator(new TextEncoder().encode(key));
  connections[name] = await connect(options);
}
for (const s of steps) {
  const nc = connections[s.by];
  try {
    if (s.subscribe) {
      nc.subscribe(s.subscribe, { callback: (err, m) => { if (!err) print({ subject: m.subject, data: m.string() }); } });
    } else {
      nc.publish(s.publish, s.data ?? "", s.reply ? { reply: s.reply } : {});
    }
  } catch (err) {
    process.stderr.write(`${s.publish ?? s.subscribe}: ${err.message}\n`);
  }
}
for (const nc of Object.values(connections)) await nc.flush();
print({ done: true });
process.stdin.resume();
process.stdin.on("end", async () => { for (const nc of Object.values(connections)) await nc.close(); });

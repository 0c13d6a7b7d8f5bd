// A peer that is no agentd: it speaks envelope version 1 over plain NATS, as the
// TypeScript reference system does, and is as strict about what it reads.
//
//   node peer.mjs serve <url>              answers on agents.node-peer.requests
//   node peer.mjs call <url> <envelope>    sends one request to agents.callee.requests
//
// It prints one JSON value a line: {"ready":true}, then each envelope it got. It
// ends when its standard input does.
import { createRequire } from "node:module";
import { join } from "node:path";
import { randomUUID } from "node:crypto";

const base = process.env.AGENTD_NODE_MODULES ?? process.cwd();
const { connect } = createRequire(join(base, "peer.cjs"))("@nats-io/transport-node");

const SELF = "agent://node-peer";
const REQUESTS = "agents.node-peer.requests";
const RESPONSES = "agents.node-peer.responses";

const KNOWN = new Set([
  "version", "kind", "messageId", "correlationId", "causedBy", "from", "to", "capability",
  "replyTo", "deadline", "tenantId", "headers", "payload", "auth",
]);

// decode refuses what the reference system refuses.
function decode(text) {
  const e = JSON.parse(text);
  const need = (ok, what) => { if (!ok) throw new Error(`not an envelope: ${what}: ${text}`); };
  const full = (v) => typeof v === "string" && v.length > 0;
  const optional = (v, ok) => v === undefined || ok(v);
  for (const key of Object.keys(e)) need(KNOWN.has(key), `unknown key ${key}`);
  need(e.version === 1, "version");
  need(["request", "response", "event"].includes(e.kind), "kind");
  for (const key of ["messageId", "correlationId", "capability"]) need(full(e[key]), key);
  for (const key of ["from", "to"]) need(/^agent:\/\/.+/.test(e[key]), key);
  for (const key of ["causedBy", "tenantId"]) need(optional(e[key], full), key);
  need(optional(e.replyTo, (v) => /^(kafka|nats|sqs|amqp|mqtt|memory):\/\/.+/.test(v)), "replyTo");
  need(optional(e.deadline, (v) => Number.isInteger(v) && v > 0), "deadline");
  need(optional(e.headers, (h) => Object.values(h).every((v) => typeof v === "string")), "headers");
  need(optional(e.auth, (a) => a.kind === "internal"), "auth");
  return e;
}

const print = (value) => process.stdout.write(JSON.stringify(value) + "\n");

function respond(nc, request, payload) {
  const topic = request.replyTo.replace(/^nats:\/\//, "");
  nc.publish(topic, JSON.stringify({
    version: 1, kind: "response", messageId: randomUUID(), correlationId: request.correlationId,
    causedBy: request.messageId, from: SELF, to: request.from, capability: request.capability,
    tenantId: request.tenantId, // as the reference system does; undefined is left out
    payload, auth: { kind: "internal" },
  }));
}

function serve(nc) {
  nc.subscribe(REQUESTS, {
    queue: "node-peer",
    callback: (_, m) => {
      const e = decode(m.string());
      print(e);
      if (e.kind !== "request") return;
      if (e.capability === "fail") {
        respond(nc, e, { ok: false, error: { code: "HANDLER_ERROR", message: "it failed", retryable: false } });
      } else {
        respond(nc, e, { ok: true, data: { echoed: e.payload, by: "node" } });
      }
    },
  });
}

// call sends no NATS reply subject: the reference system knows replyTo only.
function call(nc, envelope) {
  nc.subscribe(RESPONSES, { callback: (_, m) => print(decode(m.string())) });
  nc.publish("agents.callee.requests", JSON.stringify({
    version: 1, kind: "request", messageId: randomUUID(), correlationId: randomUUID(), from: SELF, to: "agent://callee",
    replyTo: `nats://${RESPONSES}`, auth: { kind: "internal" }, ...JSON.parse(envelope),
  }));
}

const [, , mode, url, envelope] = process.argv;
const nc = await connect({ servers: url });
if (mode === "serve") serve(nc);
await nc.flush();
print({ ready: true });
if (mode === "call") call(nc, envelope);
process.stdin.resume();
process.stdin.on("end", () => nc.close());

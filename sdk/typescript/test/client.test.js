import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { AgentdError, CallError, connect, ConnectionFailed, JsonError, RefusedError, unwrap, ViolationError } from "../dist/index.js";
import { startAgent } from "./agent.js";

const ok = (response) => ({ status: "ok", correlationId: "c", latencyMs: 1, response });

/** Runs a test with an agent, on a Unix socket unless it says otherwise. */
const withAgent = (name, answer, fn, { tcp = false } = {}) =>
  test(name, async () => {
    const folder = mkdtempSync(join(tmpdir(), "sdk"));
    const socket = join(folder, "a.sock");
    const agent = await startAgent(answer, tcp ? undefined : { path: socket });
    try {
      await fn(tcp ? agent.url : socket, agent);
    } finally {
      await agent.close();
      rmSync(folder, { recursive: true });
    }
  });

withAgent("sends every option, and the payload as it is", ({ text }) => ok(text), async (socket) => {
  const all = { timeoutMs: 0.5, idleTimeoutMs: 2, mode: "sync", idempotencyKey: "k", sessionId: "s", tenantId: "t", traceparent: "p", tracestate: "v=1" };
  const text = unwrap(await connect(socket).request("peer", "find", { n: 10n ** 20n, "é": ["\ud834\udd1e"] }, all));
  assert.equal(text, '{"to":"peer","capability":"find","payload":{"n":100000000000000000000,"é":["\ud834\udd1e"]},"timeoutMs":1,"idleTimeoutMs":2,"mode":"sync","idempotencyKey":"k","sessionId":"s","tenantId":"t","traceparent":"p","tracestate":"v=1"}');
  assert.equal(unwrap(await connect(socket).request("peer", "find")), '{"to":"peer","capability":"find"}');
  await assert.rejects(connect(socket).request("peer", "find", null, { timeoutMs: 0 }), { name: "AgentdError", code: "bad-option" });
  await assert.rejects(connect(socket).request("peer", "find", { n: 2 ** 53 }), { name: "JsonError", pointer: "/n" });
});

withAgent("reads integers exactly or not at all", () => '{"status":"ok","correlationId":"c","latencyMs":0.5,"response":{"a/b":[9007199254740993]}}', async (socket) => {
  await assert.rejects(connect(socket).request("peer", "find"), (e) => e instanceof JsonError && e.pointer === "/a~1b/0");
  for (const asked of [connect(socket).request("peer", "find", null, { bigint: true }), connect(socket, { bigint: true }).request("peer", "find"), connect(socket).awaitResult("c", { bigint: true })]) {
    assert.deepEqual(unwrap(await asked), { "a/b": [9007199254740993n] });
  }
});

withAgent("sends a token to a URL", ({ headers }) => ok([headers.authorization, headers["agentd-call"] ?? null]), async (url) => {
  assert.deepEqual(unwrap(await connect(url + "/", { token: "t-2" }).request("peer", "find")), ["Bearer t-2", null]);
}, { tcp: true });

const failures = {
  error: { status: "error", correlationId: "c", latencyMs: 1, error: { code: "EAGENTRPC_NO_PEER", message: "there is no peer", retryable: true } },
  violation: { status: "schema-violation", correlationId: "c", latencyMs: 1, schemaSide: "request", violations: [{ path: "/n", message: "too large" }], error: { code: "EAGENTRPC_SCHEMA_VIOLATION", message: "it fails", retryable: false } },
  queued: { status: "ok", correlationId: "c", latencyMs: 1, queued: true },
};

withAgent("a call that was made resolves, and unwrap throws", ({ body }) => failures[body.capability], async (socket) => {
  const agent = connect(socket);
  const failed = await agent.request("peer", "error");
  assert.equal(failed.status, "error");
  assert.throws(() => unwrap(failed), (e) => e instanceof CallError && e instanceof AgentdError && !(e instanceof ViolationError) && e.code === "EAGENTRPC_NO_PEER" && e.retryable && e.result === failed && e.message === "there is no peer");
  const violation = await agent.request("peer", "violation");
  assert.throws(() => unwrap(violation), (e) => e instanceof ViolationError && e instanceof CallError && e.name === "ViolationError" && e.violations[0].path === "/n");
  const queued = await agent.request("peer", "queued", null, { mode: "async" });
  assert.throws(() => unwrap(queued), { name: "AgentdError", code: "no-response" });
});

const refusals = {
  refused: { http: 403, body: { error: { code: "EAGENTRPC_DENIED", message: "no" } } },
  strange: { http: 404, body: "<html>" },
  garbage: "<html>",
  other: { hello: 1 },
};

withAgent("a call that was not made rejects", ({ body }) => refusals[body.capability], async (socket) => {
  const agent = connect(socket);
  await assert.rejects(agent.request("peer", "refused"), (e) => e instanceof RefusedError && e.code === "EAGENTRPC_DENIED" && e.httpStatus === 403 && e.message === "no");
  await assert.rejects(agent.request("peer", "strange"), { name: "RefusedError", code: "http", httpStatus: 404 });
  for (const what of ["garbage", "other"]) {
    await assert.rejects(agent.request("peer", what), { name: "ConnectionFailed", code: "bad-response" });
    await assert.rejects(agent.stream("peer", what).result, { name: "ConnectionFailed", code: "bad-response" });
  }
});

test("says where nobody answers", async () => {
  await assert.rejects(connect("/nowhere.sock").request("peer", "find"), (e) => e instanceof ConnectionFailed && e.code === "not-running" && e.message.includes("/nowhere.sock") && e.cause.code === "ENOENT");
  await assert.rejects(connect().request("peer", "find"), { name: "ConnectionFailed", code: "no-endpoint" });
  const stream = connect("/nowhere.sock").stream("peer", "find");
  await assert.rejects(async () => {
    for await (const _ of stream);
  }, { code: "not-running" }); // and its result, which nobody awaits, is no unhandled rejection
});

withAgent("finds the agent by the environment, and no proxy", () => ok(7), async (socket) => {
  Object.assign(process.env, { AGENTD_SOCKET: socket, http_proxy: "http://127.0.0.1:1" });
  assert.equal(unwrap(await connect().request("peer", "find")), 7);
  delete process.env.AGENTD_SOCKET;
});

let arrived;

withAgent("a signal ends the call", () => arrived(), async (socket, agent) => {
  const abort = new AbortController();
  arrived = () => void abort.abort(new Error("enough")); // and no response
  const left = agent.left();
  await assert.rejects(connect(socket).request("peer", "find", null, { signal: abort.signal }), { message: "enough" });
  await left;
  await assert.rejects(connect(socket).request("peer", "find", null, { signal: abort.signal }), { message: "enough" });
  arrived = () => undefined;
  await assert.rejects(connect(socket).stream("peer", "find", null, { signal: AbortSignal.timeout(1) }).result, { name: "TimeoutError" });
});

const lines = [1, 2, 3].map((seq) => ({ progress: { seq, attempt: 1, value: { seq } } }));

withAgent("iterates over progress, and then has the result", () => [...lines, { result: ok("done") }], async (socket) => {
  const stream = connect(socket).stream("peer", "find");
  const values = [];
  for await (const { value } of stream) values.push(value.seq);
  assert.deepEqual(values, [1, 2, 3]);
  assert.equal(unwrap(await stream.result), "done");
  const left = connect(socket).stream("peer", "find");
  for await (const { seq } of left) if (seq === 1) break;
  assert.equal(unwrap(await left.result), "done");
  assert.equal(unwrap(await connect(socket).stream("peer", "find").result), "done");
});

withAgent("progress that would be rounded is an error, and the result is not", () => ['{"progress":{"seq":1,"attempt":1,"value":{"n":9007199254740993}}}', { result: ok("done") }], async (socket) => {
  const stream = connect(socket).stream("peer", "find");
  await assert.rejects(async () => {
    for await (const _ of stream);
  }, { name: "JsonError", pointer: "/n" });
  assert.equal(unwrap(await stream.result), "done");
});

withAgent("a stream that ends without a result is no result", () => [lines[0]], async (socket) => {
  await assert.rejects(connect(socket).stream("peer", "find").result, { name: "ConnectionFailed", code: "bad-response" });
});

import assert from "node:assert/strict";
import { test } from "node:test";

import { limits, startWorker } from "./host.js";

const started = async (env, initialize) => {
  const worker = startWorker("worker.mjs", env);
  const { result } = await worker.initialize(initialize);
  return { worker, result };
};

/** Runs a test on a worker that has been initialized, which must then end as it should. */
const onWorker = (name, fn, env, initialize) =>
  test(name, async () => {
    const { worker } = await started(env, initialize);
    try {
      await fn(worker);
      assert.equal(await worker.end(), 0, worker.log);
    } finally {
      worker.child.kill("SIGKILL"); // where it has not ended
    }
  });

test("says what it serves, and how many calls at once", async () => {
  const { worker, result } = await started();
  assert.equal(result.protocolVersion, 1);
  assert.equal(result.concurrency, 8);
  assert.ok(result.capabilities.includes("echo"));
  assert.equal(await worker.end(), 0);
});

onWorker("what is printed goes to the log, and what it starts is no worker", async (worker) => {
  assert.deepEqual((await worker.call("prints")).result, { answer: null });
  assert.deepEqual((await worker.call("environment")).result, { answer: "undefined\n" });
  await worker.call("logs");
  worker.child.stdin.end();
  await worker.exited;
  for (const text of ["by console.log\n", "by console.table", "by process.stdout\n"]) assert.ok(worker.log.includes(text), worker.log);
  assert.match(worker.log, /^level=warn msg="two\\nlines" correlationId=c-1 traceId=0af7651916cd43dd8448eb211c80319c n=1 text="a b" error="Error: deep\\n.*"$/m);
});

onWorker("knows its call", async (worker) => {
  const given = { callerProven: true, sessionId: "s", tracestate: "v=1", tenantId: "acme", idempotencyKey: "k", deadlineMs: 4102444800000, event: true, progress: true };
  const { answer } = (await worker.call("context", null, given)).result;
  const { progress: wantsProgress, ...same } = given;
  assert.deepEqual(answer, {
    ...same, wantsProgress, agent: "agent://callee", capability: "context", caller: "agent://caller", correlationId: "c-1", messageId: "m-1",
    traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", hops: 1, same: true,
  });
});

onWorker("a call without arguments is {} where the schema takes an object", async (worker) => {
  assert.deepEqual((await worker.call("echo", null)).result, { answer: {} });
}, {}, { capabilities: [{ name: "echo", inputSchema: { type: ["object", "string"] } }, { name: "value", inputSchema: { type: ["object", "null"] } }] });

onWorker("tells failures for the caller from those for the log", async (worker) => {
  assert.deepEqual((await worker.call("fails")).error, { code: -32000, message: "no such pull request", data: { retryable: true } });
  assert.equal((await worker.call("nothing")).error.code, -32602);
  const bug = (await worker.call("nested", null)).error; // destructures null
  assert.equal(bug.code, -32603);
  assert.ok(!JSON.stringify(bug).includes("hunter2"));
  assert.equal((await worker.call("wordless")).error.code, -32603);
  assert.equal((await worker.call("echo", 1)).result.answer, 1); // and it serves on
  worker.child.stdin.end();
  await worker.exited;
  assert.match(worker.log, /caused by Error: db password is hunter2/);
});

onWorker("an integer that it would round fails its call alone, and names the place", async (worker) => {
  const message = '{"jsonrpc":"2.0","id":70,"method":"invoke","params":{"capability":"echo","payload":{"a":[1,{"n":9007199254740993}]}}}';
  worker.send(message);
  const { id, error } = await worker.next();
  assert.equal(id, 70);
  assert.equal(error.code, -32000);
  assert.match(error.message, /^the payload does not fit the skill: \/a\/1\/n: an integer beyond 2\^53/);
  assert.ok(!error.message.includes("9007199254740993"));
  assert.deepEqual((await worker.call("echo", 1)).result, { answer: 1 });
});

onWorker("an answer that is no message fails its call alone", async (worker) => {
  for (const [kind, text] of [["surrogate", "no Unicode"], ["rounded", "use a bigint"], ["long", "longer than a message"], ["deep", "more than 512 levels"]]) {
    const { error } = await worker.call("value", kind);
    assert.equal(error.code, -32603, kind);
    assert.ok(error.message.includes(text), error.message);
  }
  worker.invoke("value", "exact");
  assert.deepEqual((await worker.next()).result, { answer: Number(2n ** 64n) }); // this reader rounds
});

test("a cancelled call has a signal that is aborted", async () => {
  const { worker } = await started();
  const ids = [worker.invoke("wait"), worker.invoke("stubborn"), worker.invoke("wait")];
  worker.send({ method: "cancel", params: { id: ids[1], reason: "deadline" } });
  assert.deepEqual(await worker.next(), { jsonrpc: "2.0", id: ids[1], result: { answer: "TimeoutError" } });
  worker.send({ method: "cancel", params: { id: ids[0], reason: "caller" } });
  const { id, error } = await worker.next();
  assert.deepEqual([id, error.code, error.data], [ids[0], -32800, { retryable: true }]);
  // The deadline of a call counts even if agentd does not say so, and that has been passed.
  const late = await worker.call("wait", null, { deadlineMs: 1 });
  assert.equal(late.error.code, -32800);
  // The end of the input cancels what still runs.
  worker.child.stdin.end();
  assert.equal((await worker.next()).id, ids[2]);
  assert.equal(await worker.exited, 0);
});

onWorker("reports progress where it is wanted, and while its call runs", async (worker) => {
  const id = worker.invoke("progress", { n: 1 }, { progress: true });
  assert.deepEqual(await worker.next(), { jsonrpc: "2.0", method: "progress", params: { id, value: { n: 1 } } });
  assert.deepEqual((await worker.next()).result, { answer: { wanted: true, refused: "too-large" } });
  assert.deepEqual((await worker.call("late")).result, { answer: { wanted: false } });
  assert.deepEqual((await worker.call("progress", 1)).result, { answer: { wanted: false, refused: "" } });
});

const usage = { provider: "openai", model: "gpt-5/mini", inputTokens: 12, outputTokens: 3 };

onWorker("reports what models used, while its call runs", async (worker) => {
  const id = worker.invoke("use", [usage]);
  assert.deepEqual(await worker.next(), { jsonrpc: "2.0", method: "modelUsage", params: { id, usage: { ...usage, operation: "chat", durationMs: 0 } } });
  assert.deepEqual((await worker.next()).result, { answer: [true] });
  assert.deepEqual((await worker.call("use-late")).result, { answer: "EAGENTRPC_INVALID_REQUEST" });
  worker.invoke("use", [usage, usage, usage]);
  assert.deepEqual([(await worker.next()).method, (await worker.next()).method], ["modelUsage", "modelUsage"]);
  assert.match((await worker.next()).result.answer, /2 reports/);
  for (const wrong of [{ model: "a b" }, { model: 7 }, { provider: "" }, { model: "x".repeat(129) }, { inputTokens: -1 }, { outputTokens: 1e9 + 1 }, { inputTokens: 1.5 }, { inputTokens: "1" }, { operation: "dream" }, { durationMs: 3_600_001 }]) {
    assert.match((await worker.call("use", [{ ...usage, ...wrong }])).result.answer, new RegExp(`^(Type|Range)Error: ${Object.keys(wrong)[0]}`));
  }
}, {}, { limits: { ...limits, maxModelUsages: 2 } });

onWorker("reports nothing to an agentd that takes no reports", async (worker) => {
  assert.deepEqual((await worker.call("use", [usage])).result, { answer: [false] });
});

onWorker("waits for an agentd that reads slowly", async (worker) => {
  worker.child.stdout.pause();
  worker.invoke("flood", 200, { progress: true });
  worker.send({ id: 99, method: "ping", params: {} }); // which is read all the same
  worker.child.stdout.resume();
  let events = 0, answer, pinged = false;
  while (answer === undefined) {
    const message = await worker.next();
    if (message.method === "progress") events++;
    else if (message.id === 99) pinged = true;
    else ({ answer } = message.result);
  }
  assert.equal(events, 200);
  assert.ok(pinged);
  assert.ok(answer < 1 << 20, `${answer} bytes waited`);
});

onWorker("makes nested calls as a part of its call", async (worker) => {
  const ids = ["client", "call"].map((by) => worker.invoke("nested", { by, options: { timeoutMs: 5, idempotencyKey: "k" } }));
  const asked = [await worker.next(), await worker.next()];
  for (const { id, method, params } of asked) {
    assert.equal(method, "requestAgent");
    const { by } = params.request.payload;
    const call = ids[by === "client" ? 0 : 1];
    assert.deepEqual(params, { call, request: { to: "peer", capability: "find", payload: { by }, timeoutMs: 5, idempotencyKey: "k" } });
    worker.send({ id, result: { status: "ok", correlationId: by, latencyMs: 1, response: by } });
    const answer = await worker.next();
    assert.deepEqual([answer.id, answer.result.answer.response], [call, by]);
  }
});

onWorker("streams the progress of nested calls", async (worker) => {
  const outer = worker.invoke("stream");
  const { id, params } = await worker.next();
  assert.equal(params.progress, true);
  worker.send(`{"jsonrpc":"2.0","method":"progress","params":{"id":${id},"seq":1,"attempt":1,"value":9007199254740993}}`);
  worker.send({ method: "progress", params: { id, seq: 3, attempt: 1, value: null } });
  worker.send(`{"jsonrpc":"2.0","id":${id},"result":{"status":"ok","correlationId":"n","latencyMs":1,"response":-9007199254740993}}`);
  const answer = await worker.next();
  assert.equal(answer.id, outer);
  assert.deepEqual(answer.result.answer.events.map(({ seq }) => seq), [1, 3]);
});

onWorker("requests that a call leaves behind end with it", async (worker) => {
  worker.invoke("abandons");
  const { id, method } = await worker.next();
  assert.equal(method, "requestAgent");
  assert.deepEqual((await worker.next()).result, { answer: 1 });
  worker.send({ id, error: { code: -32001, message: "it has ended" } }); // which nobody waits for
  assert.deepEqual((await worker.call("late")).result, { answer: { wanted: "RefusedError 403" } });
  worker.child.stdin.end();
  await worker.exited;
  assert.match(worker.log, /abandoned: the call that this one would be part of has ended/);
});

onWorker("cancels a nested call whose signal is aborted", async (worker) => {
  worker.invoke("cancels");
  const { id } = await worker.next();
  assert.deepEqual(await worker.next(), { jsonrpc: "2.0", method: "cancel", params: { id, reason: "caller" } });
  assert.deepEqual((await worker.next()).result, { answer: "enough" });
});

onWorker("says why a nested call was not made", async (worker) => {
  assert.deepEqual((await worker.call("refused")).result, { answer: "RefusedError EAGENTRPC_PAYLOAD_TOO_LARGE" });
  for (const [code, name] of [[-32001, "EAGENTRPC_INVALID_REQUEST 403"], [-32002, "EAGENTRPC_BUSY 429"], [-32602, "EAGENTRPC_INVALID_REQUEST 400"], [-32603, "EAGENTRPC_INTERNAL 500"]]) {
    worker.invoke("raises");
    const { id } = await worker.next();
    worker.send({ id, error: { code, message: "no" } });
    assert.deepEqual((await worker.next()).result, { answer: "RefusedError " + name });
  }
});

test("does not read a line without end", async () => {
  const { worker } = await started({}, { limits: { maxPayloadBytes: 1000 } });
  worker.child.stdin.on("error", () => {}); // it has gone
  worker.child.stdin.write("x".repeat(3 << 20));
  assert.equal(await worker.exited, 1);
  assert.match(worker.log, /a line of more than 1049577 bytes/);
});

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { test } from "node:test";

import { programs } from "./host.js";
import { startAgent } from "./agent.js";

/** Runs the program for one call. */
async function run(capability, input, { env = {}, onLog } = {}) {
  const child = spawn(process.execPath, [programs + "process.mjs"], { env: { PATH: process.env.PATH, AGENTD_CAPABILITY: capability, AGENTD_CALLER: "agent://caller", ...env } });
  let stdout = "", stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text) => {
    stderr += text;
    onLog?.(text, child);
  });
  child.stdin.on("error", () => {});
  child.stdin.end(input);
  const status = await new Promise((resolve) => child.on("close", (code, signal) => resolve(code ?? signal)));
  return { status, stdout, stderr };
}

test("answers the call that it was started for", async () => {
  const { status, stdout, stderr } = await run("echo", '{"n":1}', { env: { AGENTD_HOPS: "3", AGENTD_DEADLINE: "4102444800000" } });
  assert.equal(status, 0, stderr);
  assert.deepEqual(JSON.parse(stdout), { payload: { n: 1 }, caller: "agent://caller", hops: 3, deadlineMs: 4102444800000 });
  assert.match(stderr, /^printed$/m);
  assert.equal(JSON.parse((await run("echo", " \n")).stdout).payload, null);
});

test("writes a failure for the caller, and no other", async () => {
  for (const [retryable, status] of [[false, 1], [true, 75]]) {
    const failed = await run("fails", JSON.stringify({ retryable }));
    assert.deepEqual([failed.status, JSON.parse(failed.stdout)], [status, { error: { message: "no such pull request", retryable } }]);
  }
  for (const [capability, input, text] of [["bug", "1", "hunter2"], ["nothing", "1", 'nothing serves the capability "nothing"'], ["echo", '{"secret":', "the payload is no JSON"]]) {
    const { status, stdout, stderr } = await run(capability, input);
    assert.deepEqual([status, stdout], [1, ""], stderr);
    assert.ok(stderr.includes(text) && !stderr.includes('"secret"'), stderr);
  }
  const rounded = await run("echo", "[9007199254740993]");
  assert.match(JSON.parse(rounded.stdout).error.message, /the payload does not fit the skill: \/0: an integer/);
});

test("SIGTERM aborts the signal of the call, which may be repeated", async () => {
  const { status, stdout, stderr } = await run("wait", "null", { onLog: (text, child) => text.includes("waiting") && child.kill("SIGTERM") });
  assert.deepEqual([status, stdout], [75, ""], stderr);
});

test("asks its agent as a part of its call", async () => {
  const agent = await startAgent(({ method, url, body, headers }) => {
    assert.equal(headers["agentd-call"], "t-1");
    if (url === "/v1/agent/progress") return { wanted: body.done === 1 };
    const ok = (response) => ({ status: "ok", correlationId: "c", latencyMs: 1, response });
    if (method === "GET") return ok(url);
    return headers.accept.includes("ndjson") ? [{ progress: { seq: 1, attempt: 1, value: "half" } }, { result: ok(body.payload) }] : ok(body.payload);
  });
  const { status, stdout, stderr } = await run("asks", "null", { env: { AGENTD_URL: agent.url, AGENTD_CALL: "t-1", http_proxy: "http://127.0.0.1:1", HTTP_PROXY: "http://127.0.0.1:1", NODE_USE_ENV_PROXY: "1" } });
  await agent.close();
  assert.equal(status, 0, stderr);
  assert.deepEqual(JSON.parse(stdout), { wanted: true, events: ["half"], result: 1, same: 2, later: "/v1/results/c%2F1?timeoutMs=30000" });
});

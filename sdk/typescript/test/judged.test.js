// The judge is a program: AGENTD_BIN names agentd.
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { test } from "node:test";

import { connect, SkillError, unwrap } from "../dist/index.js";
import { SkillTest } from "../dist/testing.js";

const file = (name) => fileURLToPath(new URL("./judged/" + name, import.meta.url));
const agent = connect();

const handlers = {
  review: async ({ n, how }, call) => {
    await call.progress({ n });
    await call.modelUsage({ provider: "openai", model: "m", inputTokens: 12 });
    switch (how) {
      case "fail":
        throw new SkillError("come back later", true);
      case "bug":
        throw new TypeError("a bug");
      case "lie":
        return "perhaps";
      case "wait":
        unwrap(await agent.request("librarian", "wait"));
        throw call.signal.reason;
    }
    const stream = agent.stream("agent://librarian", "find", { n }, { idempotencyKey: "k" });
    const seen = [];
    for await (const { value } of stream) seen.push(value);
    const found = await stream.result;
    if (found.status !== "ok") throw new SkillError(`${found.status}: ${found.error.message}`);
    return { caller: call.caller, found: found.response, seen };
  },
};

const withTest = (name, fn, options = {}) =>
  test(name, { skip: process.env.AGENTD_BIN ? false : "AGENTD_BIN does not name agentd" }, async () => {
    const answers = {
      find: async function* ({ n }) {
        yield "searching";
        if (n === 7) throw new SkillError("seven is lost");
        return n === 8 ? "no list" : [n];
      },
      wait: () => skill.cancel(),
    };
    const skill = new SkillTest(handlers, file("reviewer.yaml"), { peers: [{ capabilities: file("librarian.yaml"), answers }], ...options });
    try {
      await fn(skill);
    } finally {
      await skill.close();
    }
  });

withTest("calls the handler, and plays its peers", async (skill) => {
  const result = await skill.call("review", { n: 1 }, { caller: "agent://desk" });
  assert.deepEqual(unwrap(result), { caller: "agent://desk", found: [1], seen: ["searching"] });
  assert.deepEqual(skill.requests, [{ to: "agent://librarian", capability: "find", payload: { n: 1 }, options: { idempotencyKey: "k" } }]);
  assert.deepEqual(skill.progress, [{ n: 1 }]);
  assert.deepEqual(skill.modelUsages, [{ provider: "openai", model: "m", operation: "chat", inputTokens: 12, outputTokens: 0, durationMs: 0 }]);
});

withTest("judges both schemas, of the skill and of its peers", async (skill) => {
  const request = await skill.call("review", { n: "1" });
  assert.deepEqual([request.status, request.schemaSide, request.violations[0].path], ["schema-violation", "request", "/n"]);
  const response = await skill.call("review", { n: 1, how: "lie" });
  assert.deepEqual([response.status, response.schemaSide], ["schema-violation", "response"]);
  const asked = await skill.call("review", { n: 100 });
  assert.match(asked.error.message, /^schema-violation: capability "find" request failed/);
  const answered = await skill.call("review", { n: 8 });
  assert.match(answered.error.message, /^schema-violation: capability "find" response failed/);
  assert.equal((await skill.call("nothing")).error.code, "EAGENTRPC_NO_CAPABILITY");
});

withTest("shows the caller what a caller sees, and the test the rest", async (skill) => {
  const failed = await skill.call("review", { n: 1, how: "fail" });
  assert.deepEqual([failed.status, failed.error.message, failed.error.retryable], ["error", "come back later", true]);
  assert.match((await skill.call("review", { n: 7 })).error.message, /seven is lost/);
  await assert.rejects(skill.call("review", { n: 1, how: "bug" }), { name: "TypeError" });
  const cancelled = await skill.call("review", { n: 1, how: "wait" });
  assert.deepEqual([cancelled.status, cancelled.error.code], ["abandoned", "EAGENTRPC_CANCELLED"]);
});

withTest("has integers exactly", async (skill) => {
  const n = 9007199254740993n;
  assert.match((await skill.call("review", { n })).error.message, /the payload does not fit the skill: \/n/);
});

withTest("has integers as bigint", async (skill) => {
  const n = -9007199254740993n;
  assert.deepEqual(unwrap(await skill.call("review", { n })).found, [n]);
}, { bigint: true });

test("says that nobody judges", async () => {
  const skill = new SkillTest(handlers, "x.yaml", { agentd: "/nowhere/agentd" });
  await assert.rejects(skill.call("review", 1), { code: "no-judge", message: /AGENTD_BIN/ });
  await skill.close();
});

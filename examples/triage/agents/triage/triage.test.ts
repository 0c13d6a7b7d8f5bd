import assert from "node:assert/strict";
import { test } from "node:test";

import { unwrap } from "@agentd/sdk";
import { SkillTest } from "@agentd/sdk/testing";

import { triageIssue } from "./triage.ts";

const owners = {
  capabilities: `${import.meta.dirname}/../owners/capabilities.yaml`,
  answers: { "find-owner": ({ text }: { text: string }) => (text.includes("broker") ? { team: "transport" } : {}) },
};
const skill = new SkillTest({ "triage-issue": triageIssue }, `${import.meta.dirname}/capabilities.yaml`, { peers: [owners] });
test.after(() => skill.close());

for (const [title, body, want] of [
  ["Crash when the broker restarts", "", { labels: ["bug"], priority: "p2", team: "transport" }],
  ["CVE-2026-1 in the parser", "It panics.", { labels: ["security", "bug"], priority: "p1" }],
  ["How do I log in?", "", { labels: ["question"], priority: "p3" }],
] as const) {
  test(title, async () => {
    assert.deepEqual(unwrap(await skill.call("triage-issue", { title, body, author: "ada" })), want);
  });
}

test("an issue without a title is refused before the skill sees it", async () => {
  const result = await skill.call("triage-issue", { title: "", body: "", author: "ada" });
  assert.equal(result.status, "schema-violation");
});

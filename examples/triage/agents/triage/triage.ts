import { type Call, unwrap } from "@agentd/sdk";

import { Client } from "./generated/owners.ts";
import type { TriageIssueRequest, TriageIssueResponse } from "./generated/triage.ts";

type Label = TriageIssueResponse["labels"][number];

const rules: ReadonlyArray<[Label, RegExp]> = [
  ["security", /\bCVE-\d|vulnerab|\bexploit|credentials? leak/i],
  ["bug", /\bcrash|\bpanic|\bexception|stack trace|regression|does not work|\berror\b/i],
  ["docs", /\btypo\b|\bdocs?\b|documentation|readme/i],
  ["question", /\?\s*$|\bhow (do|can|to)\b/i],
];

export async function triageIssue(issue: TriageIssueRequest, call: Call): Promise<TriageIssueResponse> {
  const text = `${issue.title}\n${issue.body}`;
  const labels = rules.filter(([label, pattern]) => pattern.test(label === "question" ? issue.title : text)).map(([label]) => label);
  const priority = labels.includes("security") ? "p1" : labels.includes("bug") ? "p2" : "p3";
  const { team } = unwrap(await new Client(call).findOwner({ text: text.slice(0, 10_000) }));
  call.log.info("triaged", { priority, team: team ?? "nobody" });
  return { labels, priority, ...(team === undefined ? {} : { team }) };
}

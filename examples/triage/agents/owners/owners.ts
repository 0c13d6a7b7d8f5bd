import { readFileSync } from "node:fs";

import type { FindOwnerRequest, FindOwnerResponse } from "./generated/owners.ts";

// Read once: the worker stays.
const teams = JSON.parse(readFileSync(`${import.meta.dirname}/owners.json`, "utf8")) as Record<string, string[]>;

export function findOwner({ text }: FindOwnerRequest): FindOwnerResponse {
  const words = new Set(text.toLowerCase().match(/\w+/g));
  const [best] = Object.entries(teams)
    .map(([team, theirs]) => ({ team, hits: theirs.filter((word) => words.has(word)).length }))
    .filter(({ hits }) => hits > 0)
    .sort((a, b) => b.hits - a.hits);
  return best ? { team: best.team } : {};
}

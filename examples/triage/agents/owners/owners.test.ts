import assert from "node:assert/strict";
import { test } from "node:test";

import { findOwner } from "./owners.ts";

test("the team with most of the words owns it", () => {
  assert.deepEqual(findOwner({ text: "The JSON parser reports a violation after a timeout" }), { team: "schemas" });
  assert.deepEqual(findOwner({ text: "It rains" }), {});
});

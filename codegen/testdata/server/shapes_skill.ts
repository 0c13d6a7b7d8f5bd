// The skill of agent://shapes: the code behind its capabilities.
import { serve, SkillError } from "./shapes.ts";

await serve({
  // No schemas */ and """ a hostile
  // description: \ pyright: basic
  // @ ts-nocheck
  "loose": async (payload, call) => {
    // Write it here, and return the response.
    throw new SkillError(`${call.capability} is not written yet, and got ${typeof payload}`);
  },
  "nullable": async (payload, call) => {
    // Write it here, and return the response.
    throw new SkillError(`${call.capability} is not written yet, and got ${typeof payload}`);
  },
  "tagged-union": async (payload, call) => {
    // Write it here, and return the response.
    throw new SkillError(`${call.capability} is not written yet, and got ${typeof payload}`);
  },
  "tree": async (payload, call) => {
    // Write it here, and return the response.
    throw new SkillError(`${call.capability} is not written yet, and got ${typeof payload}`);
  },
  "endless": async (payload, call) => {
    // Write it here, and return the response.
    throw new SkillError(`${call.capability} is not written yet, and got ${typeof payload}`);
  },
  "intersections": async (payload, call) => {
    // Write it here, and return the response.
    throw new SkillError(`${call.capability} is not written yet, and got ${typeof payload}`);
  },
  "empty": async (payload, call) => {
    // Write it here, and return the response.
    throw new SkillError(`${call.capability} is not written yet, and got ${typeof payload}`);
  },
  "maps": async (payload, call) => {
    // Write it here, and return the response.
    throw new SkillError(`${call.capability} is not written yet, and got ${typeof payload}`);
  },
  "get-user": async (payload, call) => {
    // Write it here, and return the response.
    throw new SkillError(`${call.capability} is not written yet, and got ${typeof payload}`);
  },
  "get_user": async (payload, call) => {
    // Write it here, and return the response.
    throw new SkillError(`${call.capability} is not written yet, and got ${typeof payload}`);
  },
  "getUser": async (payload, call) => {
    // Write it here, and return the response.
    throw new SkillError(`${call.capability} is not written yet, and got ${typeof payload}`);
  },
  "3d-render": async (payload, call) => {
    // Write it here, and return the response.
    throw new SkillError(`${call.capability} is not written yet, and got ${typeof payload}`);
  },
  "import": async (payload, call) => {
    // Write it here, and return the response.
    throw new SkillError(`${call.capability} is not written yet, and got ${typeof payload}`);
  },
  "close": async (payload, call) => {
    // Write it here, and return the response.
    throw new SkillError(`${call.capability} is not written yet, and got ${typeof payload}`);
  },
  "serve": async (payload, call) => {
    // Write it here, and return the response.
    throw new SkillError(`${call.capability} is not written yet, and got ${typeof payload}`);
  },
  "names": async (payload, call) => {
    // Write it here, and return the response.
    throw new SkillError(`${call.capability} is not written yet, and got ${typeof payload}`);
  },
  "enums": async (payload, call) => {
    // Write it here, and return the response.
    throw new SkillError(`${call.capability} is not written yet, and got ${typeof payload}`);
  },
  "corners": async (payload, call) => {
    // Write it here, and return the response.
    throw new SkillError(`${call.capability} is not written yet, and got ${typeof payload}`);
  },
  "merges": async (payload, call) => {
    // Write it here, and return the response.
    throw new SkillError(`${call.capability} is not written yet, and got ${typeof payload}`);
  },
  "annotated": async (payload, call) => {
    // Write it here, and return the response.
    throw new SkillError(`${call.capability} is not written yet, and got ${typeof payload}`);
  },
  "inherited": async (payload, call) => {
    // Write it here, and return the response.
    throw new SkillError(`${call.capability} is not written yet, and got ${typeof payload}`);
  },
  "a1": async (payload, call) => {
    // Write it here, and return the response.
    throw new SkillError(`${call.capability} is not written yet, and got ${typeof payload}`);
  },
  "a-1": async (payload, call) => {
    // Write it here, and return the response.
    throw new SkillError(`${call.capability} is not written yet, and got ${typeof payload}`);
  },
  "literal": async (payload, call) => {
    // Write it here, and return the response.
    throw new SkillError(`${call.capability} is not written yet, and got ${typeof payload}`);
  },
});

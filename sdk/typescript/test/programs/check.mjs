// The worker that `agentd skill check` runs: the capabilities of docs/worker-protocol.md.
import { once } from "node:events";

import { serve, SkillError } from "../../dist/index.js";

await serve(
  {
    "check-echo": (payload) => payload,
    "check-context": (_, { caller, callerProven, correlationId, messageId, sessionId, tenantId, idempotencyKey, traceparent, hops, deadlineMs }) => ({
      caller, callerProven, correlationId, messageId, sessionId, tenantId, idempotencyKey, traceparent, hops, deadlineMs,
    }),
    "check-fail": ({ message, retryable }) => {
      throw new SkillError(message, retryable);
    },
    "check-bug": (payload) => {
      throw new Error("a bug: " + payload);
    },
    "check-wait": async (_, call) => {
      if (!call.signal.aborted) await once(call.signal, "abort");
      throw call.signal.reason;
    },
    "check-progress": async (payload, call) => {
      for (const item of payload) await call.progress(item);
      return payload.length;
    },
    "check-nested": ({ to, capability, payload, ...options }, call) => call.request(to, capability, payload, options),
  },
  { concurrency: 4, bigint: true },
);

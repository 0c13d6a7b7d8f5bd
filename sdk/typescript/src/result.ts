import { AgentdError, CallError, ViolationError } from "./errors.js";

/** One way in which a value fails its schema. */
export interface Violation {
  /** An RFC 6901 pointer. */
  path: string;
  message: string;
}

/** Why a call is not ok. */
export interface CallFailure {
  /** One of agentd's codes, such as `EAGENTRPC_NO_PEER`. */
  code: string;
  message: string;
  /** The same call may succeed later. */
  retryable: boolean;
  /** The address of the agent that found the fault. */
  detectedBy?: string;
  /** An object that depends on the code. */
  details?: unknown;
}

/** What every result says. Where a member is absent, there is nothing to say. */
export interface Outcome {
  /** Names the call in the logs and audit records of both agents. */
  correlationId: string;
  /** That of the W3C trace that the call belongs to. */
  traceId?: string;
  /** How long the call took, in milliseconds. */
  latencyMs: number;
  /** How long the skill ran, in milliseconds, by the callee's word. */
  executionTimeMs?: number;
  /** What the contract declares, in units of the callee's owner. */
  costEstimate?: Record<string, number>;
  /** The answer repeats that to an earlier call with the same idempotency key. */
  replayed?: boolean;
  /** A broker has stored the call, and there is no answer yet. */
  queued?: boolean;
  /** It is not proven that the contracts of both ends agree. */
  unproven?: boolean;
  /** Why not. */
  unprovenReason?: string;
}

/** The peer has answered. A call of mode `async` or `fire-and-forget` is ok without a `response`. */
export type Ok<T> = Outcome & { status: "ok"; response: T };

/** There is no answer. */
export type Failed = Outcome & { status: "error" | "timeout" | "abandoned" | "busy"; error: CallFailure };

/** The payload or the answer has failed its schema. */
export type SchemaViolation = Outcome & {
  status: "schema-violation";
  schemaSide: "request" | "response";
  violations: Array<Violation>;
  /** How many more there are than are listed. */
  violationsOmitted?: number;
  /** The answer that failed its schema, where this end found that. */
  response?: unknown;
  error: CallFailure;
};

/** The outcome of a call, told apart by `status`. */
export type Result<T = unknown> = Ok<T> | Failed | SchemaViolation;

/** One report of a peer's skill while it runs. */
export interface ProgressEvent<P = unknown> {
  /** Counts the events of one attempt, from 1. A gap means that events were lost. */
  seq: number;
  /** Counts the requests that the call has made, from 1. */
  attempt: number;
  value: P;
}

/**
 * Returns the response of a call.
 *
 * @throws {@link ViolationError} where the payload or the answer failed its schema, {@link CallError} with any
 * other status than `ok`, and {@link AgentdError} (`no-response`) where the call does not wait for an answer.
 */
export function unwrap<T>(result: Result<T>): T {
  switch (result.status) {
    case "ok":
      if (!Object.hasOwn(result, "response")) {
        throw new AgentdError("no-response", `the call ${result.correlationId} has no response${result.queued ? " yet: await its result" : ""}`);
      }
      return result.response;
    case "schema-violation":
      throw new ViolationError(result);
    default:
      throw new CallError(result);
  }
}

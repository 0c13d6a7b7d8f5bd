import type { CallFailure, Failed, SchemaViolation, Violation } from "./result.js";

/** The root of the errors of this package. {@link SkillError} stands apart: it is the author's own. */
export class AgentdError extends Error {
  /** What went wrong, for programs: a code of agentd such as `EAGENTRPC_NO_PEER`, or one of this package. */
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }

  static {
    AgentdError.prototype.name = "AgentdError";
  }
}

/** A call was made, and its result is not `ok`. {@link unwrap} throws it. */
export class CallError extends AgentdError {
  /** The whole outcome. */
  readonly result: Failed | SchemaViolation;
  /** The same call may succeed later. */
  readonly retryable: boolean;

  constructor(result: Failed | SchemaViolation) {
    const error: CallFailure = result.error;
    super(error.code, error.message);
    this.result = result;
    this.retryable = error.retryable;
  }

  static {
    CallError.prototype.name = "CallError";
  }
}

/** The payload or the answer of a call has failed its schema. */
export class ViolationError extends CallError {
  declare readonly result: SchemaViolation;

  /** One entry for each way in which the value fails. */
  get violations(): readonly Violation[] {
    return this.result.violations;
  }

  static {
    ViolationError.prototype.name = "ViolationError";
  }
}

/**
 * The agent cannot be reached, or the connection broke. A call whose connection broke
 * may have been made: repeat it with an idempotency key.
 */
export class ConnectionFailed extends AgentdError {
  static {
    ConnectionFailed.prototype.name = "ConnectionFailed";
  }
}

/** agentd refused to make the call: nothing has reached the peer. */
export class RefusedError extends AgentdError {
  /** The HTTP status of the refusal, or the one that HTTP has for it. */
  readonly httpStatus: number;

  constructor(code: string, message: string, httpStatus: number) {
    super(code, message);
    this.httpStatus = httpStatus;
  }

  static {
    RefusedError.prototype.name = "RefusedError";
  }
}

/** Why a value cannot be carried between JSON and JavaScript as it is. */
export type JsonErrorCode = "integer-range" | "lone-surrogate" | "too-deep" | "cycle";

/** A value would be changed by JSON or by JavaScript. It is refused instead. */
export class JsonError extends AgentdError {
  declare readonly code: JsonErrorCode;
  /** Where it is: an RFC 6901 pointer, `""` for the whole value. */
  readonly pointer: string;

  constructor(code: JsonErrorCode, pointer: string, what: string) {
    super(code, `${pointer === "" ? "the value" : pointer}: ${what}`);
    this.pointer = pointer;
  }

  static {
    JsonError.prototype.name = "JsonError";
  }
}

/** A failure that the caller may read. Any other exception stays in the log of agentd. */
export class SkillError extends Error {
  /** The same call may succeed later. */
  readonly retryable: boolean;

  /**
   * @param message - For the caller, who sees up to 2 KiB of it.
   * @param options - `true` is short for `{ retryable: true }`. `cause` goes to the log alone.
   */
  constructor(message: string, options: boolean | { retryable?: boolean; cause?: unknown } = false) {
    const { retryable = false, ...rest } = typeof options === "boolean" ? { retryable: options } : options;
    super(message, rest);
    this.retryable = retryable;
  }

  static {
    SkillError.prototype.name = "SkillError";
  }
}

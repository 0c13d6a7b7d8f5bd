import type { Failed, SchemaViolation, Violation } from "./result.js";
/** The root of the errors of this package. {@link SkillError} stands apart: it is the author's own. */
export declare class AgentdError extends Error {
    /** What went wrong, for programs: a code of agentd such as `EAGENTRPC_NO_PEER`, or one of this package. */
    readonly code: string;
    constructor(code: string, message: string, options?: ErrorOptions);
}
/** A call was made, and its result is not `ok`. {@link unwrap} throws it. */
export declare class CallError extends AgentdError {
    /** The whole outcome. */
    readonly result: Failed | SchemaViolation;
    /** The same call may succeed later. */
    readonly retryable: boolean;
    constructor(result: Failed | SchemaViolation);
}
/** The payload or the answer of a call has failed its schema. */
export declare class ViolationError extends CallError {
    readonly result: SchemaViolation;
    /** One entry for each way in which the value fails. */
    get violations(): readonly Violation[];
}
/**
 * The agent cannot be reached, or the connection broke. A call whose connection broke
 * may have been made: repeat it with an idempotency key.
 */
export declare class ConnectionFailed extends AgentdError {
}
/** agentd refused to make the call: nothing has reached the peer. */
export declare class RefusedError extends AgentdError {
    /** The HTTP status of the refusal, or the one that HTTP has for it. */
    readonly httpStatus: number;
    constructor(code: string, message: string, httpStatus: number);
}
/** Why a value cannot be carried between JSON and JavaScript as it is. */
export type JsonErrorCode = "integer-range" | "lone-surrogate" | "too-deep" | "cycle";
/** A value would be changed by JSON or by JavaScript. It is refused instead. */
export declare class JsonError extends AgentdError {
    readonly code: JsonErrorCode;
    /** Where it is: an RFC 6901 pointer, `""` for the whole value. */
    readonly pointer: string;
    constructor(code: JsonErrorCode, pointer: string, what: string);
}
/** A failure that the caller may read. Any other exception stays in the log of agentd. */
export declare class SkillError extends Error {
    /** The same call may succeed later. */
    readonly retryable: boolean;
    /**
     * @param message - For the caller, who sees up to 2 KiB of it.
     * @param options - `true` is short for `{ retryable: true }`. `cause` goes to the log alone.
     */
    constructor(message: string, options?: boolean | {
        retryable?: boolean;
        cause?: unknown;
    });
}

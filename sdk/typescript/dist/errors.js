/** The root of the errors of this package. {@link SkillError} stands apart: it is the author's own. */
export class AgentdError extends Error {
    /** What went wrong, for programs: a code of agentd such as `EAGENTRPC_NO_PEER`, or one of this package. */
    code;
    constructor(code, message, options) {
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
    result;
    /** The same call may succeed later. */
    retryable;
    constructor(result) {
        const error = result.error;
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
    /** One entry for each way in which the value fails. */
    get violations() {
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
    httpStatus;
    constructor(code, message, httpStatus) {
        super(code, message);
        this.httpStatus = httpStatus;
    }
    static {
        RefusedError.prototype.name = "RefusedError";
    }
}
/** A value would be changed by JSON or by JavaScript. It is refused instead. */
export class JsonError extends AgentdError {
    /** Where it is: an RFC 6901 pointer, `""` for the whole value. */
    pointer;
    constructor(code, pointer, what) {
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
    retryable;
    /**
     * @param message - For the caller, who sees up to 2 KiB of it.
     * @param options - `true` is short for `{ retryable: true }`. `cause` goes to the log alone.
     */
    constructor(message, options = false) {
        const { retryable = false, ...rest } = typeof options === "boolean" ? { retryable: options } : options;
        super(message, rest);
        this.retryable = retryable;
    }
    static {
        SkillError.prototype.name = "SkillError";
    }
}

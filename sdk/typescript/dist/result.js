import { AgentdError, CallError, ViolationError } from "./errors.js";
/**
 * Returns the response of a call.
 *
 * @throws {@link ViolationError} where the payload or the answer failed its schema, {@link CallError} with any
 * other status than `ok`, and {@link AgentdError} (`no-response`) where the call does not wait for an answer.
 */
export function unwrap(result) {
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

import { AgentdError, JsonError } from "./errors.js";
import { stringify } from "./json.js";
import { ResultStream } from "./stream.js";
/** Makes calls over whatever link there is. */
export class BaseCaller {
    async request(to, capability, payload, options = {}) {
        const { signal, bigint = this.bigints() } = options;
        return (await this.exchange(encodeRequest(to, capability, payload, options), { signal, bigint }));
    }
    stream(to, capability, payload, options = {}) {
        const { signal, bigint = this.bigints() } = options;
        return new ResultStream(async (onProgress) => this.exchange(encodeRequest(to, capability, payload, options), { signal, bigint, onProgress }));
    }
    async awaitResult(correlationId, options = {}) {
        const { timeoutMs = 30_000, signal, bigint = this.bigints() } = options;
        return (await this.fetch(correlationId, wholeMs("timeoutMs", timeoutMs) ?? 0, { signal, bigint }));
    }
}
/** The JSON of a request. */
export function encodeRequest(to, capability, payload, options) {
    const { timeoutMs, idleTimeoutMs, mode, idempotencyKey, sessionId, tenantId, traceparent, tracestate } = options;
    const rest = stringify({
        timeoutMs: wholeMs("timeoutMs", timeoutMs), idleTimeoutMs: wholeMs("idleTimeoutMs", idleTimeoutMs),
        mode, idempotencyKey, sessionId, tenantId, traceparent, tracestate,
    });
    const head = `{"to":${stringify(String(to))},"capability":${stringify(String(capability))}`;
    const body = payload === undefined ? "" : `,"payload":${stringify(payload)}`;
    return head + body + (rest === "{}" ? "}" : "," + rest.slice(1));
}
/** Rounds up: a timeout of half a millisecond must not become none. */
function wholeMs(name, ms) {
    if (ms === undefined)
        return undefined;
    if (!(ms > 0 && ms < Infinity))
        throw new AgentdError("bad-option", `${name} must be a number of milliseconds above 0, not ${ms}`);
    return Math.ceil(ms);
}
/** Throws the reason of a signal that is aborted. */
export function throwIfAborted(signal) {
    if (signal?.aborted)
        throw signal.reason;
}

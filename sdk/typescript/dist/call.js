import { AsyncLocalStorage } from "node:async_hooks";
import { stringify } from "./json.js";
import { Log } from "./log.js";
import { BaseCaller } from "./request.js";
/** The report as it is sent; throws for what agentd would refuse. */
function checkUsage({ provider, model, operation = "chat", inputTokens = 0, outputTokens = 0, durationMs = 0 }) {
    const of = "of a model's usage";
    for (const [name, text] of Object.entries({ provider, model })) {
        if (typeof text !== "string")
            throw new TypeError(`${name} ${of} is no string`);
        if (!/^[A-Za-z0-9._:/@+-]{1,128}$/.test(text))
            throw new RangeError(`${name} ${of} is not 1 to 128 letters, digits and ._:/@+-`);
    }
    const operations = ["chat", "text_completion", "generate_content", "embeddings"];
    if (!operations.includes(operation))
        throw new RangeError(`operation ${of} is none of ${operations.join(", ")}`);
    for (const [name, n, most] of [["inputTokens", inputTokens, 1e9], ["outputTokens", outputTokens, 1e9], ["durationMs", durationMs, 3_600_000]]) {
        if (!Number.isInteger(n) || n < 0 || n > most)
            throw new RangeError(`${name} ${of} is no integer from 0 to ${most}`);
    }
    return { provider, model, operation, inputTokens, outputTokens, durationMs };
}
/** How soon at the latest `setTimeout` fires, in milliseconds. */
const maxTimer = 0x7fffffff;
/**
 * A {@link Call}, with what its host needs.
 *
 * @internal
 */
export class ServedCall extends BaseCaller {
    #link;
    #log;
    #abort;
    #timer;
    #reason;
    constructor(info, link) {
        super();
        Object.assign(this, info);
        this.#link = link;
    }
    get link() {
        return this.#link;
    }
    get log() {
        return (this.#log ??= new Log(this.correlationId, this.traceparent));
    }
    // Most skills never ask for it.
    get signal() {
        if (!this.#abort) {
            this.#abort = new AbortController();
            if (this.#reason !== undefined)
                this.#abort.abort(this.#reason);
            else if (this.deadlineMs !== undefined && this.deadlineMs - Date.now() < maxTimer) {
                this.#timer = setTimeout(() => this.cancel("deadline"), Math.max(0, this.deadlineMs - Date.now()));
                this.#timer.unref();
            }
        }
        return this.#abort.signal;
    }
    /** Whether the call was cancelled. */
    get cancelled() {
        return this.#reason !== undefined;
    }
    /** Aborts the signal. */
    cancel(why) {
        if (this.#reason !== undefined)
            return;
        this.#reason = why === "deadline" ? new DOMException("the deadline of the call has passed", "TimeoutError") : new DOMException(`the call was cancelled: ${why}`, "AbortError");
        this.#abort?.abort(this.#reason);
    }
    /** Ends what waits for the call. */
    end() {
        clearTimeout(this.#timer);
    }
    async progress(value) {
        return this.#link.progress(stringify(value));
    }
    async modelUsage(usage) {
        return this.#link.modelUsage(checkUsage(usage));
    }
    exchange(request, options) {
        return this.#link.exchange(request, options);
    }
    fetch(correlationId, timeoutMs, options) {
        return this.#link.fetch(correlationId, timeoutMs, options);
    }
    bigints() {
        return this.#link.bigint;
    }
}
const running = new AsyncLocalStorage();
/** Runs a function as a part of a call: what it asks for belongs to that. */
export function within(call, fn) {
    return running.run(call, fn);
}
/** The call whose handler this code is a part of, where there is one. */
export function runningCall() {
    return running.getStore();
}
/** The call whose handler this code is a part of, where there is one. */
export function currentCall() {
    return running.getStore();
}

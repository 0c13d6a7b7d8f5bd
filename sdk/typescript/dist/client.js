import { runningCall } from "./call.js";
import { AgentdError, ConnectionFailed } from "./errors.js";
import { ask, httpExchange, readResult } from "./http.js";
import { encodeRequest } from "./request.js";
import { ResultStream } from "./stream.js";
/** Makes calls as an agent, through its API. It holds no connection, so there is nothing to close. */
export class Client {
    #endpoint;
    #exchange;
    #bigint;
    /** @internal */
    constructor(endpoint, exchange, bigint) {
        this.#endpoint = endpoint;
        this.#exchange = exchange;
        this.#bigint = bigint;
    }
    /** Makes one call. See {@link Caller.request}. */
    async request(to, capability, payload, options = {}) {
        const { signal, bigint = this.#bigint } = options;
        return (await this.#exchange(encodeRequest(to, capability, payload, options), { signal, bigint }));
    }
    /** Makes one call, and iterates over its progress. See {@link Caller.stream}. */
    stream(to, capability, payload, options = {}) {
        const { signal, bigint = this.#bigint } = options;
        return new ResultStream(async (onProgress) => this.#exchange(encodeRequest(to, capability, payload, options), { signal, bigint, onProgress }));
    }
    /**
     * Waits for the result of a call of mode `async`, named by the correlation id of its first result.
     *
     * @throws {@link RefusedError}, also where there is no result in time, and {@link ConnectionFailed}.
     */
    async awaitResult(correlationId, options = {}) {
        const { timeoutMs = 30_000, signal, bigint = this.#bigint } = options;
        const path = `/v1/results/${encodeURIComponent(correlationId)}?timeoutMs=${Math.ceil(timeoutMs)}`;
        return readResult(await ask(this.#endpoint(), { method: "GET", path, signal }), bigint);
    }
}
/**
 * Returns a client of an agent. It connects with its first call.
 *
 * @param endpoint - The path of an agent's control socket, or an `http://` or `https://` URL. Without it: in a skill, the
 * agent that runs it, by `AGENTD_URL` and `AGENTD_CALL`, and calls are part of the call that the skill serves; elsewhere the
 * socket that `AGENTD_SOCKET` names.
 * @throws {@link ConnectionFailed} (`no-endpoint`) at a call, where neither is set.
 */
export function connect(endpoint, options = {}) {
    const { token, bigint = false } = options;
    const headers = token === undefined ? {} : { Authorization: "Bearer " + token };
    if (endpoint !== undefined) {
        if (endpoint === "")
            throw new AgentdError("bad-option", "the endpoint is empty");
        const at = /^https?:\/\//i.test(endpoint) ? { url: endpoint, headers } : { socketPath: endpoint, url: "http://agentd", headers };
        return new Client(() => at, httpExchange(() => at), bigint);
    }
    // What serves a call is looked up for each of them: a worker serves many.
    const here = () => runningCall()?.link.endpoint() ?? fromEnvironment(headers);
    const http = httpExchange(here);
    return new Client(here, (request, how) => (runningCall()?.link.exchange ?? http)(request, how), bigint);
}
function fromEnvironment(headers) {
    const { AGENTD_URL: url, AGENTD_SOCKET: socketPath, AGENTD_CALL: call } = process.env;
    if (url)
        return { url, headers: { ...headers, ...(call ? { "Agentd-Call": call } : {}) } };
    if (socketPath)
        return { socketPath, url: "http://agentd", headers };
    throw new ConnectionFailed("no-endpoint", "AGENTD_URL is not set: agentd sets it for skills, and other programs name a socket or a URL");
}

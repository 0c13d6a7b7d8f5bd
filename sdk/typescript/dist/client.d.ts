import { type Endpoint } from "./http.js";
import { type AbortSignalLike, type Caller, type Exchange, type RequestOptions, type Signal } from "./request.js";
import type { Result } from "./result.js";
import { ResultStream } from "./stream.js";
/** How a {@link Client} is made. */
export interface ConnectOptions {
    /** A bearer token, for an API that asks for one. */
    token?: string | undefined;
    /** The default of {@link RequestOptions.bigint}. */
    bigint?: boolean | undefined;
}
/** How a result is waited for. */
export interface AwaitOptions {
    /** At most so long, in milliseconds, up to an hour; 30,000 unless it says otherwise. */
    timeoutMs?: number | undefined;
    /** Ends the wait, and not the call. */
    signal?: Signal | AbortSignalLike | undefined;
    /** As {@link RequestOptions.bigint}. */
    bigint?: boolean | undefined;
}
/** Makes calls as an agent, through its API. It holds no connection, so there is nothing to close. */
export declare class Client implements Caller {
    #private;
    /** @internal */
    constructor(endpoint: () => Endpoint, exchange: Exchange, bigint: boolean);
    /** Makes one call. See {@link Caller.request}. */
    request<T = unknown>(to: string, capability: string, payload?: unknown, options?: RequestOptions): Promise<Result<T>>;
    /** Makes one call, and iterates over its progress. See {@link Caller.stream}. */
    stream<T = unknown, P = unknown>(to: string, capability: string, payload?: unknown, options?: RequestOptions): ResultStream<T, P>;
    /**
     * Waits for the result of a call of mode `async`, named by the correlation id of its first result.
     *
     * @throws {@link RefusedError}, also where there is no result in time, and {@link ConnectionFailed}.
     */
    awaitResult<T = unknown>(correlationId: string, options?: AwaitOptions): Promise<Result<T>>;
}
/**
 * Returns a client of an agent. It connects with its first call.
 *
 * @param endpoint - The path of an agent's control socket, or an `http://` or `https://` URL. Without it: in a skill, the
 * agent that runs it, by `AGENTD_URL` and `AGENTD_CALL`, and calls are part of the call that the skill serves; elsewhere the
 * socket that `AGENTD_SOCKET` names.
 * @throws {@link ConnectionFailed} (`no-endpoint`) at a call, where neither is set.
 */
export declare function connect(endpoint?: string, options?: ConnectOptions): Client;

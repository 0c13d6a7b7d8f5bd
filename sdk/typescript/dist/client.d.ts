import { BaseCaller, type Exchange, type Fetch } from "./request.js";
/** How a {@link Client} is made. */
export interface ConnectOptions {
    /** A bearer token, for an API that asks for one. */
    token?: string | undefined;
    /** The default of {@link RequestOptions.bigint}. Without it, in a skill, that of {@link ServeOptions.bigint}. */
    bigint?: boolean | undefined;
}
/** Makes calls as an agent, through its API. It holds no connection, so there is nothing to close. */
export declare class Client extends BaseCaller {
    #private;
    /** @internal */
    protected readonly exchange: Exchange;
    /** @internal */
    protected readonly fetch: Fetch;
    /** @internal */
    constructor(exchange: Exchange, fetch: Fetch, bigint: boolean | undefined);
    /** @internal */
    protected bigints(): boolean;
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

import { runningCall } from "./call.js";
import { AgentdError, ConnectionFailed } from "./errors.js";
import { type Endpoint, httpExchange, httpFetch } from "./http.js";
import { BaseCaller, type Exchange, type Fetch } from "./request.js";

/** How a {@link Client} is made. */
export interface ConnectOptions {
  /** A bearer token, for an API that asks for one. */
  token?: string | undefined;
  /** The default of {@link RequestOptions.bigint}. Without it, in a skill, that of {@link ServeOptions.bigint}. */
  bigint?: boolean | undefined;
}

/** Makes calls as an agent, through its API. It holds no connection, so there is nothing to close. */
export class Client extends BaseCaller {
  /** @internal */
  protected readonly exchange: Exchange;
  /** @internal */
  protected readonly fetch: Fetch;
  readonly #bigint: boolean | undefined;

  /** @internal */
  constructor(exchange: Exchange, fetch: Fetch, bigint: boolean | undefined) {
    super();
    this.exchange = exchange;
    this.fetch = fetch;
    this.#bigint = bigint;
  }

  /** @internal */
  protected bigints(): boolean {
    return this.#bigint ?? runningCall()?.link.bigint ?? false;
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
export function connect(endpoint?: string, options: ConnectOptions = {}): Client {
  const { token, bigint } = options;
  const headers: Record<string, string> = token === undefined ? {} : { Authorization: "Bearer " + token };
  if (endpoint !== undefined) {
    if (endpoint === "") throw new AgentdError("bad-option", "the endpoint is empty");
    const at: Endpoint = /^https?:\/\//i.test(endpoint) ? { url: endpoint, headers } : { socketPath: endpoint, url: "http://agentd", headers };
    return new Client(httpExchange(() => at), httpFetch(() => at), bigint);
  }
  const here = (): Endpoint => fromEnvironment(headers);
  const exchange = httpExchange(here), fetch = httpFetch(here);
  // The call that is served is looked up for each request: a worker serves many.
  return new Client(
    (...request) => (runningCall()?.link.exchange ?? exchange)(...request),
    (...wait) => (runningCall()?.link.fetch ?? fetch)(...wait),
    bigint,
  );
}

function fromEnvironment(headers: Record<string, string>): Endpoint {
  const { AGENTD_URL: url, AGENTD_SOCKET: socketPath, AGENTD_CALL: call } = process.env;
  if (url) return { url, headers: { ...headers, ...(call ? { "Agentd-Call": call } : {}) } };
  if (socketPath) return { socketPath, url: "http://agentd", headers };
  throw new ConnectionFailed("no-endpoint", "AGENTD_URL is not set: agentd sets it for skills, and other programs name a socket or a URL");
}

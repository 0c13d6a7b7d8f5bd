/** One way in which a value fails its schema; path is an RFC 6901 pointer. */
export interface Violation {
  path: string;
  message: string;
}

/** Why a call is not ok. */
export interface CallFailure {
  code: string;
  message: string;
  retryable: boolean;
  detectedBy?: string;
  details?: unknown;
}

/** What every result says. Where a member is absent, there is nothing to say. */
export interface Outcome {
  correlationId: string;
  /** That of the W3C trace that the call belongs to. */
  traceId?: string;
  latencyMs: number;
  /** How long the skill ran, by the callee's word. */
  executionTimeMs?: number;
  /** What the contract declares, in units of the callee's owner. */
  costEstimate?: Record<string, number>;
  /** The answer repeats that to an earlier call with the same idempotency key. */
  replayed?: boolean;
  /** A broker has stored the call, and there is no answer yet. */
  queued?: boolean;
  /** It is not proven that the contracts of both ends agree. */
  unproven?: boolean;
  /** Why not. */
  unprovenReason?: string;
}

/** The outcome of a call, told apart by status. */
export type Result<T> =
  | (Outcome & { status: "ok"; response: T })
  | (Outcome & { status: "error" | "timeout" | "abandoned" | "busy"; error: CallFailure })
  | (Outcome & {
      status: "schema-violation";
      schemaSide: "request" | "response";
      violations: Array<Violation>;
      /** How many more there are than are listed. */
      violationsOmitted?: number;
      /** The answer that failed its schema, where this end found that. */
      response?: unknown;
      error: CallFailure;
    });

/** Where the API of the calling agent is: its control socket, or an HTTP endpoint. */
export type Endpoint =
  | { socket: string; call?: string }
  | { url: string; headers?: Record<string, string>; call?: string };

export interface RequestOptions {
  /** The default for a skill is its agent, by AGENTD_URL and AGENTD_CALL; for other programs the socket that AGENTD_SOCKET names. */
  endpoint?: Endpoint;
  timeoutMs?: number;
  idempotencyKey?: string;
  /** The tenant that the call is for. The default is that of the call that this process serves, or none. */
  tenantId?: string;
  /** The W3C trace context to continue. The default is that of the call that this process serves. */
  traceparent?: string;
  /** An AbortSignal: it ends the wait, and the callee's skill. */
  signal?: object;
}

/** No call was made: agentd refused the request, or does not answer as it should. */
export class AgentdError extends Error {
  readonly code: string;
  constructor(code: string, message: string) {
    super(code + ": " + message);
    this.name = "AgentdError";
    this.code = code;
  }
}

/** Calls one capability. A call that was made resolves, whatever its status. */
export async function requestAgent<C extends keyof Capabilities>(
  capability: C,
  payload: Capabilities[C]["request"],
  options: RequestOptions = {},
): Promise<Result<Capabilities[C]["response"]>> {
  const { endpoint, timeoutMs, idempotencyKey, tenantId, traceparent, signal } = options;
  const body = JSON.stringify({ to: address, capability, payload, timeoutMs, idempotencyKey, tenantId, traceparent });
  const at = endpoint ?? fromEnvironment();
  const headers: Record<string, string> = { "Content-Type": "application/json" };
  if (at.call !== undefined) headers["Agentd-Call"] = at.call;
  let reply: Reply;
  if ("socket" in at) reply = await postLocal("http://agentd", { socketPath: at.socket }, headers, body, signal);
  else if (endpoint) reply = await postURL(at.url, { ...headers, ...at.headers }, body, signal);
  else reply = await postLocal(at.url, {}, headers, body, signal);
  if (reply.status !== 200) throw refusal(reply);
  return JSON.parse(reply.text) as Result<Capabilities[C]["response"]>;
}

interface Reply {
  status: number;
  text: string;
}

function refusal(reply: Reply): AgentdError {
  try {
    const { error } = JSON.parse(reply.text) as { error: { code: string; message: string } };
    return new AgentdError(error.code, error.message);
  } catch {
    return new AgentdError("http", "HTTP status " + reply.status);
  }
}

function fromEnvironment(): Endpoint {
  const host = globalThis as unknown as { process?: { env: Record<string, string | undefined> } };
  const env: Record<string, string | undefined> = host.process?.env ?? {};
  const { AGENTD_URL: url, AGENTD_SOCKET: socket, AGENTD_CALL: token } = env;
  const call = token ? { call: token } : {};
  if (url) return { url, ...call };
  if (socket) return { socket, ...call };
  throw new AgentdError("no-endpoint", "AGENTD_URL is not set; agentd sets it for skills, and others name an endpoint");
}

async function postURL(url: string, headers: Record<string, string>, body: string, signal?: object): Promise<Reply> {
  interface Answer {
    status: number;
    text(): Promise<string>;
  }
  const { fetch } = globalThis as unknown as { fetch(url: string, init: object): Promise<Answer> };
  const answer = await fetch(url.replace(/\/+$/, "") + "/v1/request", { method: "POST", headers, body, signal });
  return { status: answer.status, text: await answer.text() };
}

/** Posts to an agent on this host, and never by way of a proxy, whatever the environment says. */
async function postLocal(url: string, at: object, headers: Record<string, string>, body: string, signal?: object): Promise<Reply> {
  interface Stream {
    statusCode?: number;
    setEncoding(encoding: string): void;
    on(event: string, listener: (value: never) => void): void;
    end(body: string): void;
  }
  const name: string = "node:http"; // not a literal: compiles without the types of Node.js
  const http = (await import(name)) as { request(url: string, options: object, answer: (stream: Stream) => void): Stream };
  return new Promise((resolve, reject) => {
    const options = { ...at, agent: false, method: "POST", headers, signal };
    const request = http.request(url.replace(/\/+$/, "") + "/v1/request", options, (answer) => {
      let text = "";
      answer.setEncoding("utf8");
      answer.on("data", (chunk: string) => (text += chunk));
      answer.on("end", () => resolve({ status: answer.statusCode ?? 0, text }));
      answer.on("error", reject);
    });
    request.on("error", reject);
    request.end(body);
  });
}

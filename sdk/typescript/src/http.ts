/** Requests to the HTTP API of an agent. */
import * as http from "node:http";
import * as https from "node:https";

import { AgentdError, ConnectionFailed, JsonError, RefusedError } from "./errors.js";
import { type Loose, parseLoosely, settle } from "./json.js";
import { type AbortSignalLike, type Exchange, type Fetch, throwIfAborted } from "./request.js";
import type { ProgressEvent, Result } from "./result.js";

/** Where the API of an agent is. */
export interface Endpoint {
  /** The path of a Unix socket; `url` then only names the protocol. */
  socketPath?: string | undefined;
  url: string;
  headers: Readonly<Record<string, string>>;
}

/** Bounds a response: a payload, and what surrounds it. */
const maxResponseBytes = 64 << 20;

interface Ask {
  method: "GET" | "POST";
  path: string;
  body?: string;
  accept?: string;
  signal?: AbortSignalLike | undefined;
  /** Gets the lines of a response with status 200, without their line feeds. */
  onLine?: (line: string) => void;
}

/** Makes one request and returns the body of a response with status 200, or what follows its last line feed. */
export function ask(at: Endpoint, { method, path, body, accept = "application/json", signal, onLine }: Ask): Promise<string> {
  return new Promise((resolve, reject) => {
    throwIfAborted(signal);
    const secure = at.url.startsWith("https:");
    // An agent of its own knows no proxy, whatever the environment says: one could not reach a socket, and would
    // read the token. A connection carries one request: one that is kept may be closed by the other end just when the
    // next call is written to it, and whether that call was made nobody could say.
    const options: http.RequestOptions = {
      method, agent: new (secure ? https : http).Agent({ keepAlive: false }),
      headers: { Accept: accept, ...(body === undefined ? {} : { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body) }), ...at.headers },
      ...(at.socketPath === undefined ? {} : { socketPath: at.socketPath }),
    };
    const request = (secure ? https : http).request(at.url.replace(/\/+$/, "") + path, options);
    const aborted = (): void => void request.destroy(new Error("aborted"));
    signal?.addEventListener("abort", aborted, { once: true });
    const settled = (): void => signal?.removeEventListener("abort", aborted);
    const failed = (e: unknown): void => {
      settled();
      request.destroy();
      reject(signal?.aborted ? signal.reason : e instanceof AgentdError ? e : unreachable(at, e));
    };
    request.on("error", failed);
    request.on("response", (response) => {
      let text = "", bytes = 0;
      const status = response.statusCode ?? 0;
      response.setEncoding("utf8");
      response.on("error", failed);
      response.on("data", (chunk: string) => {
        bytes += chunk.length;
        if (status !== 200 || !onLine) {
          text += chunk;
        } else {
          const lines = chunk.split("\n");
          for (const line of lines.splice(0, lines.length - 1)) {
            onLine(text + line);
            text = "";
            bytes = 0;
          }
          text += lines[0] ?? "";
        }
        if (bytes > maxResponseBytes) failed(new AgentdError("too-large", `the response of ${name(at)} is larger than ${maxResponseBytes} bytes`));
      });
      response.on("end", () => {
        if (!response.complete) return failed(new Error("the connection was closed before the end of the response"));
        settled();
        if (status === 200) resolve(text);
        else reject(refusal(status, text));
      });
    });
    request.end(body);
  });
}

function name(at: Endpoint): string {
  return at.socketPath ?? at.url;
}

function unreachable(at: Endpoint, cause: unknown): ConnectionFailed {
  const { code = "", message = String(cause) } = cause as NodeJS.ErrnoException;
  if (code === "ENOENT" || code === "ECONNREFUSED") {
    return new ConnectionFailed("not-running", `no agentd answers on ${name(at)}: start it with \`agentd fleet run\` or \`agentd run --agent <id>\``, { cause });
  }
  return new ConnectionFailed(code === "" ? "connection" : code, `${name(at)}: ${message}`, { cause });
}

/** The error of a response other than 200, {error: {code, message}} from agentd. */
function refusal(status: number, text: string): RefusedError {
  try {
    const { error } = JSON.parse(text) as { error: { code: string; message: string } };
    return new RefusedError(error.code, error.message, status);
  } catch {
    return new RefusedError("http", `HTTP status ${status}, and no error of agentd`, status);
  }
}

function readResponse(text: string): Loose {
  try {
    return parseLoosely(text);
  } catch {
    throw new ConnectionFailed("bad-response", "the response is no JSON: it is not from agentd");
  }
}

/** Reads a result, whose response may have integers beyond 2^53. */
function readResult(text: string, bigint: boolean): Result {
  const { value, inexact } = readResponse(text);
  return settleResult(value, inexact, bigint);
}

/** A result that was parsed. The pointer of an error is into the response. */
export function settleResult(value: unknown, inexact: boolean, bigint: boolean): Result {
  const result = value as Result;
  if (typeof result?.status !== "string") throw new ConnectionFailed("bad-response", "the response is no result: it is not from agentd");
  if (inexact) {
    if ("response" in result) result.response = settle(result.response, { bigint });
    settle(result, { bigint });
  }
  return result;
}

/** Makes calls with POST /v1/request. */
export function httpExchange(endpoint: () => Endpoint): Exchange {
  return async (request, { signal, bigint, onProgress }) => {
    const at = endpoint();
    const post = { method: "POST", path: "/v1/request", body: request, signal } as const;
    if (!onProgress) return readResult(await ask(at, post), bigint);
    let result: Result | undefined, fault: unknown;
    const rest = await ask(at, {
      ...post,
      accept: "application/x-ndjson",
      onLine(line) {
        try {
          const { value, inexact } = readResponse(line);
          const { progress, result: last } = (value ?? {}) as { progress?: ProgressEvent; result?: unknown };
          if (last !== undefined) result = settleResult(last, inexact, bigint);
          else if (progress) onProgress(readProgress(progress, inexact, bigint));
        } catch (e) {
          fault ??= e;
        }
      },
    });
    if (fault) throw fault;
    return result ?? readResult(rest, bigint); // an agent that streams nothing responds with the result alone
  };
}

/** Waits for results with GET /v1/results/{id}. */
export function httpFetch(endpoint: () => Endpoint): Fetch {
  return async (correlationId, timeoutMs, { signal, bigint }) => {
    const path = `/v1/results/${encodeURIComponent(correlationId)}?timeoutMs=${timeoutMs}`;
    return readResult(await ask(endpoint(), { method: "GET", path, signal }), bigint);
  };
}

/** An event that was parsed, or why its value cannot be read. */
export function readProgress(event: ProgressEvent, inexact: boolean, bigint: boolean): ProgressEvent | JsonError {
  if (!inexact) return event;
  try {
    return { ...event, value: settle(event.value, { bigint }) };
  } catch (e) {
    if (e instanceof JsonError) return e;
    throw e;
  }
}

import { AgentdError, JsonError } from "./errors.js";
import { stringify } from "./json.js";
import type { ProgressEvent, Result } from "./result.js";
import { ResultStream } from "./stream.js";

/** An `AbortSignal`, by the types of Node.js or the DOM, whichever the program is compiled with. */
export type Signal = typeof globalThis extends { AbortSignal: { prototype: infer T } } ? T : AbortSignalLike;

/** What this package uses of an `AbortSignal`. */
export interface AbortSignalLike {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: "abort", listener: () => void, options?: { once?: boolean }): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/** What a caller waits for: the answer, that a broker has stored the call, or that it is sent. */
export type Mode = "sync" | "async" | "fire-and-forget";

/** How a call is made. */
export interface RequestOptions {
  /** Ends the call, in milliseconds. Without it, the capability's own timeout holds. */
  timeoutMs?: number | undefined;
  /** Ends the call where neither progress nor the answer comes for so many milliseconds. */
  idleTimeoutMs?: number | undefined;
  /** `sync` unless it says otherwise. */
  mode?: Mode | undefined;
  /** A repeated call with the same key gets the result of the first one. */
  idempotencyKey?: string | undefined;
  /** The session that the call is part of. A call that is made in a skill has that of the call that it serves. */
  sessionId?: string | undefined;
  /** The tenant that the call is for. In a skill, that of the call that it serves. */
  tenantId?: string | undefined;
  /** The W3C trace context to continue. In a skill, that of the call that it serves. */
  traceparent?: string | undefined;
  /** What vendors of tracing have added to `traceparent`. */
  tracestate?: string | undefined;
  /** Ends the wait, which rejects with the signal's reason, and cancels the callee's skill. */
  signal?: Signal | AbortSignalLike | undefined;
  /** Read integers of the answer beyond 2^53 as `bigint`. Without it, such an answer is a {@link JsonError}. */
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

/** Who makes calls: a {@link Client}, or a {@link Call} that a skill serves. Generated clients take either. */
export interface Caller {
  /**
   * Makes one call.
   *
   * @param to - The address or the id of a peer.
   * @param payload - Any JSON value; `undefined` is a call without arguments.
   * @returns the result, whatever its status; {@link unwrap} makes an exception of one that is not ok.
   * @throws {@link RefusedError} and {@link ConnectionFailed} where no call was made or its outcome is not known,
   * {@link JsonError} where a value would be changed, and the reason of the signal.
   */
  request<T = unknown>(to: string, capability: string, payload?: unknown, options?: RequestOptions): Promise<Result<T>>;
  /** Makes one call like {@link Caller.request}, and iterates over the progress of it. */
  stream<T = unknown, P = unknown>(to: string, capability: string, payload?: unknown, options?: RequestOptions): ResultStream<T, P>;
  /**
   * Waits for the result of a call of mode `async`, named by the correlation id of its first result.
   *
   * @throws {@link RefusedError}, also where there is no result in time, and {@link ConnectionFailed}.
   */
  awaitResult<T = unknown>(correlationId: string, options?: AwaitOptions): Promise<Result<T>>;
}

/** Makes calls over whatever link there is. */
export abstract class BaseCaller implements Caller {
  /** @internal */
  protected abstract exchange(request: string, options: ExchangeOptions): Promise<Result>;
  /** @internal */
  protected abstract fetch(correlationId: string, timeoutMs: number, options: ExchangeOptions): Promise<Result>;
  /** @internal */
  protected abstract bigints(): boolean;

  async request<T = unknown>(to: string, capability: string, payload?: unknown, options: RequestOptions = {}): Promise<Result<T>> {
    const { signal, bigint = this.bigints() } = options;
    return (await this.exchange(encodeRequest(to, capability, payload, options), { signal, bigint })) as Result<T>;
  }

  stream<T = unknown, P = unknown>(to: string, capability: string, payload?: unknown, options: RequestOptions = {}): ResultStream<T, P> {
    const { signal, bigint = this.bigints() } = options;
    return new ResultStream<T, P>(async (onProgress) => this.exchange(encodeRequest(to, capability, payload, options), { signal, bigint, onProgress }));
  }

  async awaitResult<T = unknown>(correlationId: string, options: AwaitOptions = {}): Promise<Result<T>> {
    const { timeoutMs = 30_000, signal, bigint = this.bigints() } = options;
    return (await this.fetch(correlationId, wholeMs("timeoutMs", timeoutMs) ?? 0, { signal, bigint })) as Result<T>;
  }
}

/** What {@link exchange} functions are told of a call besides its text. */
export interface ExchangeOptions {
  signal?: AbortSignalLike | undefined;
  bigint: boolean;
  /** Gets the progress, or the error of an event that cannot be read. */
  onProgress?: ((event: ProgressEvent | JsonError) => void) | undefined;
}

/** Brings the text of a request to an agent, and its result back. */
export type Exchange = (request: string, options: ExchangeOptions) => Promise<Result>;

/** Waits for the result of a call of mode `async`, at most so many milliseconds. */
export type Fetch = (correlationId: string, timeoutMs: number, options: ExchangeOptions) => Promise<Result>;

/** The JSON of a request. */
export function encodeRequest(to: string, capability: string, payload: unknown, options: RequestOptions): string {
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
function wholeMs(name: string, ms: number | undefined): number | undefined {
  if (ms === undefined) return undefined;
  if (!(ms > 0 && ms < Infinity)) throw new AgentdError("bad-option", `${name} must be a number of milliseconds above 0, not ${ms}`);
  return Math.ceil(ms);
}

/** Throws the reason of a signal that is aborted. */
export function throwIfAborted(signal: AbortSignalLike | undefined): void {
  if (signal?.aborted) throw signal.reason;
}

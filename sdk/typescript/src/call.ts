import { AsyncLocalStorage } from "node:async_hooks";

import { stringify } from "./json.js";
import { Log } from "./log.js";
import { BaseCaller, type Caller, type Exchange, type ExchangeOptions, type Fetch, type Signal } from "./request.js";
import type { Result } from "./result.js";

/** What a skill may know of the call that it serves. A text is empty where the caller gave none. */
export interface CallInfo {
  /** The address of the agent that calls. */
  readonly caller: string;
  /** The request has proven that. Otherwise `caller` is its word. */
  readonly callerProven: boolean;
  /** The address of the agent that serves the call. */
  readonly agent: string;
  readonly capability: string;
  /** Names the call in the logs and audit records of both agents. */
  readonly correlationId: string;
  /** Names the request; each attempt of a call has its own. */
  readonly messageId: string;
  /** The session of the caller's skill, by the caller's word. */
  readonly sessionId: string;
  /** The tenant that the call is for. */
  readonly tenantId: string;
  /** What the caller marks repetitions of one call with. */
  readonly idempotencyKey: string;
  /** The W3C trace context. */
  readonly traceparent: string;
  /** What vendors of tracing have added to it. */
  readonly tracestate: string;
  /** The calls that led here, this one included. */
  readonly hops: number;
  /** When the caller stops waiting, as `Date.now()` counts, or `undefined`. */
  readonly deadlineMs: number | undefined;
  /** The caller waits for no answer. A process is not told: `false`. */
  readonly event: boolean;
  /** The caller wants progress. A process is not told: `true`. */
  readonly wantsProgress: boolean;
}

/**
 * How a call reaches its agent.
 *
 * @internal
 */
export interface Link {
  exchange: Exchange;
  fetch: Fetch;
  /** Reports the progress of the call, and says whether the caller wants any. */
  progress(value: string): Promise<boolean>;
  /** Reports what a model used, and says whether agentd takes that. */
  modelUsage(usage: Required<ModelUsage>): Promise<boolean>;
  bigint: boolean;
}

/** What one request to a language model used. Nothing of the question or the answer is in it. */
export interface ModelUsage {
  /** Who serves the model, such as `anthropic`: 1 to 128 letters, digits and `._:/@+-`. */
  provider: string;
  /** Which one was asked, in the same characters. */
  model: string;
  /** `chat` unless it says otherwise. */
  operation?: "chat" | "text_completion" | "generate_content" | "embeddings";
  /** From 0 to 1,000,000,000; 0 unless it says otherwise. */
  inputTokens?: number;
  outputTokens?: number;
  /** How long the request took, in whole milliseconds, at most an hour; 0 is not known. */
  durationMs?: number;
}

/** The report as it is sent; throws for what agentd would refuse. */
function checkUsage({ provider, model, operation = "chat", inputTokens = 0, outputTokens = 0, durationMs = 0 }: ModelUsage): Required<ModelUsage> {
  const of = "of a model's usage";
  for (const [name, text] of Object.entries({ provider, model })) {
    if (typeof text !== "string") throw new TypeError(`${name} ${of} is no string`);
    if (!/^[A-Za-z0-9._:/@+-]{1,128}$/.test(text)) throw new RangeError(`${name} ${of} is not 1 to 128 letters, digits and ._:/@+-`);
  }
  const operations = ["chat", "text_completion", "generate_content", "embeddings"];
  if (!operations.includes(operation)) throw new RangeError(`operation ${of} is none of ${operations.join(", ")}`);
  for (const [name, n, most] of [["inputTokens", inputTokens, 1e9], ["outputTokens", outputTokens, 1e9], ["durationMs", durationMs, 3_600_000]] as const) {
    if (!Number.isInteger(n) || n < 0 || n > most) throw new RangeError(`${name} ${of} is no integer from 0 to ${most}`);
  }
  return { provider, model, operation, inputTokens, outputTokens, durationMs };
}

/** The call that a skill serves. Nested calls that are made by it are part of it, and end with it. */
export interface Call extends CallInfo, Caller {
  /**
   * Aborted when the call is cancelled: its caller has left, its deadline has passed, or the program is to end. A skill
   * that goes on nevertheless is ended by agentd, after `killGraceMs`.
   */
  readonly signal: Signal;
  /** Writes to the log of agentd. Every line carries the correlation and the trace id. */
  readonly log: Log;
  /**
   * Reports progress to the caller: any JSON value of at most 64 KiB.
   *
   * @returns false where the caller wants none: the skill may stop reporting.
   */
  progress(value: unknown): Promise<boolean>;
  /**
   * Reports what one request to a language model used, when it has ended: agentd counts it, and traces it. Throws a
   * `TypeError` or `RangeError` for what agentd would refuse, and a `RefusedError` once the call has ended, or has made
   * 1,000 reports.
   *
   * @returns whether agentd takes reports.
   */
  modelUsage(usage: ModelUsage): Promise<boolean>;
}

/** How soon at the latest `setTimeout` fires, in milliseconds. */
const maxTimer = 0x7fffffff;

/**
 * A {@link Call}, with what its host needs.
 *
 * @internal
 */
export class ServedCall extends BaseCaller implements Call {
  declare readonly caller: string;
  declare readonly callerProven: boolean;
  declare readonly agent: string;
  declare readonly capability: string;
  declare readonly correlationId: string;
  declare readonly messageId: string;
  declare readonly sessionId: string;
  declare readonly tenantId: string;
  declare readonly idempotencyKey: string;
  declare readonly traceparent: string;
  declare readonly tracestate: string;
  declare readonly hops: number;
  declare readonly deadlineMs: number | undefined;
  declare readonly event: boolean;
  declare readonly wantsProgress: boolean;
  readonly #link: Link;
  #log: Log | undefined;
  #abort: AbortController | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #reason: unknown;

  constructor(info: CallInfo, link: Link) {
    super();
    Object.assign(this, info);
    this.#link = link;
  }

  get link(): Link {
    return this.#link;
  }

  get log(): Log {
    return (this.#log ??= new Log(this.correlationId, this.traceparent));
  }

  // Most skills never ask for it.
  get signal(): Signal {
    if (!this.#abort) {
      this.#abort = new AbortController();
      if (this.#reason !== undefined) this.#abort.abort(this.#reason);
      else if (this.deadlineMs !== undefined && this.deadlineMs - Date.now() < maxTimer) {
        this.#timer = setTimeout(() => this.cancel("deadline"), Math.max(0, this.deadlineMs - Date.now()));
        this.#timer.unref();
      }
    }
    return this.#abort.signal;
  }

  /** Whether the call was cancelled. */
  get cancelled(): boolean {
    return this.#reason !== undefined;
  }

  /** Aborts the signal. */
  cancel(why: string): void {
    if (this.#reason !== undefined) return;
    this.#reason = why === "deadline" ? new DOMException("the deadline of the call has passed", "TimeoutError") : new DOMException(`the call was cancelled: ${why}`, "AbortError");
    this.#abort?.abort(this.#reason);
  }

  /** Ends what waits for the call. */
  end(): void {
    clearTimeout(this.#timer);
  }

  async progress(value: unknown): Promise<boolean> {
    return this.#link.progress(stringify(value));
  }

  async modelUsage(usage: ModelUsage): Promise<boolean> {
    return this.#link.modelUsage(checkUsage(usage));
  }

  protected exchange(request: string, options: ExchangeOptions): Promise<Result> {
    return this.#link.exchange(request, options);
  }

  protected fetch(correlationId: string, timeoutMs: number, options: ExchangeOptions): Promise<Result> {
    return this.#link.fetch(correlationId, timeoutMs, options);
  }

  protected bigints(): boolean {
    return this.#link.bigint;
  }
}

const running = new AsyncLocalStorage<ServedCall>();

/** Runs a function as a part of a call: what it asks for belongs to that. */
export function within<T>(call: ServedCall, fn: () => T): T {
  return running.run(call, fn);
}

/** The call whose handler this code is a part of, where there is one. */
export function runningCall(): ServedCall | undefined {
  return running.getStore();
}

/** The call whose handler this code is a part of, where there is one. */
export function currentCall(): Call | undefined {
  return running.getStore();
}

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
/**
 * A {@link Call}, with what its host needs.
 *
 * @internal
 */
export declare class ServedCall extends BaseCaller implements Call {
    #private;
    readonly caller: string;
    readonly callerProven: boolean;
    readonly agent: string;
    readonly capability: string;
    readonly correlationId: string;
    readonly messageId: string;
    readonly sessionId: string;
    readonly tenantId: string;
    readonly idempotencyKey: string;
    readonly traceparent: string;
    readonly tracestate: string;
    readonly hops: number;
    readonly deadlineMs: number | undefined;
    readonly event: boolean;
    readonly wantsProgress: boolean;
    constructor(info: CallInfo, link: Link);
    get link(): Link;
    get log(): Log;
    get signal(): Signal;
    /** Whether the call was cancelled. */
    get cancelled(): boolean;
    /** Aborts the signal. */
    cancel(why: string): void;
    /** Ends what waits for the call. */
    end(): void;
    progress(value: unknown): Promise<boolean>;
    modelUsage(usage: ModelUsage): Promise<boolean>;
    protected exchange(request: string, options: ExchangeOptions): Promise<Result>;
    protected fetch(correlationId: string, timeoutMs: number, options: ExchangeOptions): Promise<Result>;
    protected bigints(): boolean;
}
/** Runs a function as a part of a call: what it asks for belongs to that. */
export declare function within<T>(call: ServedCall, fn: () => T): T;
/** The call whose handler this code is a part of, where there is one. */
export declare function runningCall(): ServedCall | undefined;
/** The call whose handler this code is a part of, where there is one. */
export declare function currentCall(): Call | undefined;

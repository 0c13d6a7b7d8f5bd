import { type ModelUsage } from "./call.js";
import type { Result } from "./result.js";
import { type Handlers, type ServeOptions } from "./skill.js";
/**
 * What a peer answers: a value, or a function of the payload. A function may be asynchronous, and throws a
 * {@link SkillError} to fail. An async generator reports what it yields as progress, and answers with what it returns.
 */
export type Answer = unknown | ((payload: any) => unknown);
/** An agent that a test plays. */
export interface Peer {
    /** The path of its `capabilities.yaml`. */
    capabilities: string;
    /** Answers for the capabilities that the skill may call, by their names. */
    answers: Readonly<Record<string, Answer>>;
}
/** A call that the skill has made of a peer. */
export interface PeerRequest {
    /** The address or id, as the skill has it. */
    to: string;
    capability: string;
    payload: unknown;
    /** Such as `timeoutMs` and `idempotencyKey`, where they were given. */
    options: Record<string, unknown>;
}
/** How a {@link SkillTest} is made. */
export interface SkillTestOptions extends Pick<ServeOptions, "bigint" | "takesObject"> {
    peers?: readonly Peer[] | undefined;
    /** The program that judges: that of `AGENTD_BIN`, or `agentd` in `PATH`, unless it says otherwise. */
    agentd?: string | undefined;
}
/** What a test says of a call. */
export interface CallOptions {
    /** `agent://test` unless it says otherwise. */
    caller?: string;
    /** True unless it says otherwise. */
    callerProven?: boolean;
    sessionId?: string;
    tenantId?: string;
    idempotencyKey?: string;
    traceparent?: string;
    tracestate?: string;
    /** How far away the deadline is that the skill sees, in milliseconds; that of its capability unless it says otherwise. */
    timeoutMs?: number;
}
/**
 * Calls the handlers of a skill in this process, as agentd would. Close it when the test is over.
 *
 * ```ts
 * const test = new SkillTest(handlers, "agents/reviewer/capabilities.yaml", {
 *   peers: [{ capabilities: "agents/librarian/capabilities.yaml", answers: { "search-notes": (query) => [] } }],
 * });
 * const result = await test.call("review-pr", { prUrl: "https://…" });
 * await test.close();
 * ```
 */
export declare class SkillTest {
    #private;
    /** What the skill has called, in this order. */
    readonly requests: PeerRequest[];
    /** What it has reported, of all calls. */
    readonly progress: unknown[];
    /** What it has reported of models, of all calls. */
    readonly modelUsages: Required<ModelUsage>[];
    /**
     * @param handlers - What the skill hands to `serve`.
     * @param capabilities - The path of the `capabilities.yaml` of its agent.
     */
    constructor(handlers: Handlers, capabilities: string, options?: SkillTestOptions);
    /**
     * Makes one call, and returns what the caller gets. What a caller would not see the text of, any exception but
     * {@link SkillError}, is thrown here.
     */
    call<T = unknown>(capability: string, payload?: unknown, options?: CallOptions): Promise<Result<T>>;
    /** Cancels the calls that run, such as from the function of a peer. */
    cancel(): void;
    /** Ends the program that judges. */
    close(): Promise<void>;
}

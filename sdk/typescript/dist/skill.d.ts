import { type Call, ServedCall } from "./call.js";
import { type Loose } from "./json.js";
/**
 * Serves one capability: payload in, answer out. What it throws is the failure of its call; only the message of a
 * {@link SkillError} is for the caller.
 */
export type Handler = (payload: any, call: Call) => unknown;
/** The code behind capabilities, by their names. */
export type Handlers = Readonly<Record<string, Handler>>;
/** How a skill is served. */
export interface ServeOptions {
    /** How many calls a worker is given at once, from 1; 1 unless it says otherwise. It means nothing to a process. */
    concurrency?: number | undefined;
    /** Read integers of payloads and nested results beyond 2^53 as `bigint`. Otherwise such a call fails. */
    bigint?: boolean | undefined;
    /**
     * The capabilities whose payload is an object and never null: a call without arguments is `{}` for them. Generated code
     * names them. A worker finds most by their schemas.
     */
    takesObject?: Iterable<string> | undefined;
}
/**
 * Serves what this program was started for, and ends the process: one call, or as a worker many of them, as the
 * `agent.yaml` says. From here on standard output belongs to agentd, and what the program prints goes to standard error.
 */
export declare function serve(handlers: Handlers, options?: ServeOptions): Promise<never>;
/** Standard output, which nothing else writes to any more. */
export interface Output {
    /** Writes a text, and reports whether the next one may follow at once. */
    write(text: string, written?: () => void): boolean;
    on(event: "drain", listener: () => void): unknown;
    on(event: "error", listener: (e: Error) => void): unknown;
}
/** How a call has failed. */
export interface Failure {
    /** For the caller, or undefined where the text is for the log alone. */
    message?: string;
    retryable: boolean;
    cancelled: boolean;
    /** For the log, without the stack. */
    text: string;
}
/** The handlers, and what happens around each of them. */
export declare class Skill {
    #private;
    readonly handlers: Handlers;
    readonly bigint: boolean;
    constructor(handlers: Handlers, takesObject: Set<string>, bigint: boolean);
    /** Notes the schema of a capability. */
    note(capability: string, inputSchema: unknown): void;
    serves(capability: string): boolean;
    /** Serves one call, and returns its answer as JSON. */
    call(call: ServedCall, payload: Loose): Promise<string>;
    /** What a failure means, which goes to the log in full. */
    judge(e: unknown, call: ServedCall): Failure;
}

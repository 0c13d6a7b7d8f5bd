import { JsonError } from "./errors.js";
import { type AbortSignalLike, type Exchange, type Fetch } from "./request.js";
import type { ProgressEvent, Result } from "./result.js";
/** Where the API of an agent is. */
export interface Endpoint {
    /** The path of a Unix socket; `url` then only names the protocol. */
    socketPath?: string | undefined;
    url: string;
    headers: Readonly<Record<string, string>>;
}
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
export declare function ask(at: Endpoint, { method, path, body, accept, signal, onLine }: Ask): Promise<string>;
/** A result that was parsed. The pointer of an error is into the response. */
export declare function settleResult(value: unknown, inexact: boolean, bigint: boolean): Result;
/** Makes calls with POST /v1/request. */
export declare function httpExchange(endpoint: () => Endpoint): Exchange;
/** Waits for results with GET /v1/results/{id}. */
export declare function httpFetch(endpoint: () => Endpoint): Fetch;
/** An event that was parsed, or why its value cannot be read. */
export declare function readProgress(event: ProgressEvent, inexact: boolean, bigint: boolean): ProgressEvent | JsonError;
export {};

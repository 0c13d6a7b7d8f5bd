import type { ExchangeOptions } from "./request.js";
import type { ProgressEvent, Result } from "./result.js";
/**
 * A call that was begun: iterate over it for its progress, and await {@link ResultStream.result} for its outcome.
 * Leaving the loop early does not end the call; the `signal` of its options does. Where there is no outcome, both
 * throw the reason.
 */
export declare class ResultStream<T = unknown, P = unknown> implements AsyncIterable<ProgressEvent<P>> {
    #private;
    /** The outcome. */
    readonly result: Promise<Result<T>>;
    /** @internal */
    constructor(begin: (onProgress: NonNullable<ExchangeOptions["onProgress"]>) => Promise<Result>);
    [Symbol.asyncIterator](): AsyncGenerator<ProgressEvent<P>, void, undefined>;
}

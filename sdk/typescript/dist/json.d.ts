/** How integers beyond ±(2^53 - 1) are read. */
export interface ReadOptions {
    /** As a `bigint`. Otherwise such an integer is a {@link JsonError}. */
    bigint?: boolean;
}
/** The result of {@link parseLoosely}. */
export interface Loose {
    value: unknown;
    /** There are numbers in `value` that are to be settled, by {@link settle}. */
    inexact: boolean;
}
/**
 * Parses one JSON text as `JSON.parse` does, but for numbers that it would change.
 *
 * @throws `SyntaxError`, and {@link JsonError} for an integer that is not safe, and for a fraction or an exponent
 * that hides one.
 */
export declare function parse(text: string, options?: ReadOptions): unknown;
/** Parses a JSON text, parts of which are settled later. */
export declare function parseLoosely(text: string): Loose;
/** Replaces the numbers in a value of {@link parseLoosely} that JavaScript would change, or refuses them. */
export declare function settle(value: unknown, options: ReadOptions, pointer?: string): unknown;
/**
 * Writes a value as JSON without line breaks, as `JSON.stringify` does; a `bigint` is an integer. What has no
 * form in JSON at all, such as `undefined`, is `null`.
 *
 * @throws {@link JsonError} for a `number` that is an integer and not a safe one (it may have been rounded already), for
 * a lone surrogate, which agentd refuses, and for a value that is nested too deeply or has itself as a part.
 */
export declare function stringify(value: unknown): string;

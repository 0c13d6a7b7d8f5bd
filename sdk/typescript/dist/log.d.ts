/** What a line may have besides its message: any JSON values. */
export type LogFields = Readonly<Record<string, unknown>>;
/** Writes lines to standard error, which is the log of agentd. Every line carries the ids of its call. */
export declare class Log {
    #private;
    /** @internal */
    constructor(correlationId: string, traceparent: string);
    debug(message: string, fields?: LogFields): void;
    info(message: string, fields?: LogFields): void;
    warn(message: string, fields?: LogFields): void;
    error(message: string, fields?: LogFields): void;
}

/** Writes lines to standard error, which is the log of agentd. Every line carries the ids of its call. */
export class Log {
    #ids;
    /** @internal */
    constructor(correlationId, traceparent) {
        const trace = traceparent.split("-")[1];
        this.#ids = field("correlationId", correlationId) + (trace ? field("traceId", trace) : "");
    }
    debug(message, fields) {
        this.#write("debug", message, fields);
    }
    info(message, fields) {
        this.#write("info", message, fields);
    }
    warn(message, fields) {
        this.#write("warn", message, fields);
    }
    error(message, fields) {
        this.#write("error", message, fields);
    }
    #write(level, message, fields = {}) {
        let line = `level=${level} msg=${JSON.stringify(message)}${this.#ids}`;
        for (const [name, value] of Object.entries(fields))
            line += field(name, value);
        process.stderr.write(line + "\n");
    }
}
/** One `name=value`. What is no word is quoted, so that a line stays one line. */
function field(name, value) {
    let text;
    if (typeof value === "string")
        text = value;
    else if (value instanceof Error)
        text = value.stack ?? String(value);
    else if (typeof value === "bigint")
        text = String(value);
    else {
        try {
            text = JSON.stringify(value);
        }
        catch {
            text = String(value); // a cycle
        }
    }
    text ??= String(value);
    return ` ${name.replace(/[^\w.-]/g, "_")}=${/^[\w.:/@+-]+$/.test(text) ? text : JSON.stringify(text)}`;
}

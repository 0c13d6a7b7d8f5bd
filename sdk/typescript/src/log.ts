/** What a line may have besides its message: any JSON values. */
export type LogFields = Readonly<Record<string, unknown>>;

/** Writes lines to standard error, which is the log of agentd. Every line carries the ids of its call. */
export class Log {
  readonly #ids: string;

  /** @internal */
  constructor(correlationId: string, traceparent: string) {
    const trace = traceparent.split("-")[1];
    this.#ids = field("correlationId", correlationId) + (trace ? field("traceId", trace) : "");
  }

  debug(message: string, fields?: LogFields): void {
    this.#write("debug", message, fields);
  }

  info(message: string, fields?: LogFields): void {
    this.#write("info", message, fields);
  }

  warn(message: string, fields?: LogFields): void {
    this.#write("warn", message, fields);
  }

  error(message: string, fields?: LogFields): void {
    this.#write("error", message, fields);
  }

  #write(level: string, message: string, fields: LogFields = {}): void {
    let line = `level=${level} msg=${JSON.stringify(message)}${this.#ids}`;
    for (const [name, value] of Object.entries(fields)) line += field(name, value);
    process.stderr.write(line + "\n");
  }
}

/** One `name=value`. What is no word is quoted, so that a line stays one line. */
function field(name: string, value: unknown): string {
  let text: string | undefined;
  if (typeof value === "string") text = value;
  else if (value instanceof Error) text = value.stack ?? String(value);
  else if (typeof value === "bigint") text = String(value);
  else {
    try {
      text = JSON.stringify(value);
    } catch {
      text = String(value); // a cycle
    }
  }
  text ??= String(value);
  return ` ${name.replace(/[^\w.-]/g, "_")}=${/^[\w.:/@+-]+$/.test(text) ? text : JSON.stringify(text)}`;
}

/** The call that a skill serves. A text is empty where the caller gave none. */
export interface Call {
  /** The address of the agent that calls. */
  caller: string;
  /** The request has proven that. Otherwise caller is its word. */
  callerProven: boolean;
  /** The address of the agent that serves the call. */
  agent: string;
  capability: string;
  correlationId: string;
  messageId: string;
  sessionId: string;
  tenantId: string;
  idempotencyKey: string;
  /** The W3C trace context. */
  traceparent: string;
  /** The calls that led here, this one included. */
  hops: number;
  /** When the caller stops waiting, as Date.now() counts. */
  deadlineMs: number | undefined;
}

/** The call that this process serves, from the environment that agentd gave it. */
export function currentCall(): Call {
  const env = (globalThis as unknown as { process?: { env: Record<string, string | undefined> } }).process?.env ?? {};
  const get = (name: string): string => env["AGENTD_" + name] ?? "";
  return {
    caller: get("CALLER"),
    callerProven: get("CALLER_PROVEN") === "true",
    agent: get("AGENT"),
    capability: get("CAPABILITY"),
    correlationId: get("CORRELATION_ID"),
    messageId: get("MESSAGE_ID"),
    sessionId: get("SESSION_ID"),
    tenantId: get("TENANT_ID"),
    idempotencyKey: get("IDEMPOTENCY_KEY"),
    traceparent: get("TRACEPARENT"),
    hops: Number(get("HOPS")),
    deadlineMs: get("DEADLINE") === "" ? undefined : Number(get("DEADLINE")),
  };
}

/** The code behind capabilities. */
export type Handlers = {
  [C in keyof Capabilities]?: (
    payload: Capabilities[C]["request"],
    call: Call,
  ) => Capabilities[C]["response"] | Promise<Capabilities[C]["response"]>;
};

/** A failure that the caller may read. Any other exception stays in the log of agentd. */
export class SkillError extends Error {
  readonly retryable: boolean;
  constructor(message: string, retryable = false) {
    super(message);
    this.name = "SkillError";
    this.retryable = retryable;
  }
}

/**
 * Serves the call that this process was started for, and ends the process. While a
 * handler runs, standard output is standard error: what it prints goes to the log.
 */
export async function serve(handlers: Handlers): Promise<never> {
  interface Stream {
    write(text: string, written?: () => void): boolean;
  }
  interface Host {
    stdin: AsyncIterable<string> & { setEncoding(encoding: string): void };
    stdout: Stream;
    stderr: Stream;
    exit(status: number): never;
  }
  const { process } = globalThis as unknown as { process: Host };
  const answer = process.stdout.write.bind(process.stdout);
  process.stdout.write = process.stderr.write.bind(process.stderr);
  const end = (status: number, text: string): Promise<never> =>
    new Promise(() => answer(text, () => process.exit(status)));

  const call = currentCall();
  try {
    const handler = Object.hasOwn(handlers, call.capability)
      ? (handlers as Record<string, (payload: unknown, call: Call) => unknown>)[call.capability]
      : undefined;
    if (!handler) throw new Error("nothing serves the capability " + JSON.stringify(call.capability));
    let text = "";
    process.stdin.setEncoding("utf8");
    for await (const chunk of process.stdin) text += chunk;
    // A call without arguments is {} where the schema takes an object and no null.
    const payload: unknown = (text.trim() === "" ? null : JSON.parse(text)) ?? (takesObject.has(call.capability) ? {} : null);
    return await end(0, JSON.stringify(await handler(payload, call)) ?? "null");
  } catch (e) {
    if (!(e instanceof SkillError)) {
      process.stderr.write(String((e instanceof Error && e.stack) || e) + "\n");
      return await end(1, "");
    }
    process.stderr.write("skill failed: " + e.message + "\n");
    const error = { message: e.message, retryable: e.retryable };
    return await end(e.retryable ? 75 : 1, JSON.stringify({ error }));
  }
}

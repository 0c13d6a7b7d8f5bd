/** A program that stays: docs/worker-protocol.md, version 1. */
import { type Link, type ModelUsage, ServedCall } from "./call.js";
import { AgentdError, RefusedError } from "./errors.js";
import { httpFetch, readProgress, settleResult } from "./http.js";
import { parseLoosely } from "./json.js";
import type { ExchangeOptions, Fetch } from "./request.js";
import type { ProgressEvent, Result } from "./result.js";
import type { Output, Skill } from "./skill.js";

const version = 1;

/** The codes of errors. Those of JSON-RPC 2.0 have its meaning. */
const methodNotFound = -32601, invalidParams = -32602, internal = -32603, failed = -32000, notRunning = -32001, tooMany = -32002, cancelled = -32800;

/** Bounds a line before `initialize` has said how long one may be. */
const firstLineBytes = 64 << 20;

/** Progress is lost when so much waits for an agentd that does not read. */
const maxWaitingBytes = 8 << 20;

/** More than this is written at once: a skill that reports progress in a loop leaves no turn to the event loop. */
const batchBytes = 64 << 10;

interface Limits {
  maxMessageBytes: number;
  maxPayloadBytes: number;
  maxProgressBytes: number;
  /** 0 for an agentd that takes no reports. */
  maxModelUsages: number;
}

interface Message {
  id?: number | string;
  method?: string;
  params?: Record<string, unknown>;
  result?: unknown;
  error?: { code: number; message: string };
}

/** A request to agentd that is in progress. */
interface Nested {
  /** The id of the call that it is part of. */
  of: number | string;
  options: ExchangeOptions;
  resolve(result: Result): void;
  reject(e: unknown): void;
}

/** Serves the calls that come on standard input until that ends. */
export function runWorker(skill: Skill, concurrency: number, input: NodeJS.ReadStream, output: Output): Promise<never> {
  return new Promise(() => new Worker(skill, concurrency, output).run(input));
}

class Worker {
  readonly #skill: Skill;
  readonly #concurrency: number;
  readonly #lines: LineWriter;
  readonly #calls = new Map<number | string, ServedCall>();
  readonly #nested = new Map<number | string, Nested>();
  #lastId = 0;
  #ending = false;
  #agent = "";
  #url = "";
  #limits: Limits = { maxMessageBytes: Infinity, maxPayloadBytes: firstLineBytes - (1 << 20), maxProgressBytes: Infinity, maxModelUsages: 0 };

  constructor(skill: Skill, concurrency: number, output: Output) {
    this.#skill = skill;
    this.#concurrency = concurrency;
    this.#lines = new LineWriter(output);
  }

  run(input: NodeJS.ReadStream): void {
    const lines = new LineReader(
      (line) => this.#take(line),
      () => this.#limits.maxPayloadBytes + (1 << 20) + 1,
    );
    input.on("data", (chunk: Buffer) => {
      try {
        lines.push(chunk);
      } catch (e) {
        process.stderr.write(`worker failed: ${String(e)}\n`);
        process.exit(1);
      }
    });
    input.on("end", () => this.#end("the worker ends"));
    input.on("error", () => process.exit(1));
    process.on("SIGTERM", () => {
      if (this.#ending) process.exit(1); // calls do not end
      this.#end("SIGTERM");
    });
  }

  /** Cancels the calls that run, and ends with the last of them. */
  #end(why: string): void {
    this.#ending = true;
    for (const call of this.#calls.values()) call.cancel(why);
    this.#endIfIdle();
  }

  #endIfIdle(): void {
    if (this.#ending && this.#calls.size === 0) this.#lines.flush(() => process.exit(0));
  }

  /** Does what a message asks for. */
  #take(line: string): void {
    const { value, inexact } = parseLoosely(line);
    const message = value as Message;
    const { id, method, params = {} } = message;
    if (method === undefined) this.#answered(message, inexact);
    else if (id === undefined) this.#notified(method, params, inexact);
    else if (method === "invoke") void this.#invoke(id, params, inexact);
    else if (method === "initialize") this.#initialize(id, params);
    else if (method === "ping") this.#respond(id, "{}");
    else this.#refuse(id, methodNotFound, `there is no method ${JSON.stringify(method)}`);
  }

  #initialize(id: number | string, params: Record<string, unknown>): void {
    const { protocolVersions, agent, url, capabilities, limits } = params as {
      protocolVersions?: number[]; agent?: string; url?: string; capabilities?: Array<{ name: string; inputSchema?: unknown }>; limits?: Partial<Limits>;
    };
    if (!protocolVersions?.includes(version)) return this.#refuse(id, invalidParams, `this worker speaks version ${version} of the protocol`);
    this.#agent = agent ?? "";
    this.#url = url ?? "";
    for (const name of ["maxMessageBytes", "maxPayloadBytes", "maxProgressBytes", "maxModelUsages"] as const) this.#limits[name] = limits?.[name] || this.#limits[name];
    for (const c of capabilities ?? []) this.#skill.note(c.name, c.inputSchema);
    this.#respond(id, JSON.stringify({ protocolVersion: version, capabilities: Object.keys(this.#skill.handlers), concurrency: this.#concurrency }));
  }

  #notified(method: string, params: Record<string, unknown>, inexact: boolean): void {
    const { id, reason } = params as { id: number | string; reason?: string };
    if (method === "cancel") {
      this.#calls.get(id)?.cancel(reason ?? "caller");
    } else if (method === "progress") {
      const nested = this.#nested.get(id);
      const { seq, attempt, value } = params as unknown as ProgressEvent;
      nested?.options.onProgress?.(readProgress({ seq, attempt, value }, inexact, nested.options.bigint));
    }
  }

  /** Serves one call. */
  async #invoke(id: number | string, params: Record<string, unknown>, inexact: boolean): Promise<void> {
    const text = (name: string): string => (params[name] as string | undefined) ?? "";
    const capability = text("capability");
    if (!this.#skill.serves(capability)) return this.#refuse(id, invalidParams, `nothing serves the capability ${JSON.stringify(capability)}`);
    const call = new ServedCall(
      {
        caller: text("caller"), callerProven: params["callerProven"] === true, agent: this.#agent, capability,
        correlationId: text("correlationId"), messageId: text("messageId"), sessionId: text("sessionId"), tenantId: text("tenantId"),
        idempotencyKey: text("idempotencyKey"), traceparent: text("traceparent"), tracestate: text("tracestate"), hops: (params["hops"] as number | undefined) ?? 0,
        deadlineMs: (params["deadlineMs"] as number | undefined) || undefined, event: params["event"] === true, wantsProgress: params["progress"] === true,
      },
      new PipeLink(this, id, text("token")),
    );
    this.#calls.set(id, call);
    let answer = "", error = "";
    try {
      answer = await this.#skill.call(call, { value: params["payload"], inexact });
    } catch (e) {
      const { message, retryable, cancelled: left, text: said } = this.#skill.judge(e, call);
      error = encodeError(message !== undefined ? failed : left ? cancelled : internal, message ?? said, retryable);
    }
    this.#calls.delete(id);
    call.end();
    this.#abandon(id);
    if (error === "" && !this.#fits(answer, 256)) error = encodeError(internal, `the answer is longer than a message may be, ${this.#limits.maxMessageBytes} bytes`, false);
    if (error === "") this.#lines.write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"answer":${answer}}}\n`);
    else this.#lines.write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"error":${error}}\n`);
    this.#endIfIdle();
  }

  /** Rejects the requests that a call has left behind: agentd ends them with it. */
  #abandon(of: number | string): void {
    if (this.#nested.size === 0) return;
    for (const [id, nested] of this.#nested) {
      if (nested.of !== of) continue;
      this.#nested.delete(id); // its response is passed over
      nested.reject(ended());
    }
  }

  /** Whether a text with so much around it is a message that agentd takes. */
  #fits(text: string, around: number): boolean {
    const most = this.#limits.maxMessageBytes - around;
    return text.length * 3 <= most || Buffer.byteLength(text) <= most;
  }

  #respond(id: number | string, result: string): void {
    this.#lines.write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}\n`);
  }

  #refuse(id: number | string, code: number, message: string): void {
    this.#lines.write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"error":${encodeError(code, message, false)}}\n`);
  }

  /** Reports progress of a call. */
  async progress(of: number | string, value: string): Promise<boolean> {
    if (!this.#calls.get(of)?.wantsProgress) return false; // or it has ended
    const bytes = Buffer.byteLength(value);
    if (bytes > this.#limits.maxProgressBytes) throw new AgentdError("too-large", `progress of ${bytes} bytes, and ${this.#limits.maxProgressBytes} are allowed`);
    if (this.#lines.waiting < maxWaitingBytes) {
      this.#lines.write(`{"jsonrpc":"2.0","method":"progress","params":{"id":${JSON.stringify(of)},"value":${value}}}\n`);
    }
    await this.#lines.ready();
    return true;
  }

  /** Reports what a model used, as the n-th report of a call. */
  async modelUsage(of: number | string, n: number, usage: Required<ModelUsage>): Promise<boolean> {
    const most = this.#limits.maxModelUsages;
    if (most === 0) return false;
    if (!this.#calls.has(of)) throw new RefusedError("EAGENTRPC_INVALID_REQUEST", "the call that this report is about has ended", 403);
    if (n > most) throw new RefusedError("EAGENTRPC_BUSY", `the call has made ${most} reports of a model's usage, which is as many as it may make`, 429);
    this.#lines.write(`{"jsonrpc":"2.0","method":"modelUsage","params":{"id":${JSON.stringify(of)},"usage":${JSON.stringify(usage)}}}\n`);
    await this.#lines.ready();
    return true;
  }

  /** Makes a nested call. */
  request(of: number | string, request: string, options: ExchangeOptions): Promise<Result> {
    const { signal } = options;
    return new Promise((resolve, reject) => {
      if (signal?.aborted) throw signal.reason;
      if (!this.#calls.has(of)) throw ended();
      if (!this.#fits(request, 256)) throw new RefusedError("EAGENTRPC_PAYLOAD_TOO_LARGE", `the request is longer than a message may be, ${this.#limits.maxMessageBytes} bytes`, 413);
      const id = ++this.#lastId;
      const aborted = (): void => {
        this.#nested.delete(id);
        this.#lines.write(`{"jsonrpc":"2.0","method":"cancel","params":{"id":${id},"reason":"caller"}}\n`);
        reject(signal?.reason);
      };
      signal?.addEventListener("abort", aborted, { once: true });
      const settled = (): void => signal?.removeEventListener("abort", aborted);
      this.#nested.set(id, {
        of, options,
        resolve: (result) => (settled(), resolve(result)),
        reject: (e) => (settled(), reject(e)),
      });
      const progress = options.onProgress ? `,"progress":true` : "";
      this.#lines.write(`{"jsonrpc":"2.0","id":${id},"method":"requestAgent","params":{"call":${JSON.stringify(of)},"request":${request}${progress}}}\n`);
    });
  }

  /** Gives the response to a request to who waits for it. One that nobody waits for any more is passed over. */
  #answered({ id = "", result, error }: Message, inexact: boolean): void {
    const nested = this.#nested.get(id);
    if (!nested) return;
    this.#nested.delete(id);
    if (error) return nested.reject(refusal(error));
    try {
      nested.resolve(settleResult(result, inexact, nested.options.bigint));
    } catch (e) {
      nested.reject(e);
    }
  }

  /** The HTTP API of the agent, for what is not in the protocol. */
  get url(): string {
    return this.#url;
  }

  get bigint(): boolean {
    return this.#skill.bigint;
  }
}

/** What one call of a worker asks its agent for. */
class PipeLink implements Link {
  readonly bigint: boolean;
  readonly fetch: Fetch;
  readonly #worker: Worker;
  readonly #id: number | string;
  #usages = 0;

  constructor(worker: Worker, id: number | string, token: string) {
    this.#worker = worker;
    this.#id = id;
    this.fetch = httpFetch(() => ({ url: worker.url, headers: { "Agentd-Call": token } }));
    this.bigint = worker.bigint;
  }

  exchange = (request: string, options: ExchangeOptions): Promise<Result> => this.#worker.request(this.#id, request, options);

  progress(value: string): Promise<boolean> {
    return this.#worker.progress(this.#id, value);
  }

  modelUsage(usage: Required<ModelUsage>): Promise<boolean> {
    return this.#worker.modelUsage(this.#id, ++this.#usages, usage);
  }
}

function encodeError(code: number, message: string, retryable: boolean): string {
  return JSON.stringify({ code, message: message.toWellFormed(), ...(retryable ? { data: { retryable } } : {}) });
}

function ended(): RefusedError {
  return new RefusedError("EAGENTRPC_INVALID_REQUEST", "the call that this one would be part of has ended", 403);
}

/** The refusal of a nested call, as the HTTP API has it. */
function refusal({ code, message }: { code: number; message: string }): RefusedError {
  switch (code) {
    case notRunning:
      return new RefusedError("EAGENTRPC_INVALID_REQUEST", message, 403);
    case tooMany:
      return new RefusedError("EAGENTRPC_BUSY", message, 429);
    case invalidParams:
      return new RefusedError("EAGENTRPC_INVALID_REQUEST", message, 400);
    default:
      return new RefusedError("EAGENTRPC_INTERNAL", message, 500);
  }
}

/** Cuts standard input into lines. */
class LineReader {
  #parts: Buffer[] = [];
  #bytes = 0;
  readonly #onLine: (line: string) => void;
  readonly #most: () => number;

  constructor(onLine: (line: string) => void, most: () => number) {
    this.#onLine = onLine;
    this.#most = most;
  }

  push(chunk: Buffer): void {
    let start = 0;
    for (;;) {
      const end = chunk.indexOf(10, start);
      if (end < 0) break;
      if (this.#parts.length > 0) {
        this.#keep(chunk.subarray(start, end));
        const line = Buffer.concat(this.#parts).toString("utf8");
        this.#parts = [];
        this.#bytes = 0;
        this.#onLine(line);
      } else {
        this.#onLine(chunk.toString("utf8", start, end));
      }
      start = end + 1;
    }
    if (start < chunk.length) this.#keep(chunk.subarray(start));
  }

  /** Keeps a part of a line. */
  #keep(part: Buffer): void {
    this.#bytes += part.length;
    if (this.#bytes > this.#most()) throw new Error(`agentd has written a line of more than ${this.#most()} bytes`);
    this.#parts.push(part);
  }
}

/** Writes lines to standard output: the first of a turn of the event loop at once, and all others of it together. */
class LineWriter {
  readonly #output: Output;
  #lines: string[] = [];
  #scheduled = false;
  #blocked = false;
  #drained: Array<() => void> = [];
  /** The characters that wait. */
  waiting = 0;

  constructor(output: Output) {
    this.#output = output;
    output.on("drain", () => {
      this.#blocked = false;
      for (const wake of this.#drained.splice(0)) wake();
      this.#write();
    });
    output.on("error", () => process.exit(1)); // agentd has gone
  }

  write(line: string): void {
    this.#lines.push(line);
    this.waiting += line.length;
    if (this.#blocked || (this.#scheduled && this.waiting < batchBytes)) return;
    this.#write();
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      if (!this.#blocked) this.#write();
    });
  }

  #write(written?: () => void): void {
    if (this.#lines.length === 0 && !written) return;
    const text = this.#lines.length === 1 ? (this.#lines[0] ?? "") : this.#lines.join("");
    this.#lines = [];
    this.waiting = 0;
    if (!this.#output.write(text, written)) this.#blocked = true;
  }

  /** Resolves when the output takes more. */
  ready(): Promise<void> {
    return this.#blocked ? new Promise((wake) => this.#drained.push(wake)) : Promise.resolve();
  }

  /** Writes what there is, and calls back when it is written. */
  flush(written: () => void): void {
    this.#write(written);
  }
}

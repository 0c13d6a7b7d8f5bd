/**
 * Tests of skills: both schemas are checked, and there is neither a fleet nor a broker. The verdicts are agentd's own:
 * `agentd skill test-host` gives them.
 *
 * @packageDocumentation
 */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";

import { type ModelUsage, ServedCall } from "./call.js";
import { AgentdError, RefusedError, SkillError } from "./errors.js";
import { settleResult } from "./http.js";
import { parse, parseLoosely, stringify } from "./json.js";
import { type ExchangeOptions, throwIfAborted } from "./request.js";
import type { ProgressEvent, Result } from "./result.js";
import { type Handlers, type ServeOptions, Skill } from "./skill.js";

/**
 * What a peer answers: a value, or a function of the payload. A function may be asynchronous, and throws a
 * {@link SkillError} to fail. An async generator reports what it yields as progress, and answers with what it returns.
 */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- its author names the type of the payload
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
export class SkillTest {
  /** What the skill has called, in this order. */
  readonly requests: PeerRequest[] = [];
  /** What it has reported, of all calls. */
  readonly progress: unknown[] = [];
  /** What it has reported of models, of all calls. */
  readonly modelUsages: Required<ModelUsage>[] = [];
  readonly #skill: Skill;
  readonly #judge: Judge;
  readonly #peers: readonly Peer[];
  readonly #calls = new Set<ServedCall>();
  readonly #queued = new Map<string, Result>();

  /**
   * @param handlers - What the skill hands to `serve`.
   * @param capabilities - The path of the `capabilities.yaml` of its agent.
   */
  constructor(handlers: Handlers, capabilities: string, options: SkillTestOptions = {}) {
    this.#peers = options.peers ?? [];
    this.#skill = new Skill(handlers, new Set(options.takesObject), options.bigint ?? false);
    this.#judge = new Judge(options.agentd ?? (process.env["AGENTD_BIN"] || "agentd"), capabilities, this.#peers.map((p) => p.capabilities));
  }

  /**
   * Makes one call, and returns what the caller gets. What a caller would not see the text of, any exception but
   * {@link SkillError}, is thrown here.
   */
  async call<T = unknown>(capability: string, payload: unknown = null, options: CallOptions = {}): Promise<Result<T>> {
    const began = performance.now(), correlationId = randomUUID();
    const finish = (outcome: object): Result<T> => ({ ...outcome, correlationId, latencyMs: performance.now() - began }) as Result<T>;
    const { agent, agents } = await this.#judge.hello;
    const text = stringify(payload);
    const refused = await this.#judge.payload("", capability, "request", text);
    if (refused) return finish(refused);
    const declared = agents[agent]?.find((c) => c.name === capability);
    const call = new ServedCall(
      {
        caller: "agent://test", callerProven: true, sessionId: "", tenantId: "", idempotencyKey: "", traceparent: newTrace(), tracestate: "", ...options,
        agent, capability, correlationId, messageId: randomUUID(), hops: 1, event: false, wantsProgress: declared?.progress === true,
        deadlineMs: Date.now() + (options.timeoutMs ?? declared?.timeoutMs ?? 30_000),
      },
      {
        exchange: (request, how) => this.#exchange(request, how), bigint: this.#skill.bigint,
        fetch: async (id) => this.#queued.get(id) ?? unknownResult(),
        progress: async (value) => {
          if (call.wantsProgress) this.progress.push(parse(value, this.#skill));
          return call.wantsProgress;
        },
        modelUsage: async (usage) => {
          this.modelUsages.push(usage);
          return true;
        },
      },
    );
    this.#calls.add(call);
    try {
      const answer = await this.#skill.call(call, parseLoosely(text));
      return finish((await this.#judge.payload("", capability, "response", answer)) ?? { status: "ok", response: parse(answer, this.#skill) });
    } catch (e) {
      if (e instanceof SkillError) return finish(await this.#judge.failure("", capability, e));
      if (call.cancelled) return finish({ status: "abandoned", error: { code: "EAGENTRPC_CANCELLED", message: "the call was cancelled", retryable: false } });
      throw e;
    } finally {
      this.#calls.delete(call);
      call.end();
    }
  }

  /** Cancels the calls that run, such as from the function of a peer. */
  cancel(): void {
    for (const call of this.#calls) call.cancel("by the test");
  }

  /** Ends the program that judges. */
  async close(): Promise<void> {
    await this.#judge.close();
  }

  /** A nested call. */
  async #exchange(text: string, { signal, bigint, onProgress }: ExchangeOptions): Promise<Result> {
    throwIfAborted(signal);
    const { to, capability, payload = null, ...options } = parse(text, this.#skill) as Omit<PeerRequest, "options">;
    this.requests.push({ to, capability, payload, options });
    const agent = to.includes("://") ? to : "agent://" + to;
    const outcome = await this.#outcome(agent, capability, payload, onProgress);
    throwIfAborted(signal);
    const result = settleResult({ latencyMs: 0, ...outcome, correlationId: randomUUID() }, true, bigint);
    const { mode } = options as { mode?: string };
    if (mode === "async") {
      this.#queued.set(result.correlationId, result);
      return { status: "ok", queued: true, correlationId: result.correlationId, latencyMs: 0 } as unknown as Result;
    }
    if (mode === "fire-and-forget" && result.status === "ok") Reflect.deleteProperty(result, "response");
    return result;
  }

  /** What the call of a peer results in. */
  async #outcome(agent: string, capability: string, payload: unknown, onProgress: ExchangeOptions["onProgress"]): Promise<object> {
    const refused = await this.#judge.payload(agent, capability, "request", stringify(payload));
    if (refused) return refused;
    const { peers } = await this.#judge.hello;
    const peer = this.#peers[peers.indexOf(agent)];
    if (!peer || !Object.hasOwn(peer.answers, capability)) throw new AgentdError("no-answer", `the test has no answer for ${agent}/${capability}`);
    try {
      const answer = stringify(await play(peer.answers[capability], payload, onProgress));
      return (await this.#judge.payload(agent, capability, "response", answer)) ?? { status: "ok", response: parseLoosely(answer).value };
    } catch (e) {
      if (e instanceof SkillError) return this.#judge.failure(agent, capability, e);
      throw e;
    }
  }
}

/** Runs what a peer has for an answer. */
async function play(answer: unknown, payload: unknown, onProgress: ExchangeOptions["onProgress"]): Promise<unknown> {
  if (typeof answer !== "function") return answer;
  const given: unknown = answer(payload);
  if (typeof given !== "object" || given === null || !(Symbol.asyncIterator in given) || !("next" in given)) return given;
  const steps = given as AsyncGenerator<unknown, unknown, undefined>;
  for (let seq = 1; ; seq++) {
    const { done, value } = await steps.next();
    if (done) return value;
    onProgress?.({ seq, attempt: 1, value } satisfies ProgressEvent);
  }
}

function unknownResult(): never {
  throw new RefusedError("EAGENTRPC_INVALID_REQUEST", "there is no asynchronous call with this correlation id", 404);
}

function newTrace(): string {
  return `00-${randomBytes(16).toString("hex")}-${randomBytes(8).toString("hex")}-01`;
}

interface Hello {
  protocolVersion: number;
  agent: string;
  /** The addresses of the peers, in the order of their files. */
  peers: string[];
  agents: Record<string, Array<{ name: string; timeoutMs: number; progress?: boolean }>>;
}

interface Verdict {
  valid?: boolean;
  result?: object;
}

/** `agentd skill test-host`, as docs/kits.md has it: a question a line, and its verdict a line, in the same order. */
class Judge {
  readonly hello: Promise<Hello>;
  readonly #process: ChildProcessWithoutNullStreams;
  readonly #waiting: Array<{ resolve(line: unknown): void; reject(e: unknown): void }> = [];
  #ended: AgentdError | undefined;
  readonly #exited: Promise<void>;

  constructor(program: string, capabilities: string, peers: readonly string[]) {
    this.#process = spawn(program, ["skill", "test-host", "--capabilities", capabilities, ...peers.flatMap((p) => ["--peer", p])]);
    const { stdin, stdout, stderr } = this.#process;
    let line = "", log = "";
    stdout.setEncoding("utf8").on("data", (chunk: string) => {
      const lines = (line + chunk).split("\n");
      line = lines.pop() ?? "";
      for (const l of lines) this.#waiting.shift()?.resolve(parse(l, { bigint: true }));
    });
    stderr.setEncoding("utf8").on("data", (chunk: string) => (log += chunk));
    stdin.on("error", () => {}); // it has ended, which is said below
    this.#exited = new Promise((exited) => {
      const end = (why: string, cause?: unknown): void => {
        this.#ended ??= new AgentdError("no-judge", why, { cause });
        for (const { reject } of this.#waiting.splice(0)) reject(this.#ended);
        exited();
      };
      this.#process.on("error", (e) => end(`${program} cannot be run, and judges the test: put agentd into PATH, or name it in AGENTD_BIN: ${e.message}`, e));
      this.#process.on("close", () => end(`agentd skill test-host has ended: ${log.trim()}`));
    });
    this.hello = this.#read().then((hello) => {
      if ((hello as Hello).protocolVersion !== 1) throw new AgentdError("no-judge", `this kit does not fit ${program}`);
      return { ...(hello as Hello), peers: (hello as Partial<Hello>).peers ?? [] };
    });
    this.hello.catch(() => {}); // the first call throws it
  }

  /** What the call results in if a payload does not fit. */
  payload(agent: string, capability: string, side: "request" | "response", text: string): Promise<object | undefined> {
    return this.#ask(`{"id":0,"agent":${stringify(agent)},"capability":${stringify(capability)},"side":"${side}","payload":${text}}`);
  }

  /** What the call results in if the skill fails. */
  async failure(agent: string, capability: string, { message, retryable }: SkillError): Promise<object> {
    const failure = { message: message.toWellFormed(), retryable };
    return (await this.#ask(stringify({ id: 0, agent, capability, failure }))) ?? {};
  }

  async #ask(question: string): Promise<object | undefined> {
    await this.hello;
    this.#process.stdin.write(question + "\n");
    const verdict = (await this.#read()) as Verdict;
    return verdict.valid ? undefined : (verdict.result ?? {});
  }

  #read(): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#ended) reject(this.#ended);
      else this.#waiting.push({ resolve, reject });
    });
  }

  async close(): Promise<void> {
    this.#process.stdin.end();
    await this.#exited;
  }
}

import { Console } from "node:console";
import { ServedCall, within } from "./call.js";
import { CallError, ConnectionFailed, JsonError, RefusedError, SkillError } from "./errors.js";
import { ask, httpExchange, httpFetch } from "./http.js";
import { parseLoosely, settle, stringify } from "./json.js";
import { runWorker } from "./worker.js";
/**
 * Serves what this program was started for, and ends the process: one call, or as a worker many of them, as the
 * `agent.yaml` says. From here on standard output belongs to agentd, and what the program prints goes to standard error.
 */
export async function serve(handlers, options = {}) {
    const concurrency = options.concurrency ?? 1;
    if (!Number.isInteger(concurrency) || concurrency < 1)
        throw new RangeError(`concurrency must be an integer from 1, not ${concurrency}`);
    const skill = new Skill(handlers, new Set(options.takesObject), options.bigint ?? false);
    const output = takeOutput();
    const version = process.env["AGENTD_WORKER"];
    delete process.env["AGENTD_WORKER"]; // what this program starts has another standard input
    if (version)
        return runWorker(skill, concurrency, process.stdin, output);
    return runProcess(skill, output);
}
/** Takes standard output for messages, so that a forgotten print is a line of the log. */
function takeOutput() {
    const { stdout, stderr } = process;
    const write = stdout.write.bind(stdout);
    stdout.write = stderr.write.bind(stderr);
    // Not every runtime writes its console by way of process.stdout.
    const toLog = new Console({ stdout: stderr, stderr });
    for (const [name, method] of Object.entries(console)) {
        const same = toLog[name];
        if (typeof method === "function" && typeof same === "function")
            console[name] = same.bind(toLog);
    }
    return { write, on: stdout.on.bind(stdout) };
}
/** The handlers, and what happens around each of them. */
export class Skill {
    handlers;
    bigint;
    #takesObject;
    constructor(handlers, takesObject, bigint) {
        this.handlers = handlers;
        this.bigint = bigint;
        this.#takesObject = takesObject;
    }
    /** Notes the schema of a capability. */
    note(capability, inputSchema) {
        const { type } = (inputSchema ?? {});
        if (type === "object" || (Array.isArray(type) && type.includes("object") && !type.includes("null")))
            this.#takesObject.add(capability);
    }
    serves(capability) {
        return Object.hasOwn(this.handlers, capability);
    }
    /** Serves one call, and returns its answer as JSON. */
    async call(call, payload) {
        const handler = this.serves(call.capability) ? this.handlers[call.capability] : undefined;
        if (!handler)
            throw new Error(`nothing serves the capability ${JSON.stringify(call.capability)}`);
        let value = payload.value;
        if (payload.inexact) {
            try {
                value = settle(value, this);
            }
            catch (e) {
                if (e instanceof JsonError)
                    throw new SkillError("the payload does not fit the skill: " + e.message, { cause: e });
                throw e;
            }
        }
        value ??= this.#takesObject.has(call.capability) ? {} : null;
        return stringify(await within(call, () => handler(value, call)));
    }
    /** What a failure means, which goes to the log in full. */
    judge(e, call) {
        const stack = (e instanceof Error && e.stack) || words(e);
        const text = e instanceof Error ? `${e.name}: ${e.message}`.replace(/^Error: /, "") : words(e);
        if (e instanceof SkillError) {
            const cause = e.cause === undefined ? "" : `\ncaused by ${(e.cause instanceof Error && e.cause.stack) || words(e.cause)}`;
            process.stderr.write(`skill failed: ${call.capability}: ${e.message} (call ${call.correlationId})${cause}\n`);
            return { message: e.message, retryable: e.retryable, cancelled: false, text };
        }
        const retryable = call.cancelled || (e instanceof CallError && e.retryable);
        process.stderr.write(`skill failed: ${call.capability} (call ${call.correlationId}): ${call.cancelled ? text : stack}\n`);
        return { retryable, cancelled: call.cancelled, text };
    }
}
/** What is thrown may be anything, also what has no text. */
function words(value) {
    try {
        return String(value);
    }
    catch {
        return "something without a text was thrown";
    }
}
/** EX_TEMPFAIL of sysexits.h: the same call may succeed later. */
const exitRetryable = 75;
/** Serves the call that this process was started for. */
async function runProcess(skill, output) {
    const link = {
        exchange: httpExchange(endpoint), fetch: httpFetch(endpoint), bigint: skill.bigint,
        progress: async (value) => {
            const reply = await ask(endpoint(), { method: "POST", path: "/v1/agent/progress", body: value });
            return JSON.parse(reply).wanted;
        },
        modelUsage: async (usage) => {
            try {
                await ask(endpoint(), { method: "POST", path: "/v1/agent/model-usage", body: JSON.stringify(usage) });
                return true;
            }
            catch (e) {
                if (e instanceof RefusedError && e.code === "not-an-operator")
                    return false; // an agentd that takes no reports
                throw e;
            }
        },
    };
    const call = new ServedCall(callOfEnvironment(skill), link);
    let terms = 0;
    process.on("SIGTERM", () => {
        if (++terms > 1)
            process.exit(exitRetryable);
        call.cancel("SIGTERM");
    });
    let text, status = 0;
    try {
        text = await skill.call(call, await readPayload());
    }
    catch (e) {
        const { message, retryable } = skill.judge(e, call);
        status = retryable ? exitRetryable : 1;
        text = message === undefined ? "" : JSON.stringify({ error: { message: message.toWellFormed(), retryable } });
    }
    return new Promise(() => {
        const exit = () => process.exit(status);
        output.on("error", exit);
        output.write(text, exit);
    });
}
async function readPayload() {
    let text = "";
    process.stdin.setEncoding("utf8");
    for await (const chunk of process.stdin)
        text += chunk;
    try {
        return parseLoosely(text.trim() === "" ? "null" : text);
    }
    catch {
        throw new Error("the payload is no JSON"); // the engine's own words would have parts of it
    }
}
function endpoint() {
    const { AGENTD_URL: url, AGENTD_SOCKET: socketPath, AGENTD_CALL: call } = process.env;
    if (url)
        return { url, headers: call ? { "Agentd-Call": call } : {} };
    if (socketPath)
        return { socketPath, url: "http://agentd", headers: {} };
    throw new ConnectionFailed("no-endpoint", "AGENTD_URL is not set: agentd sets it for skills");
}
/** The call, as agentd describes it to a process. */
function callOfEnvironment(skill) {
    const get = (name) => process.env["AGENTD_" + name] ?? "";
    const names = Object.keys(skill.handlers);
    return {
        caller: get("CALLER"), callerProven: get("CALLER_PROVEN") === "true", agent: get("AGENT"),
        capability: get("CAPABILITY") || (names.length === 1 ? (names[0] ?? "") : ""), // a program that is run by hand
        correlationId: get("CORRELATION_ID"), messageId: get("MESSAGE_ID"), sessionId: get("SESSION_ID"), tenantId: get("TENANT_ID"),
        idempotencyKey: get("IDEMPOTENCY_KEY"), traceparent: get("TRACEPARENT"), tracestate: process.env["TRACESTATE"] ?? "", hops: Number(get("HOPS")),
        deadlineMs: Number(get("DEADLINE")) || undefined, event: false, wantsProgress: true,
    };
}

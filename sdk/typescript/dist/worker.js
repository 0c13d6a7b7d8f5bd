/** A program that stays: docs/worker-protocol.md, version 1. */
import { ServedCall } from "./call.js";
import { AgentdError, RefusedError } from "./errors.js";
import { httpFetch, readProgress, settleResult } from "./http.js";
import { parseLoosely } from "./json.js";
const version = 1;
/** The codes of errors. Those of JSON-RPC 2.0 have its meaning. */
const methodNotFound = -32601, invalidParams = -32602, internal = -32603, failed = -32000, notRunning = -32001, tooMany = -32002, cancelled = -32800;
/** Bounds a line before `initialize` has said how long one may be. */
const firstLineBytes = 64 << 20;
/** Progress is lost when so much waits for an agentd that does not read. */
const maxWaitingBytes = 8 << 20;
/** More than this is written at once: a skill that reports progress in a loop leaves no turn to the event loop. */
const batchBytes = 64 << 10;
/** Serves the calls that come on standard input until that ends. */
export function runWorker(skill, concurrency, input, output) {
    return new Promise(() => new Worker(skill, concurrency, output).run(input));
}
class Worker {
    #skill;
    #concurrency;
    #lines;
    #calls = new Map();
    #nested = new Map();
    #lastId = 0;
    #ending = false;
    #agent = "";
    #url = "";
    #limits = { maxMessageBytes: Infinity, maxPayloadBytes: firstLineBytes - (1 << 20), maxProgressBytes: Infinity, maxModelUsages: 0 };
    constructor(skill, concurrency, output) {
        this.#skill = skill;
        this.#concurrency = concurrency;
        this.#lines = new LineWriter(output);
    }
    run(input) {
        const lines = new LineReader((line) => this.#take(line), () => this.#limits.maxPayloadBytes + (1 << 20) + 1);
        input.on("data", (chunk) => {
            try {
                lines.push(chunk);
            }
            catch (e) {
                process.stderr.write(`worker failed: ${String(e)}\n`);
                process.exit(1);
            }
        });
        input.on("end", () => this.#end("the worker ends"));
        input.on("error", () => process.exit(1));
        process.on("SIGTERM", () => {
            if (this.#ending)
                process.exit(1); // calls do not end
            this.#end("SIGTERM");
        });
    }
    /** Cancels the calls that run, and ends with the last of them. */
    #end(why) {
        this.#ending = true;
        for (const call of this.#calls.values())
            call.cancel(why);
        this.#endIfIdle();
    }
    #endIfIdle() {
        if (this.#ending && this.#calls.size === 0)
            this.#lines.flush(() => process.exit(0));
    }
    /** Does what a message asks for. */
    #take(line) {
        const { value, inexact } = parseLoosely(line);
        const message = value;
        const { id, method, params = {} } = message;
        if (method === undefined)
            this.#answered(message, inexact);
        else if (id === undefined)
            this.#notified(method, params, inexact);
        else if (method === "invoke")
            void this.#invoke(id, params, inexact);
        else if (method === "initialize")
            this.#initialize(id, params);
        else if (method === "ping")
            this.#respond(id, "{}");
        else
            this.#refuse(id, methodNotFound, `there is no method ${JSON.stringify(method)}`);
    }
    #initialize(id, params) {
        const { protocolVersions, agent, url, capabilities, limits } = params;
        if (!protocolVersions?.includes(version))
            return this.#refuse(id, invalidParams, `this worker speaks version ${version} of the protocol`);
        this.#agent = agent ?? "";
        this.#url = url ?? "";
        for (const name of ["maxMessageBytes", "maxPayloadBytes", "maxProgressBytes", "maxModelUsages"])
            this.#limits[name] = limits?.[name] || this.#limits[name];
        for (const c of capabilities ?? [])
            this.#skill.note(c.name, c.inputSchema);
        this.#respond(id, JSON.stringify({ protocolVersion: version, capabilities: Object.keys(this.#skill.handlers), concurrency: this.#concurrency }));
    }
    #notified(method, params, inexact) {
        const { id, reason } = params;
        if (method === "cancel") {
            this.#calls.get(id)?.cancel(reason ?? "caller");
        }
        else if (method === "progress") {
            const nested = this.#nested.get(id);
            const { seq, attempt, value } = params;
            nested?.options.onProgress?.(readProgress({ seq, attempt, value }, inexact, nested.options.bigint));
        }
    }
    /** Serves one call. */
    async #invoke(id, params, inexact) {
        const text = (name) => params[name] ?? "";
        const capability = text("capability");
        if (!this.#skill.serves(capability))
            return this.#refuse(id, invalidParams, `nothing serves the capability ${JSON.stringify(capability)}`);
        const call = new ServedCall({
            caller: text("caller"), callerProven: params["callerProven"] === true, agent: this.#agent, capability,
            correlationId: text("correlationId"), messageId: text("messageId"), sessionId: text("sessionId"), tenantId: text("tenantId"),
            idempotencyKey: text("idempotencyKey"), traceparent: text("traceparent"), tracestate: text("tracestate"), hops: params["hops"] ?? 0,
            deadlineMs: params["deadlineMs"] || undefined, event: params["event"] === true, wantsProgress: params["progress"] === true,
        }, new PipeLink(this, id, text("token")));
        this.#calls.set(id, call);
        let answer = "", error = "";
        try {
            answer = await this.#skill.call(call, { value: params["payload"], inexact });
        }
        catch (e) {
            const { message, retryable, cancelled: left, text: said } = this.#skill.judge(e, call);
            error = encodeError(message !== undefined ? failed : left ? cancelled : internal, message ?? said, retryable);
        }
        this.#calls.delete(id);
        call.end();
        this.#abandon(id);
        if (error === "" && !this.#fits(answer, 256))
            error = encodeError(internal, `the answer is longer than a message may be, ${this.#limits.maxMessageBytes} bytes`, false);
        if (error === "")
            this.#lines.write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"answer":${answer}}}\n`);
        else
            this.#lines.write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"error":${error}}\n`);
        this.#endIfIdle();
    }
    /** Rejects the requests that a call has left behind: agentd ends them with it. */
    #abandon(of) {
        if (this.#nested.size === 0)
            return;
        for (const [id, nested] of this.#nested) {
            if (nested.of !== of)
                continue;
            this.#nested.delete(id); // its response is passed over
            nested.reject(ended());
        }
    }
    /** Whether a text with so much around it is a message that agentd takes. */
    #fits(text, around) {
        const most = this.#limits.maxMessageBytes - around;
        return text.length * 3 <= most || Buffer.byteLength(text) <= most;
    }
    #respond(id, result) {
        this.#lines.write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}\n`);
    }
    #refuse(id, code, message) {
        this.#lines.write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"error":${encodeError(code, message, false)}}\n`);
    }
    /** Reports progress of a call. */
    async progress(of, value) {
        if (!this.#calls.get(of)?.wantsProgress)
            return false; // or it has ended
        const bytes = Buffer.byteLength(value);
        if (bytes > this.#limits.maxProgressBytes)
            throw new AgentdError("too-large", `progress of ${bytes} bytes, and ${this.#limits.maxProgressBytes} are allowed`);
        if (this.#lines.waiting < maxWaitingBytes) {
            this.#lines.write(`{"jsonrpc":"2.0","method":"progress","params":{"id":${JSON.stringify(of)},"value":${value}}}\n`);
        }
        await this.#lines.ready();
        return true;
    }
    /** Reports what a model used, as the n-th report of a call. */
    async modelUsage(of, n, usage) {
        const most = this.#limits.maxModelUsages;
        if (most === 0)
            return false;
        if (!this.#calls.has(of))
            throw new RefusedError("EAGENTRPC_INVALID_REQUEST", "the call that this report is about has ended", 403);
        if (n > most)
            throw new RefusedError("EAGENTRPC_BUSY", `the call has made ${most} reports of a model's usage, which is as many as it may make`, 429);
        this.#lines.write(`{"jsonrpc":"2.0","method":"modelUsage","params":{"id":${JSON.stringify(of)},"usage":${JSON.stringify(usage)}}}\n`);
        await this.#lines.ready();
        return true;
    }
    /** Makes a nested call. */
    request(of, request, options) {
        const { signal } = options;
        return new Promise((resolve, reject) => {
            if (signal?.aborted)
                throw signal.reason;
            if (!this.#calls.has(of))
                throw ended();
            if (!this.#fits(request, 256))
                throw new RefusedError("EAGENTRPC_PAYLOAD_TOO_LARGE", `the request is longer than a message may be, ${this.#limits.maxMessageBytes} bytes`, 413);
            const id = ++this.#lastId;
            const aborted = () => {
                this.#nested.delete(id);
                this.#lines.write(`{"jsonrpc":"2.0","method":"cancel","params":{"id":${id},"reason":"caller"}}\n`);
                reject(signal?.reason);
            };
            signal?.addEventListener("abort", aborted, { once: true });
            const settled = () => signal?.removeEventListener("abort", aborted);
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
    #answered({ id = "", result, error }, inexact) {
        const nested = this.#nested.get(id);
        if (!nested)
            return;
        this.#nested.delete(id);
        if (error)
            return nested.reject(refusal(error));
        try {
            nested.resolve(settleResult(result, inexact, nested.options.bigint));
        }
        catch (e) {
            nested.reject(e);
        }
    }
    /** The HTTP API of the agent, for what is not in the protocol. */
    get url() {
        return this.#url;
    }
    get bigint() {
        return this.#skill.bigint;
    }
}
/** What one call of a worker asks its agent for. */
class PipeLink {
    bigint;
    fetch;
    #worker;
    #id;
    #usages = 0;
    constructor(worker, id, token) {
        this.#worker = worker;
        this.#id = id;
        this.fetch = httpFetch(() => ({ url: worker.url, headers: { "Agentd-Call": token } }));
        this.bigint = worker.bigint;
    }
    exchange = (request, options) => this.#worker.request(this.#id, request, options);
    progress(value) {
        return this.#worker.progress(this.#id, value);
    }
    modelUsage(usage) {
        return this.#worker.modelUsage(this.#id, ++this.#usages, usage);
    }
}
function encodeError(code, message, retryable) {
    return JSON.stringify({ code, message: message.toWellFormed(), ...(retryable ? { data: { retryable } } : {}) });
}
function ended() {
    return new RefusedError("EAGENTRPC_INVALID_REQUEST", "the call that this one would be part of has ended", 403);
}
/** The refusal of a nested call, as the HTTP API has it. */
function refusal({ code, message }) {
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
    #parts = [];
    #bytes = 0;
    #onLine;
    #most;
    constructor(onLine, most) {
        this.#onLine = onLine;
        this.#most = most;
    }
    push(chunk) {
        let start = 0;
        for (;;) {
            const end = chunk.indexOf(10, start);
            if (end < 0)
                break;
            if (this.#parts.length > 0) {
                this.#keep(chunk.subarray(start, end));
                const line = Buffer.concat(this.#parts).toString("utf8");
                this.#parts = [];
                this.#bytes = 0;
                this.#onLine(line);
            }
            else {
                this.#onLine(chunk.toString("utf8", start, end));
            }
            start = end + 1;
        }
        if (start < chunk.length)
            this.#keep(chunk.subarray(start));
    }
    /** Keeps a part of a line. */
    #keep(part) {
        this.#bytes += part.length;
        if (this.#bytes > this.#most())
            throw new Error(`agentd has written a line of more than ${this.#most()} bytes`);
        this.#parts.push(part);
    }
}
/** Writes lines to standard output: the first of a turn of the event loop at once, and all others of it together. */
class LineWriter {
    #output;
    #lines = [];
    #scheduled = false;
    #blocked = false;
    #drained = [];
    /** The characters that wait. */
    waiting = 0;
    constructor(output) {
        this.#output = output;
        output.on("drain", () => {
            this.#blocked = false;
            for (const wake of this.#drained.splice(0))
                wake();
            this.#write();
        });
        output.on("error", () => process.exit(1)); // agentd has gone
    }
    write(line) {
        this.#lines.push(line);
        this.waiting += line.length;
        if (this.#blocked || (this.#scheduled && this.waiting < batchBytes))
            return;
        this.#write();
        if (this.#scheduled)
            return;
        this.#scheduled = true;
        setImmediate(() => {
            this.#scheduled = false;
            if (!this.#blocked)
                this.#write();
        });
    }
    #write(written) {
        if (this.#lines.length === 0 && !written)
            return;
        const text = this.#lines.length === 1 ? (this.#lines[0] ?? "") : this.#lines.join("");
        this.#lines = [];
        this.waiting = 0;
        if (!this.#output.write(text, written))
            this.#blocked = true;
    }
    /** Resolves when the output takes more. */
    ready() {
        return this.#blocked ? new Promise((wake) => this.#drained.push(wake)) : Promise.resolve();
    }
    /** Writes what there is, and calls back when it is written. */
    flush(written) {
        this.#write(written);
    }
}

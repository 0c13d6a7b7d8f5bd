// The other end of a worker, as agentd is.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export const programs = fileURLToPath(new URL("./programs/", import.meta.url));

export const limits = { concurrency: 8, maxMessageBytes: 1 << 20, maxPayloadBytes: 1 << 20, maxProgressBytes: 64 << 10, maxRequests: 64, startTimeoutMs: 30000, graceMs: 30000, pingTimeoutMs: 30000 };

/** Starts a worker. Its messages are awaited with next, in the order in which they come. */
export function startWorker(program, env = {}) {
  const child = spawn(process.execPath, [programs + program], { env: { PATH: process.env.PATH, AGENTD_WORKER: "1", ...env }, stdio: ["pipe", "pipe", "pipe"] });
  const messages = [], waiting = [];
  let lastId = 0, log = "";
  createInterface({ input: child.stdout }).on("line", (line) => {
    const message = JSON.parse(line);
    const take = waiting.shift();
    if (take) take(message);
    else messages.push(message);
  });
  child.stderr.setEncoding("utf8").on("data", (text) => (log += text));
  const exited = new Promise((resolve) => child.on("close", (code, signal) => resolve(code ?? signal)));
  const worker = {
    child, exited,
    get log() {
      return log;
    },
    /** Sends a line as it is, or a message. */
    send: (message) => void child.stdin.write((typeof message === "string" ? message : JSON.stringify({ jsonrpc: "2.0", ...message })) + "\n"),
    next: () => (messages.length > 0 ? Promise.resolve(messages.shift()) : new Promise((resolve) => waiting.push(resolve))),
    /** Sends a request, and returns its id. */
    request(method, params) {
      worker.send({ id: ++lastId, method, params });
      return lastId;
    },
    invoke: (capability, payload, more = {}) => worker.request("invoke", { capability, payload, caller: "agent://caller", correlationId: "c-1", messageId: "m-1", traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", token: "t-1", hops: 1, ...more }),
    /** Makes a call, and returns the message that comes next. */
    async call(capability, payload, more) {
      worker.invoke(capability, payload, more);
      return worker.next();
    },
    async initialize(more = {}) {
      worker.request("initialize", { protocolVersions: [1], agent: "agent://callee", skill: "s", fleetRoot: "/", url: "http://127.0.0.1:9", capabilities: [], limits, ...more });
      return worker.next();
    },
    /** Ends the worker as agentd does, and returns its status. */
    async end() {
      worker.send({ method: "shutdown" });
      child.stdin.end();
      return exited;
    },
  };
  return worker;
}

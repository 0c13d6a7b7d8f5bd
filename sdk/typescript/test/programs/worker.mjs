import { spawnSync } from "node:child_process";

import { connect, currentCall, serve, SkillError } from "../../dist/index.js";

const agent = connect();
let release = () => {};

await serve(
  {
    echo: (payload) => payload,
    fails: () => {
      throw new SkillError("no such pull request", { retryable: true, cause: new Error("db password is hunter2") });
    },
    wordless: () => {
      throw Object.create(null);
    },
    prints: () => {
      console.log("by console.log");
      console.table([{ a: "by console.table" }]);
      process.stdout.write("by process.stdout\n");
      return null;
    },
    context: (_, call) => ({ ...call, same: currentCall() === call }),
    logs: (_, call) => call.log.warn("two\nlines", { n: 1, text: "a b", error: new Error("deep") }),
    environment: () => String(spawnSync(process.execPath, ["-p", "process.env.AGENTD_WORKER"]).stdout),
    value: (kind) => ({ surrogate: "\ud800", rounded: 2 ** 60, long: "x".repeat(1 << 20), deep: JSON.parse("[".repeat(600) + "]".repeat(600)), exact: 2n ** 64n })[kind],
    wait: (_, { signal }) =>
      new Promise((_, reject) => {
        const end = () => reject(signal.reason);
        if (signal.aborted) end();
        else signal.addEventListener("abort", end);
      }),
    // It goes on although it is cancelled, and says so.
    stubborn: (_, { signal }) => new Promise((resolve) => signal.addEventListener("abort", () => resolve(signal.reason.name))),
    progress: async (payload, call) => {
      const wanted = await call.progress(payload);
      let refused = "";
      await call.progress("x".repeat(1 << 16)).catch((e) => (refused = e.code));
      release = () => call.progress("late");
      return { wanted, refused };
    },
    use: async (given, call) => {
      release = () => call.modelUsage(given[0]);
      try {
        return await Promise.all(given.map((usage) => call.modelUsage(usage)));
      } catch (e) {
        return `${e.name}: ${e.message}`;
      }
    },
    "use-late": () => release().catch((e) => e.code),
    late: async () => ({ wanted: await release() }),
    flood: async (n, call) => {
      let most = 0;
      for (let i = 0; i < n; i++) {
        await call.progress("x".repeat(60_000));
        most = Math.max(most, process.stdout.writableLength);
      }
      return most;
    },
    nested: async ({ by, options }, call) => {
      const caller = by === "call" ? call : agent;
      await null; // the client still knows which call it is part of
      return caller.request("peer", "find", { by }, options);
    },
    stream: async (_, call) => {
      const stream = call.stream("peer", "find", null, { bigint: true });
      const events = [];
      for await (const event of stream) events.push(event);
      return { events, result: await stream.result };
    },
    abandons: async (_, call) => {
      void call.request("peer", "find").catch((e) => console.error("abandoned: " + e.message));
      release = () => call.request("peer", "late").catch((e) => e.name + " " + e.httpStatus);
      return 1;
    },
    cancels: async (_, call) => {
      const abort = new AbortController();
      const asked = call.request("peer", "find", 1, { signal: abort.signal });
      setImmediate(() => abort.abort(new Error("enough")));
      return asked.catch((e) => e.message);
    },
    refused: (_, call) => call.request("peer", "find", "x".repeat(1 << 20)).catch((e) => `${e.name} ${e.code}`),
    raises: (_, call) => call.request("peer", "find").catch((e) => `${e.name} ${e.code} ${e.httpStatus}`),
  },
  { concurrency: 8, bigint: process.env.BIGINT === "1" },
);

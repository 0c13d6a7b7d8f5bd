import { connect, serve, SkillError, unwrap } from "../../dist/index.js";

await serve({
  echo: (payload, call) => (console.log("printed"), { payload, caller: call.caller, hops: call.hops, deadlineMs: call.deadlineMs ?? null }),
  fails: ({ retryable }) => {
    throw new SkillError("no such pull request", retryable);
  },
  bug: () => {
    throw new Error("the password is hunter2");
  },
  wait: (_, { signal }) =>
    new Promise((_, reject) => {
      const kept = setInterval(() => {}, 1000); // something that runs
      signal.addEventListener("abort", () => (clearInterval(kept), reject(signal.reason)));
      console.error("waiting");
    }),
  asks: async (_, call) => {
    const wanted = await call.progress({ done: 1 });
    const stream = call.stream("peer", "find", 1);
    const events = [];
    for await (const { value } of stream) events.push(value);
    return { wanted, events, result: unwrap(await stream.result), same: unwrap(await connect().request("peer", "find", 2)), later: unwrap(await connect().awaitResult("c/1")) };
  },
});

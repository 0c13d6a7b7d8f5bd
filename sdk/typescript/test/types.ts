// What programs may rely on at compile time. It is compiled, and never runs.
import {
  type Call, type CallFailure, type Caller, type Client, connect, type Result, serve, SkillError, unwrap, type Violation, ViolationError,
} from "@agentd/sdk";
import { SkillTest } from "@agentd/sdk/testing";

interface Request {
  n: number;
}

function same<A, B>(..._: (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? [] : ["differs"]): void {}

export async function outside(): Promise<void> {
  const client: Client = connect();
  const result = await client.request<string>("peer", "find", { n: 1n }, { timeoutMs: undefined, mode: "async" });
  same<typeof result, Result<string>>();
  switch (result.status) {
    case "ok":
      same<typeof result.response, string>();
      break;
    case "schema-violation":
      same<typeof result.violations, Violation[]>();
      break;
    default:
      same<typeof result.error, CallFailure>();
  }
  same<ReturnType<typeof unwrap<string>>, string>();
  for await (const event of client.stream<string, number>("peer", "find")) same<typeof event.value, number>();
  // @ts-expect-error: there is no such mode
  void client.request("peer", "find", null, { mode: "later" });
  const callers: Caller[] = [client];
  void callers;
  try {
    unwrap(result);
  } catch (e) {
    if (e instanceof ViolationError) same<typeof e.result.schemaSide, "request" | "response">();
  }
}

export const handlers = {
  find: async (payload: Request, call: Call) => {
    const inner: Result<number> = await call.request<number>("peer", "count", payload, { signal: call.signal });
    if (inner.status !== "ok") throw new SkillError("no", { retryable: true, cause: inner });
    call.log.info("found", { n: inner.response });
    return inner.response;
  },
  plain: () => null,
};

export const end: Promise<never> = serve(handlers, { concurrency: 4, bigint: true, takesObject: ["find"] });

export async function inside(): Promise<Result<number>> {
  const test = new SkillTest(handlers, "capabilities.yaml", { peers: [{ capabilities: "peer.yaml", answers: { count: ({ n }: Request) => n, other: 7 } }] });
  return test.call<number>("find", { n: 1 }, { caller: "agent://x" });
}

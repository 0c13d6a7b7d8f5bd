package codegen_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// kitOutcome is what both programs below print for each way to their agent.
const kitOutcome = `ok comment 日本 <&>
large 100000
tenant acme
violation request /severity
timeout
no mode EAGENTRPC_INVALID_REQUEST
unreachable
stream 0 comment
cancelled
`

const tsKitProgram = `
import { existsSync } from "node:fs";
import { ConnectionFailed, connect, ViolationError } from "@agentd/sdk";
import { Client, unwrap, type ReviewPrRequest } from "./pr-reviewer.js";

const [socket, url, missing] = process.argv.slice(2) as [string, string, string];
const request = (prUrl: string): ReviewPrRequest => ({ prUrl, severity: "low" });
let count = 0;

async function calls(client: Client, nobody: Client) {
  const ok = await client.reviewPr(request("日本 <&>"));
  if (ok.status === "ok") console.log("ok", ok.response.verdict, ok.response.summary);
  console.log("large", unwrap(await client.reviewPr(request("large"))).summary.length);
  console.log("tenant", unwrap(await client.reviewPr(request("tenant"), { tenantId: "acme" })).summary);
  const bad = { prUrl: "x", severity: "urgent" } as unknown as ReviewPrRequest;
  try {
    unwrap(await client.reviewPr(bad));
  } catch (e) {
    if (e instanceof ViolationError) console.log("violation", e.result.schemaSide, e.result.violations[0]?.path);
  }
  const late = await client.reviewPr(request("late"), { timeoutMs: 50 });
  console.log(late.status);
  const mode = await client.reviewPr(request("x"), { mode: "never" as "sync" });
  if (mode.status === "error") console.log("no mode", mode.error.code);
  try {
    await nobody.reviewPr(request("x"));
  } catch (e) {
    if (e instanceof ConnectionFailed) console.log("unreachable");
  }
  let events = 0;
  const stream = client.stream("review-pr", request("x"));
  for await (const _ of stream) events++;
  console.log("stream", events, unwrap(await stream.result).verdict);
  const abort = new AbortController();
  const started = missing + ++count;
  const hanging = client.reviewPr(request("hang:" + started), { signal: abort.signal });
  while (!existsSync(started)) await new Promise<void>((done) => setTimeout(done, 5));
  abort.abort();
  await hanging.catch(() => console.log("cancelled"));
}

await calls(new Client(socket), new Client(missing));
await calls(new Client(url, { token: "t" }), new Client("http://127.0.0.1:1"));
await calls(new Client(connect(socket)), new Client(connect(missing)));
await calls(new Client(), new Client("http://127.0.0.1:1"));
const other = await new Client().reviewPr(request("tenant"), { tenantId: "globex" });
if (other.status === "error") console.log(other.error.code);
`

func TestTypeScriptClientOnItsKit(t *testing.T) {
	t.Parallel()
	compiler := nodeTool(t, "typescript", "bin", "tsc")
	dir := t.TempDir()
	linkKit(t, dir)
	e := serve(t)
	generated(t, "ts", onKit, dir)
	write(t, filepath.Join(dir, "program.ts"), []byte(tsKitProgram))
	write(t, filepath.Join(dir, "package.json"), []byte(`{"type":"module"}`))
	types := filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(compiler[1]))), "@types")
	run(t, dir, append(compiler, "--strict", "--target", "es2022", "--module", "nodenext", "--skipLibCheck",
		"--typeRoots", types, "--types", "node", "--outDir", "out", "program.ts")...)
	got := runWith(t, e.environment(), dir, compiler[0], filepath.Join("out", "program.js"), e.socket, e.url, filepath.Join(dir, "nobody"))
	if want := strings.Repeat(kitOutcome, 4) + otherTenant; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	e.awaitCancellations(t, 4)
}

const pyKitProgram = `
import asyncio
import os
import sys

import agentd
from pr_reviewer import AsyncClient, Client, ReviewPrRequest, unwrap

socket, url, missing = sys.argv[1:]


def request(url: str) -> ReviewPrRequest:
    return {"prUrl": url, "severity": "low"}


bad = request("x")
bad["severity"] = "urgent"  # type: ignore


def blocking(client: Client, nobody: Client) -> None:
    ok = client.review_pr(request("日本 <&>"))
    if ok["status"] == "ok":
        print("ok", ok["response"]["verdict"], ok["response"]["summary"])
    print("large", len(unwrap(client.review_pr(request("large")))["summary"]))
    print("tenant", unwrap(client.review_pr(request("tenant"), tenant_id="acme"))["summary"])
    try:
        unwrap(client.review_pr(bad))
    except agentd.ViolationError as e:
        print("violation", e.result["schemaSide"], e.violations[0]["path"])
    print(client.review_pr(request("late"), timeout_ms=50)["status"])
    mode = client.review_pr(request("x"), mode="never")  # type: ignore
    if mode["status"] == "error":
        print("no mode", mode["error"]["code"])
    try:
        nobody.review_pr(request("x"))
    except agentd.ConnectionFailed:
        print("unreachable")
    stream = client.review_pr_stream(request("x"))
    print("stream", len(list(stream)), unwrap(stream.result)["verdict"])
    print("cancelled")


async def concurrent(client: AsyncClient, nobody: AsyncClient, started: str) -> None:
    ok, large, tenant, violation, late = await asyncio.gather(
        client.review_pr(request("日本 <&>")),
        client.review_pr(request("large"), idempotency_key="k"),
        client.review_pr(request("tenant"), tenant_id="acme"),
        client.review_pr(bad),
        client.review_pr(request("late"), timeout_ms=50),
    )
    if ok["status"] == "ok":
        print("ok", ok["response"]["verdict"], ok["response"]["summary"])
    print("large", len(unwrap(large)["summary"]))
    print("tenant", unwrap(tenant)["summary"])
    if violation["status"] == "schema-violation":
        print("violation", violation["schemaSide"], violation["violations"][0]["path"])
    print(late["status"])
    mode = await client.review_pr(request("x"), mode="never")  # type: ignore
    if mode["status"] == "error":
        print("no mode", mode["error"]["code"])
    try:
        await nobody.review_pr(request("x"))
    except agentd.ConnectionFailed:
        print("unreachable")
    stream = client.review_pr_stream(request("x"))
    events = [event async for event in stream]
    print("stream", len(events), unwrap(await stream.result())["verdict"])
    hanging = asyncio.create_task(client.review_pr(request("hang:" + started)))
    while not os.path.exists(started):
        await asyncio.sleep(0.005)
    hanging.cancel()
    try:
        await hanging
    except asyncio.CancelledError:
        print("cancelled")


blocking(Client(socket), Client(missing))
blocking(Client(url, token="t"), Client("http://127.0.0.1:1"))
blocking(Client(), Client(missing))
asyncio.run(concurrent(AsyncClient(agentd.aconnect(socket)), AsyncClient(missing), missing + "1"))
asyncio.run(concurrent(AsyncClient(), AsyncClient("http://127.0.0.1:1"), missing + "2"))
other = Client().review_pr(request("tenant"), tenant_id="globex")
if other["status"] == "error":
    print(other["error"]["code"])
`

func TestPythonClientOnItsKit(t *testing.T) {
	t.Parallel()
	python, path, dir := python3(t), pythonPath(t), t.TempDir()
	e := serve(t)
	generated(t, "python", onKit, dir)
	write(t, filepath.Join(dir, "program.py"), []byte(pyKitProgram))
	got := runWith(t, append(e.environment(), "PYTHONPATH="+path), dir, python, "-B", "-X", "utf8", "program.py", e.socket, e.url, filepath.Join(dir, "nobody"))
	if want := strings.Repeat(kitOutcome, 5) + otherTenant; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	e.awaitCancellations(t, 2)
}

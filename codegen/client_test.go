package codegen_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/codegen/testdata/golden/reviewer/prreviewer"
	"github.com/agentd/agentd/codegen/typed"
	"github.com/agentd/agentd/codegen/typedrpc"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/daemon/skillapi"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/memory"
)

// reviewer answers with what it was asked, or not at all: a hanging review makes
// the file that it is asked for, and says when it was cancelled.
type reviewer struct{ cancelled chan struct{} }

func (r reviewer) ReviewPr(ctx context.Context, in prreviewer.ReviewPrRequest) (prreviewer.ReviewPrResponse, error) {
	if file, ok := strings.CutPrefix(in.PRURL, "hang:"); ok {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			return prreviewer.ReviewPrResponse{}, err
		}
		<-ctx.Done()
		r.cancelled <- struct{}{}
		return prreviewer.ReviewPrResponse{}, ctx.Err()
	}
	switch in.PRURL {
	case "late":
		<-ctx.Done()
		return prreviewer.ReviewPrResponse{}, ctx.Err()
	case "tenant":
		in.PRURL = rpc.InvocationFrom(ctx).TenantID
	case "large": // more than one packet, and chunks
		in.PRURL = strings.Repeat("日本", 50_000)
	}
	return prreviewer.ReviewPrResponse{Verdict: prreviewer.ReviewPrResponseVerdictComment, Summary: in.PRURL}, nil
}

// discard keeps no records.
type discard struct{}

func (discard) RecordSchemaViolation(context.Context, rpc.SchemaViolation) error { return nil }

// An endpoint is an agent that may call pr-reviewer: its control API on a socket and, by
// way of a gate, on TCP, and its API for skills.
type endpoint struct {
	socket, url string
	skill       string        // AGENTD_URL
	call        string        // AGENTD_CALL, of a call for the tenant acme
	cancelled   chan struct{} // one for each skill that was cancelled
}

// environment is that of a skill's process, which never uses a proxy to reach its agent.
func (e endpoint) environment() []string {
	const proxy = "http://127.0.0.1:1"
	return []string{
		"AGENTD_URL=" + e.skill, "AGENTD_CALL=" + e.call, "AGENTD_SOCKET=",
		"HTTP_PROXY=" + proxy, "http_proxy=" + proxy, "ALL_PROXY=" + proxy, "NO_PROXY=", "no_proxy=", "NODE_USE_ENV_PROXY=1",
	}
}

func serve(t *testing.T) endpoint {
	t.Helper()
	doc, err := capability.Load(goldens()["reviewer"])
	if err != nil {
		t.Fatal(err)
	}
	e := endpoint{cancelled: make(chan struct{}, 10)}
	bus := memory.NewBus(memory.Options{})
	near, far := bus.Connect(), bus.Connect()
	var mux typed.Mux
	prreviewer.RegisterServer(&mux, reviewer{e.cancelled})
	inbox, err := callee.New(callee.Config{Self: doc.Agent, Contract: doc, Handlers: typedrpc.Handlers(&mux), Records: rpc.Records{Auditor: discard{}}})
	if err != nil {
		t.Fatal(err)
	}
	topic := "agents." + doc.Agent.ID() + ".requests"
	if err := inbox.Listen(far, topic); err != nil {
		t.Fatal(err)
	}
	client, err := caller.New(caller.Config{
		Self: "agent://concierge", Records: rpc.Records{Auditor: discard{}}, Transports: []transport.Transport{near},
		Peers: rpc.Peers{doc.Agent: {Address: doc.Agent, Transport: "memory", Topic: topic, Contract: doc}},
	})
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "gen") // sockets need short paths
	if err != nil {
		t.Fatal(err)
	}
	handler := control.NewHandler(control.Agent{Caller: client, Ready: func() error { return nil }})
	server, err := control.Listen(t.Context(), filepath.Join(dir, "s"), handler, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(requireHeader(handler))
	skills, err := skillapi.Listen(t.Context(), skillapi.Config{Caller: client, MaxPayloadBytes: func() int { return 1 << 20 }, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	running := &rpc.Invocation{TenantID: "acme", CorrelationID: "c-1", Capability: "x"}
	token, release := skills.Register(rpc.WithInvocation(context.Background(), running))
	e.socket, e.url, e.skill, e.call = server.Path(), web.URL, skills.URL(), token
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		web.Close()
		release()
		err := errors.Join(server.Shutdown(ctx), skills.Shutdown(ctx), inbox.Shutdown(ctx), client.Close(), near.Close(), far.Close(), os.RemoveAll(dir))
		if err != nil {
			t.Error(err)
		}
	})
	return e
}

// requireHeader stands for the gate that an endpoint on the network has.
func requireHeader(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer t" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// generated writes the reviewer's client in one language and form to dir.
func generated(t *testing.T, name, form, dir string) {
	t.Helper()
	l := lang(t, name)
	if form == standalone {
		l = l.Standalone()
	}
	if err := l.Generate(api(t, goldens()["reviewer"])).Write(dir, "pr-reviewer"); err != nil {
		t.Fatal(err)
	}
}

// otherTenant is what a skill gets that names another tenant than its call's.
const otherTenant = "EAGENTRPC_TENANT_MISMATCH\n"

// outcome is what both programs below print for each way to their agent.
const outcome = `ok comment 日本 <&>
large 100000
tenant acme
violation request /severity
timeout
refused EAGENTRPC_INVALID_REQUEST
unreachable
cancelled
`

const tsProgram = `
import { requestAgent, AgentdError, type Endpoint, type ReviewPrRequest } from "./pr-reviewer.js";

declare const process: { argv: string[]; env: Record<string, string | undefined> };
declare const console: { log(...parts: unknown[]): void };
declare class AbortController { signal: object; abort(): void }
declare function setTimeout(f: () => void, ms: number): void;
const fs: string = "node:fs";
const { existsSync } = (await import(fs)) as { existsSync(path: string): boolean };

const [socket, url, missing] = process.argv.slice(2) as [string, string, string];
const request = (prUrl: string): ReviewPrRequest => ({ prUrl, severity: "low" });

// In a skill there is no endpoint to name.
async function calls(endpoint: Endpoint | undefined, refused: Endpoint, nobody: Endpoint) {
  const ok = await requestAgent("review-pr", request("日本 <&>"), { endpoint });
  if (ok.status === "ok") console.log("ok", ok.response.verdict, ok.response.summary);
  const large = await requestAgent("review-pr", request("large"), { endpoint });
  if (large.status === "ok") console.log("large", large.response.summary.length);
  const tenant = await requestAgent("review-pr", request("tenant"), { endpoint, tenantId: "acme" });
  if (tenant.status === "ok") console.log("tenant", tenant.response.summary);
  const bad = { prUrl: "x", severity: "urgent" } as unknown as ReviewPrRequest;
  const violation = await requestAgent("review-pr", bad, { endpoint });
  if (violation.status === "schema-violation") console.log("violation", violation.schemaSide, violation.violations[0]?.path);
  const late = await requestAgent("review-pr", request("late"), { endpoint, timeoutMs: 50 });
  if (late.status === "timeout") console.log(late.status);
  try {
    await requestAgent("review-pr", request("x"), { endpoint: refused });
  } catch (e) {
    console.log("refused", e instanceof AgentdError && e.code);
  }
  try {
    await requestAgent("review-pr", request("x"), { endpoint: nobody });
  } catch {
    console.log("unreachable");
  }
  const abort = new AbortController();
  const started = missing + (calls.count += 1);
  const hanging = requestAgent("review-pr", request("hang:" + started), { endpoint, signal: abort.signal });
  while (!existsSync(started)) await new Promise<void>((done) => setTimeout(done, 5));
  abort.abort();
  try {
    await hanging;
  } catch {
    console.log("cancelled");
  }
}

calls.count = 0;
const call = "never was";
await calls({ socket }, { socket, call }, { socket: missing });
const headers = { Authorization: "Bearer t" };
await calls({ url, headers }, { url, headers, call }, { url: "http://127.0.0.1:1", headers });
const own = process.env["AGENTD_URL"]!;
await calls(undefined, { url: own, call }, { url: "http://127.0.0.1:1" });
const named = { url: own, call: process.env["AGENTD_CALL"]! };
await calls(named, { url: own, call }, { url: "http://127.0.0.1:1" });
try {
  await requestAgent("review-pr", request("tenant"), { tenantId: "globex" }).then((r) => console.log(r.status === "error" && r.error.code));
} catch (e) {
  console.log(e);
}
`

func TestTypeScriptClient(t *testing.T) {
	t.Parallel()
	compiler := nodeTool(t, "typescript", "bin", "tsc")
	e, dir := serve(t), t.TempDir()
	generated(t, "ts", standalone, dir)
	write(t, filepath.Join(dir, "program.ts"), []byte(tsProgram))
	write(t, filepath.Join(dir, "package.json"), []byte(`{"type":"module"}`))
	run(t, dir, append(compiler, "--strict", "--target", "es2022", "--module", "es2022", "--moduleResolution", "bundler",
		"--lib", "es2022", "--types", "", "--outDir", "out", "program.ts")...)
	write(t, filepath.Join(dir, "out", "package.json"), []byte(`{"type":"module"}`))
	got := runWith(t, e.environment(), dir, compiler[0], filepath.Join("out", "program.js"), e.socket, e.url, filepath.Join(dir, "nobody"))
	if want := strings.Repeat(outcome, 4) + otherTenant; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	e.awaitCancellations(t, 4)
}

// awaitCancellations waits until n skills have ended because their caller left.
func (e endpoint) awaitCancellations(t *testing.T, n int) {
	t.Helper()
	for range n {
		select {
		case <-e.cancelled:
		case <-time.After(20 * time.Second):
			t.Fatal("a skill runs on after its caller has left")
		}
	}
}

const pyProgram = `
import asyncio
import os
import sys

from pr_reviewer import AgentdError, AsyncClient, Client, ReviewPrRequest

socket, missing = sys.argv[1:]
skill = os.environ["AGENTD_URL"]


def request(url: str) -> ReviewPrRequest:
    return {"prUrl": url, "severity": "low"}


bad = request("x")
bad["severity"] = "urgent"  # type: ignore


def blocking(client: Client, refused: Client, nobody: Client) -> None:
    ok = client.review_pr(request("日本 <&>"))
    if ok["status"] == "ok":
        print("ok", ok["response"]["verdict"], ok["response"]["summary"])
    large = client.review_pr(request("large"))
    if large["status"] == "ok":
        print("large", len(large["response"]["summary"]))
    tenant = client.review_pr(request("tenant"), tenant_id="acme")
    if tenant["status"] == "ok":
        print("tenant", tenant["response"]["summary"])
    violation = client.review_pr(bad)
    if violation["status"] == "schema-violation":
        print("violation", violation["schemaSide"], violation["violations"][0]["path"])
    late = client.review_pr(request("late"), timeout_ms=50)
    if late["status"] == "timeout":
        print(late["status"])
    try:
        refused.review_pr(request("x"))
    except AgentdError as e:
        print("refused", e.code)
    try:
        nobody.review_pr(request("x"))
    except OSError:
        print("unreachable")


async def concurrent(client: AsyncClient, refused: AsyncClient, nobody: AsyncClient, started: str) -> None:
    ok, large, tenant, violation, late = await asyncio.gather(
        client.review_pr(request("日本 <&>")),
        client.review_pr(request("large"), idempotency_key="k"),
        client.review_pr(request("tenant"), tenant_id="acme"),
        client.review_pr(bad),
        client.review_pr(request("late"), timeout_ms=50),
    )
    if ok["status"] == "ok":
        print("ok", ok["response"]["verdict"], ok["response"]["summary"])
    if large["status"] == "ok":
        print("large", len(large["response"]["summary"]))
    if tenant["status"] == "ok":
        print("tenant", tenant["response"]["summary"])
    if violation["status"] == "schema-violation":
        print("violation", violation["schemaSide"], violation["violations"][0]["path"])
    if late["status"] == "timeout":
        print(late["status"])
    try:
        await refused.review_pr(request("x"))
    except AgentdError as e:
        print("refused", e.code)
    try:
        await nobody.review_pr(request("x"))
    except OSError:
        print("unreachable")
    hanging = asyncio.create_task(client.review_pr(request("hang:" + started)))
    while not os.path.exists(started):
        await asyncio.sleep(0.005)
    hanging.cancel()
    try:
        await hanging
    except asyncio.CancelledError:
        print("cancelled")


blocking(Client(socket), Client(socket, call="never was"), Client(missing))
print("cancelled")
blocking(Client(), Client(url=skill, call="never was"), Client(url="http://127.0.0.1:1"))
print("cancelled")
asyncio.run(concurrent(AsyncClient(socket), AsyncClient(socket, call="never was"), AsyncClient(missing), missing + "1"))
asyncio.run(concurrent(AsyncClient(), AsyncClient(url=skill, call="never was"), AsyncClient(url="http://127.0.0.1:1"), missing + "2"))
other = Client().review_pr(request("tenant"), tenant_id="globex")
if other["status"] == "error":
    print(other["error"]["code"])
try:
    Client().review_pr(request("x" * 8_000_000))
except AgentdError as e:
    print(e.code)
`

func TestPythonClient(t *testing.T) {
	t.Parallel()
	python := python3(t)
	e, dir := serve(t), t.TempDir()
	generated(t, "python", standalone, dir)
	write(t, filepath.Join(dir, "program.py"), []byte(pyProgram))
	got := runWith(t, e.environment(), dir, python, "-B", "-X", "utf8", "program.py", e.socket, filepath.Join(dir, "nobody"))
	if want := strings.Repeat(outcome, 4) + otherTenant + "EAGENTRPC_PAYLOAD_TOO_LARGE\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	e.awaitCancellations(t, 2)
}

// Without what agentd gives to its skills, a client says what is missing. A control socket
// in the environment serves programs that are no skill.
func TestClientsFindTheirAgent(t *testing.T) {
	t.Parallel()
	python := python3(t)
	e, dir := serve(t), t.TempDir()
	generated(t, "python", standalone, dir)
	const program = `import pr_reviewer; print(pr_reviewer.Client().review_pr({"prUrl": "u", "severity": "low"})["status"])`
	if got := runWith(t, []string{"AGENTD_SOCKET=" + e.socket, "AGENTD_URL=", "AGENTD_CALL="}, dir, python, "-B", "-c", program); strings.TrimSpace(got) != "ok" {
		t.Errorf("status = %q", got)
	}
	const without = `
import pr_reviewer
try:
    pr_reviewer.Client()
except pr_reviewer.AgentdError as e:
    print(e)
`
	got := runWith(t, []string{"AGENTD_SOCKET=", "AGENTD_URL="}, dir, python, "-B", "-c", without)
	if !strings.HasPrefix(got, "no-endpoint: AGENTD_URL is not set; agentd sets it for skills") {
		t.Errorf("without an agent: %q", got)
	}
}

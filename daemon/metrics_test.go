package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/internal/sqlitetest"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/memory"
)

// watched has each agent listen at a port of its own.
func watched(cfg daemon.Config) daemon.Config {
	cfg.Listen = "127.0.0.1:0"
	return cfg
}

// get asks an agent for a path.
func get(t testing.TB, d *daemon.Daemon, path string) (int, string) {
	t.Helper()
	return fetch(t, d.Status().Monitoring+path)
}

// fetch gets a URL, and returns the status and the body.
func fetch(t testing.TB, url string) (int, string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// metric is the value of a series of an agent: name, and the other labels in the order of their
// names; -1 where there is none.
func metric(t testing.TB, d *daemon.Daemon, name, labels string) float64 {
	t.Helper()
	_, text := get(t, d, "/metrics")
	series := name + `{agent="` + d.Member().ID + `"`
	if labels != "" {
		series += "," + labels
	}
	for line := range strings.SplitSeq(text, "\n") {
		if rest, ok := strings.CutPrefix(line, series+"} "); ok {
			v, err := strconv.ParseFloat(rest, 64)
			if err != nil {
				t.Fatal(line)
			}
			return v
		}
	}
	return -1
}

// reaches waits until a metric has a value.
func reaches(t *testing.T, d *daemon.Daemon, name, labels string, enough func(float64) bool) {
	t.Helper()
	eventually.Holds(t, name+"{"+labels+"} moves", func() bool { return enough(metric(t, d, name, labels)) })
}

func is(want float64) func(float64) bool     { return func(v float64) bool { return v == want } }
func above(least float64) func(float64) bool { return func(v float64) bool { return v > least } }

// says checks what a probe says.
func says(t *testing.T, d *daemon.Daemon, path string, status int, text string) {
	t.Helper()
	if got, body := get(t, d, path); got != status || !strings.Contains(body, text) {
		t.Errorf("%s: %d %q, want %d with %q", path, got, body, status, text)
	}
}

// While the audit log takes no records, and when it takes them again, metric and readiness say so.
func TestSignalsOfARefusingAuditLog(t *testing.T) {
	t.Parallel()
	cfg := watched(withGo(withBus(load(t, files()))))
	callee, caller := startAgent(t, cfg, "callee"), startAgent(t, cfg, "caller")
	says(t, callee, "/readyz", 200, "ok")
	unlock := sqlitetest.Lock(t, callee.AuditDB())
	eventually.Holds(t, "the audit log refuses", func() bool {
		_ = callGo(t, caller, `{"n":1}`) // the record of each waits for the disk
		return metric(t, callee, "agentd_audit_refusing", "") == 1
	})
	if metric(t, callee, "agentd_condition", `name="audit-log"`) != 1 || metric(t, callee, "agentd_audit_refused_total", "") < 1 || metric(t, callee, "agentd_ready", "") != 0 {
		t.Error("the metrics do not move")
	}
	says(t, callee, "/readyz", 503, "callee: audit-log: calls are refused")
	says(t, callee, "/livez", 200, "ok") // a restart would not help
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	reaches(t, callee, "agentd_audit_refusing", "", is(0))
	reaches(t, callee, "agentd_ready", "", is(1))
	says(t, callee, "/readyz", 200, "ok")
	says(t, callee, "/startupz", 200, "ok")
}

// withBus lets one agent start alone.
func withBus(cfg daemon.Config) daemon.Config {
	cfg.Bus = memory.NewBus(memory.Options{})
	return cfg
}

// A broker that is away is neither ready nor dead.
func TestSignalsOfABrokerThatIsAway(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "")
	caller := startAgent(t, watched(load(t, natsFiles(server.URL()))), "caller")
	if v := metric(t, caller, "agentd_broker_round_trip_seconds", `broker="nats"`); v <= 0 || metric(t, caller, "agentd_broker_connected", `broker="nats"`) != 1 {
		t.Errorf("the round trip takes %v s", v)
	}
	server.Stop()
	reaches(t, caller, "agentd_broker_connected", `broker="nats"`, is(0))
	if v := metric(t, caller, "agentd_broker_round_trip_seconds", `broker="nats"`); v != -1 {
		t.Errorf("the round trip takes %v s", v)
	}
	says(t, caller, "/readyz", 503, "caller: nats: ")
	says(t, caller, "/livez", 200, "ok")
	server.Start()
	reaches(t, caller, "agentd_broker_connected", `broker="nats"`, is(1))
	reaches(t, caller, "agentd_broker_reconnects_total", `broker="nats"`, above(0))
	says(t, caller, "/readyz", 200, "ok")
}

// Contracts that have drifted apart, and a circuit that has opened.
func TestSignalsOfDriftAndOpenCircuits(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "")
	all := keys(pinnedFiles(server.URL()), "    timeoutMs: 100\n")
	all["pinned.yaml"] = all["callee/capabilities.yaml"]
	all["caller/agent.yaml"] = "name: caller\nbreaker: {threshold: 0.5, minCalls: 1, coolDownMs: 60000}\n"
	cfg := watched(load(t, all))
	cfg.Handlers = handle(func(ctx context.Context, _ *rpc.Invocation) (json.RawMessage, error) {
		<-ctx.Done() // after 100 ms
		return nil, ctx.Err()
	})
	callee, caller := startAgent(t, cfg, "callee"), startAgent(t, cfg, "caller")
	const pair = `capability="go",peer="agent://callee"`
	for range 2 {
		if err := callGo(t, caller, `{"n":1}`); err == nil {
			t.Fatal("the call has succeeded")
		}
	}
	if metric(t, caller, "agentd_breaker_state", pair+`,state="open"`) != 1 || metric(t, caller, "agentd_condition", `name="circuit"`) != 1 || metric(t, caller, "agentd_breaker_opened_total", pair) != 1 {
		t.Error("the circuit has opened, and no metric has moved")
	}
	says(t, caller, "/readyz?verbose", 200, "caller: warning: circuit: calls to go of agent://callee are refused")
	reaches(t, callee, "agentd_calls_total", `capability="go",code="EAGENTRPC_DEADLINE_EXCEEDED",peer="agent://caller",role="callee",status="timeout"`, above(0))
	for _, d := range []*daemon.Daemon{caller, callee} {
		side, peer := "client", "agent://callee"
		if d == callee {
			side, peer = "server", "agent://caller"
		}
		labels := `peer="` + peer + `",rpc_method="go",rpc_response_status_code="timeout",rpc_system_name="agentd",le="`
		if fast, all := metric(t, d, "rpc_"+side+"_call_duration_seconds_bucket", labels+`0.025"`), metric(t, d, "rpc_"+side+"_call_duration_seconds_bucket", labels+`+Inf"`); fast != 0 || all < 1 {
			t.Errorf("%s: %v of %v calls took less than 25 ms", side, fast, all)
		}
	}
	if metric(t, caller, "agentd_drift_verdicts", `peer="agent://callee",verdict="proven"`) != 1 {
		t.Error("the contract is not proven")
	}
	rewrite(t, cfg, "callee/capabilities.yaml", strings.Replace(all["callee/capabilities.yaml"], goSchema, goBroken, 1))
	if err := callee.Reload(); err != nil {
		t.Fatal(err)
	}
	if _, err := control.NewClient(caller.Socket()).ResetBreakers(t.Context(), "", ""); err != nil {
		t.Fatal(err)
	}
	caller.VerifyPeers(t.Context(), nil)
	_ = callGo(t, caller, `{"n":1}`)
	reaches(t, caller, "agentd_drift_verdicts", `peer="agent://callee",verdict="refused"`, is(1))
	says(t, caller, "/readyz?verbose", 200, "warning: ")
	if _, text := get(t, caller, "/readyz?verbose"); !strings.Contains(text, "drift") {
		t.Errorf("nothing about drift in %s", text)
	}
}

// Requests that nobody serves, and a queue that is read.
func TestSignalsOfDeadLetters(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "jetstream {}")
	cfg := watched(load(t, durableFiles(server.URL())))
	cfg.Handlers = handle(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
		return nil, &rpc.SkillError{Message: "not yet", Retryable: true}
	})
	callee, caller := startAgent(t, cfg, "callee"), startAgent(t, cfg, "caller")
	if metric(t, callee, "agentd_dead_letters", "") != 0 || metric(t, callee, "agentd_queue_waiting", "") != 0 {
		t.Error("the queue is not empty")
	}
	_, err := caller.Client().RequestAgent(t.Context(), rpc.Request{To: "agent://callee", Capability: "go", Payload: json.RawMessage(`{"n":1}`), Mode: rpc.ModeAsync, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	reaches(t, callee, "agentd_dead_letters", "", is(1))
	says(t, callee, "/readyz?verbose", 200, "warning: 1 dead letter: a request that was")
}

// A witness that does not sign.
func TestSignalsOfAWitnessThatLags(t *testing.T) {
	t.Parallel()
	cfg := watched(withBus(witnessed(t)))
	caller := startAgent(t, cfg, "caller") // its witness does not run
	reaches(t, caller, "agentd_audit_witness_lag_seconds", `witness="agent://callee"`, above(0))
	says(t, caller, "/readyz?verbose", 200, "the witness agent://callee has not co-signed the audit log since ")
	startAgent(t, cfg, "callee")
	if _, err := caller.Client().RequestAgent(t.Context(), rpc.Request{To: "agent://callee", Capability: "go", Payload: json.RawMessage(`{"n":1}`)}); err != nil {
		t.Error(err)
	}
	if metric(t, caller, "agentd_audit_append_duration_seconds_count", "") < 1 || metric(t, caller, "agentd_audit_records_total", "") < 1 {
		t.Error("the audit log has no metrics")
	}
}

// A call that waits for a person.
func TestSignalsOfWaitingApprovals(t *testing.T) {
	t.Parallel()
	all := files()
	all["caller/agent.yaml"] += "permissions: {ask: ['RequestAgent:**']}\n"
	cfg := watched(withBus(withGo(load(t, all))))
	startAgent(t, cfg, "callee")
	caller := startAgent(t, cfg, "caller")
	ctx, cancel := context.WithCancel(t.Context())
	var calling sync.WaitGroup
	calling.Go(func() {
		_, _ = caller.Client().RequestAgent(ctx, rpc.Request{To: "agent://callee", Capability: "go", Payload: json.RawMessage(`{"n":1}`)})
	})
	reaches(t, caller, "agentd_approvals_waiting", `role="caller"`, is(1))
	reaches(t, caller, "agentd_approvals_oldest_seconds", `role="caller"`, above(0))
	says(t, caller, "/readyz?verbose", 200, "warning: 1 call waits for a person")
	cancel()
	calling.Wait()
	if metric(t, caller, "agentd_approvals_waiting", `role="caller"`) != 0 || metric(t, caller, "agentd_approvals_oldest_seconds", `role="caller"`) != 0 {
		t.Error("nobody waits any more")
	}
}

// promtool accepts what is served while calls are made, and a fleet in one process is told apart
// by the label agent.
func TestPromtoolAcceptsMetricsUnderLoad(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed")
	}
	cfg, logged := logTo(watched(withGo(load(t, files()))))
	f := startFleet(t, cfg)
	ctx, cancel := context.WithCancel(t.Context())
	var calling sync.WaitGroup
	calling.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			_, _ = client(t, f, "caller").RequestAgent(ctx, rpc.Request{To: "agent://callee", Capability: []string{"go", "cat", "none"}[i%3], Payload: json.RawMessage(`{"n":"` + strings.Repeat("x", i%2) + `"}`)})
		}
	})
	defer func() { cancel(); calling.Wait(); stop(t, f) }()
	_, rest, _ := strings.Cut(logged(), "url=")
	url, _, _ := strings.Cut(rest, "\n")
	for range 3 {
		response, err := http.Get(url + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || !strings.Contains(string(text), `agentd_ready{agent="callee"} 1`) || !strings.Contains(string(text), `agentd_ready{agent="caller"} 1`) {
			t.Fatalf("%v: %s", err, text)
		}
		check := exec.CommandContext(t.Context(), promtool, "check", "metrics")
		check.Stdin = strings.NewReader(string(text))
		if out, err := check.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%v: %s", err, out)
		}
	}
}

// Ten thousand hostile names at each end of calls, by the API of operators and by messages, and
// some at the face for MCP, make no more series than eight.
func TestHostileNamesMakeNoSeries(t *testing.T) {
	t.Parallel()
	cfg := watched(withBus(withGo(load(t, files()))))
	callee, caller := startAgent(t, cfg, "callee"), startAgent(t, cfg, "caller")
	mallory := memoryConn(t, cfg.Bus)
	api := control.NewClient(caller.Socket())
	defer api.Close()
	attack := func(from, to int) {
		var attacking sync.WaitGroup
		for part := range 8 {
			attacking.Go(func() {
				for i := from + part; i < to; i += 8 {
					name := fmt.Sprintf("hostile-%d", i)
					sendAs(t, mallory, name, i)
					request := rpc.Request{To: envelope.Address("agent://" + name), Capability: "go", Payload: json.RawMessage(`1`)}
					if i%2 == 1 {
						request.To, request.Capability = "agent://callee", name
					}
					_, _ = api.RequestAgent(t.Context(), request)
					if i >= 8 && i%50 != 0 {
						continue // a session takes a hundred times as long
					}
					if s, err := api.MCPStream(t.Context(), control.MCPOptions{Client: name}); err == nil {
						_ = s.Close()
					}
				}
			})
		}
		attacking.Wait()
	}
	lines := func() (n int) {
		for _, d := range []*daemon.Daemon{callee, caller} {
			_, text := get(t, d, "/metrics")
			if strings.Contains(text, "hostile") {
				t.Errorf("a name of a stranger is in %s", text)
			}
			n += strings.Count(text, "\nagentd_") + strings.Count(text, "\nrpc_")
		}
		return n
	}
	attack(0, 8)
	reaches(t, callee, "agentd_calls_total", `capability="other",code="EAGENTRPC_NO_CAPABILITY",peer="other",role="callee",status="error"`, is(8))
	before := lines()
	attack(8, hostileNames)
	if after := lines(); after > before+20 { // a code that did not come up before
		t.Errorf("%d series after 8 names, %d after %d", before, after, hostileNames)
	}
}

// hostileNames are as many as an attacker finds in a second.
const hostileNames = 10_000

func memoryConn(t *testing.T, bus *memory.Bus) transport.Transport {
	t.Helper()
	conn := bus.Connect()
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// sendAs sends a request whose names are all made up.
func sendAs(t *testing.T, conn transport.Transport, name string, i int) {
	t.Helper()
	e := &envelope.Envelope{
		Kind: envelope.Event, MessageID: fmt.Sprint("m-", i), CorrelationID: fmt.Sprint("c-", i), From: envelope.Address("agent://" + name), To: "agent://callee",
		Capability: name, Payload: json.RawMessage(`1`), Auth: envelope.Auth{Kind: envelope.AuthInternal},
	}
	data, err := e.Encode()
	if err == nil {
		err = conn.Publish(t.Context(), transport.Message{Topic: "agents.callee.requests", Data: data})
	}
	if err != nil {
		t.Error(err)
	}
}

// What a reload changes of the server is in force at once. What takes a restart is said.
func TestReloadOfMonitoring(t *testing.T) {
	t.Parallel()
	all := files()
	all["callee/agent.yaml"] += "monitoring: {listen: '127.0.0.1:0', token: 'file:./token'}\n"
	cfg := withBus(withGo(load(t, all)))
	token := filepath.Join(cfg.Fleet.Root, "callee", "token")
	all["callee/agent.yaml"] = strings.Replace(all["callee/agent.yaml"], "file:./token", "file:"+token, 1)
	rewrite(t, cfg, "callee/agent.yaml", all["callee/agent.yaml"])
	if err := os.WriteFile(token, []byte("first"), 0o600); err != nil {
		t.Fatal(err)
	}
	reloaded, err := cfg.Fleet.Reload()
	if err != nil {
		t.Fatal(err)
	}
	cfg.Fleet = reloaded
	callee := startAgent(t, cfg, "callee")
	says(t, callee, "/metrics", 401, "token")
	rewrite(t, cfg, "callee/agent.yaml", strings.Replace(all["callee/agent.yaml"], "token: 'file:"+token+"'", "pprof: true", 1))
	if err := callee.Reload(); err != nil {
		t.Fatal(err)
	}
	says(t, callee, "/metrics", 200, `agentd_ready{agent="callee"} 1`)
	says(t, callee, "/debug/pprof/", 200, "goroutine")
	if waits := callee.AwaitsRestart(); len(waits) > 0 {
		t.Errorf("waits for %v", waits)
	}
	rewrite(t, cfg, "callee/agent.yaml", strings.Replace(all["callee/agent.yaml"], "127.0.0.1:0", "127.0.0.1:1", 1))
	if err := callee.Reload(); err != nil {
		t.Fatal(err)
	}
	if waits := callee.AwaitsRestart(); len(waits) != 1 || waits[0] != "agent.yaml: monitoring.listen" {
		t.Errorf("waits for %v", waits)
	}
}

// The processes of skills are counted, those that stay and those that do not.
func TestSignalsOfProcesses(t *testing.T) {
	t.Parallel()
	cfg := watched(withBus(withGo(load(t, files()))))
	callee := startAgent(t, cfg, "callee")
	caller := startAgent(t, cfg, "caller")
	for range 2 {
		if _, err := caller.Client().RequestAgent(t.Context(), rpc.Request{To: "agent://callee", Capability: "cat", Payload: json.RawMessage(`{}`)}); err != nil {
			t.Fatal(err)
		}
	}
	if starts, running := metric(t, callee, "agentd_skill_starts_total", `skill="cat"`), metric(t, callee, "agentd_skill_processes", `skill="cat"`); starts != 2 || running != 0 {
		t.Errorf("%v starts, %v run", starts, running)
	}
	if metric(t, callee, "agentd_skill_cpu_seconds_total", `skill="cat"`) <= 0 {
		t.Error("two processes have used no processor")
	}
	if s := callee.Status(); s.Requests != 2 || metric(t, callee, "agentd_calls_total", `capability="cat",code="",peer="agent://caller",role="callee",status="ok"`) != 2 {
		t.Errorf("status counts %d requests", s.Requests)
	}
}

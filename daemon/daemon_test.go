package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/drift"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/transport/memory"
)

// files is a fleet of a callee and a caller that offers nothing.
func files() map[string]string {
	return map[string]string{
		"fleet.yaml": "version: 1\nname: t\nagents: [{id: callee, path: ./callee}, {id: caller, path: ./caller}]\n" +
			"environments: {default: {peersRef: ./rpc-peers.yaml}}\n",
		"rpc-peers.yaml": "version: 1\npeers:\n  - agent: agent://callee\n" +
			"    transports: [{kind: kafka, brokers: [b], topics: {requests: k}}, {kind: memory, topics: {requests: agents.callee.requests}}]\n",
		"caller/agent.yaml": "name: caller\n",
		"callee/agent.yaml": "name: callee\nlimits: {shutdownTimeoutMs: 20000}\nskills: {cat: {process: {command: [cat]}}}\n",
		"callee/capabilities.yaml": `
version: 1
agent: agent://callee
transports: [{kind: memory, topics: {requests: agents.callee.requests}}]
capabilities:
  - name: go
    inputSchema: {type: object, properties: {n: {type: integer}}, required: [n]}
  - name: cat
`,
	}
}

// load writes the files below a folder of the test's own and loads the fleet.
func load(t testing.TB, files map[string]string) daemon.Config {
	t.Helper()
	dir, err := os.MkdirTemp("", "agentd") // sockets need short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for name, text := range files {
		path := filepath.Join(dir, "fleet", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	f, err := fleet.Load(filepath.Join(dir, "fleet"), fleet.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return daemon.Config{
		Fleet: f, Paths: daemon.Paths{State: filepath.Join(dir, "s"), Runtime: filepath.Join(dir, "r")},
		Logger: slog.New(slog.DiscardHandler), Version: "test", Confines: true,
	}
}

// handle runs the capability go as a function.
func handle(h rpc.HandlerFunc) map[string]rpc.Handler { return map[string]rpc.Handler{"go": h} }

func echo(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) { return inv.Payload, nil }

// echoAfter returns an echo that waits until release is closed.
func echoAfter(release <-chan struct{}) rpc.HandlerFunc {
	return func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		select {
		case <-release:
		case <-ctx.Done():
		}
		return inv.Payload, nil
	}
}

func startFleet(t testing.TB, cfg daemon.Config) *daemon.Fleet {
	t.Helper()
	f, err := daemon.StartFleet(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func stop(t testing.TB, f *daemon.Fleet) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := f.Stop(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
}

func client(t testing.TB, f *daemon.Fleet, id string) *caller.Client {
	t.Helper()
	d, ok := f.Daemon(id)
	if !ok {
		t.Fatalf("no agent %s", id)
	}
	return d.Client()
}

func records(t *testing.T, cfg daemon.Config, agent string) []auditchain.Entry {
	t.Helper()
	r, err := auditchain.OpenReader(t.Context(), cfg.Paths.AuditDB(agent))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var all []auditchain.Entry
	for e, err := range r.Query(t.Context(), auditchain.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	report, err := r.Verify(t.Context(), auditchain.VerifyOptions{})
	if err != nil || !report.OK() {
		t.Errorf("verify: %v, %+v", err, report)
	}
	return all
}

func TestFleetCallsAndRecords(t *testing.T) {
	cfg := load(t, files())
	cfg.Handlers = handle(echo)
	f := startFleet(t, cfg)
	callerAddr := client(t, f, "caller")
	res, err := callerAddr.RequestAgent(t.Context(), rpc.Request{To: "agent://callee", Capability: "go", Payload: json.RawMessage(`{"n":1}`)})
	if err != nil || string(res.Response) != `{"n":1}` {
		t.Errorf("a Go function: %s, %v", res.Response, err)
	}
	res, err = callerAddr.RequestAgent(t.Context(), rpc.Request{To: "agent://callee", Capability: "cat", Payload: json.RawMessage(`[2]`)})
	if err != nil || string(res.Response) != `[2]` {
		t.Errorf("a process: %s, %v", res.Response, err)
	}
	res, err = callerAddr.RequestAgent(t.Context(), rpc.Request{
		To: "agent://callee", Capability: "go", Payload: json.RawMessage(`{"n":"x","m":1}`), SessionID: "s-1",
	})
	if rpc.CodeOf(err) != rpc.CodeSchemaViolation {
		t.Errorf("a violation: %v", err)
	}
	// The record is there when the caller learns of the violation.
	r, err := auditchain.OpenReader(t.Context(), cfg.Paths.AuditDB("caller"))
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range r.Query(t.Context(), auditchain.Filter{Kinds: []auditchain.Kind{auditchain.KindSchemaViolation}}) {
		if err != nil {
			t.Fatal(err)
		}
		v, err := e.SchemaViolation()
		if err != nil || v.CorrelationID != res.CorrelationID || v.PeerID != "agent://callee" || v.SessionID != "s-1" ||
			v.Side != auditchain.SideRequest || len(v.Violations) != 1 || v.Violations[0].Path != "/n" {
			t.Errorf("record %+v, %v", v, err)
		}
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	stop(t, f)
	kinds := map[auditchain.Kind]int{}
	for _, r := range records(t, cfg, "caller") {
		kinds[r.Kind]++
	}
	if kinds[auditchain.KindLifecycle] != 2 || kinds[auditchain.KindSchemaViolation] != 1 || kinds[auditchain.KindRPCCall] != 3 || len(kinds) != 3 {
		t.Errorf("the caller's log: %v", kinds)
	}
	if _, err := os.Lstat(cfg.Paths.Socket("caller")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}

func TestStopFinishesRunningCalls(t *testing.T) {
	cfg := load(t, files())
	started, release := make(chan struct{}), make(chan struct{})
	cfg.Handlers = handle(func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		close(started)
		<-release
		return inv.Payload, ctx.Err()
	})
	f := startFleet(t, cfg)
	calleeAddr, _ := f.Daemon("callee")
	done := make(chan error, 1)
	go func() {
		_, err := client(t, f, "caller").RequestAgent(context.Background(), rpc.Request{To: "agent://callee", Capability: "go", Payload: json.RawMessage(`{"n":1}`)})
		done <- err
	}()
	<-started
	stopped := make(chan error, 1)
	go func() { stopped <- calleeAddr.Stop(context.Background()) }()
	// Not to be ready is the first thing that Stop does.
	eventually.Holds(t, "the callee stops", func() bool { return calleeAddr.Ready() != nil })
	close(release)
	if err := <-done; err != nil {
		t.Errorf("the running call: %v", err)
	}
	if err := <-stopped; err != nil {
		t.Errorf("stop: %v", err)
	}
	callerAddr, _ := f.Daemon("caller")
	if err := callerAddr.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}

// The caller holds another contract than its peer serves: the gate says so
// before anything is sent, and the record has the value that shows it.
func TestDriftIsCaughtAndRecorded(t *testing.T) {
	all := files()
	all["pinned.yaml"] = strings.Replace(all["callee/capabilities.yaml"], "required: [n]", "additionalProperties: false", 1)
	all["rpc-peers.yaml"] += "    capabilities: ./pinned.yaml\n"
	cfg := load(t, all)
	ran := false
	cfg.Handlers = handle(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		ran = true
		return inv.Payload, nil
	})
	f := startFleet(t, cfg)
	_, err := client(t, f, "caller").RequestAgent(t.Context(), rpc.Request{To: "agent://callee", Capability: "go", Payload: json.RawMessage(`{"n":1}`)})
	var found *drift.SchemaDriftError
	if !errors.As(err, &found) || string(found.Witness) != "{}" || ran {
		t.Errorf("%v, ran %v", err, ran)
	}
	stop(t, f)
	recorded := false
	for _, e := range records(t, cfg, "caller") {
		recorded = recorded || e.Kind == auditchain.KindSchemaDrift && e.Peer == "agent://callee" && strings.Contains(string(e.Body), `"witness":{}`)
	}
	if !recorded {
		t.Error("the drift is not in the caller's log")
	}
}

func TestReload(t *testing.T) {
	all := files()
	all["pinned.yaml"] = all["callee/capabilities.yaml"]
	all["rpc-peers.yaml"] += "    capabilities: ./pinned.yaml\n" // the caller keeps what it was built against
	cfg := load(t, all)
	cfg.Handlers = handle(echo)
	f := startFleet(t, cfg)
	defer stop(t, f)
	calleeAddr, _ := f.Daemon("callee")
	call := func() error {
		_, err := client(t, f, "caller").RequestAgent(t.Context(), rpc.Request{To: "agent://callee", Capability: "go", Payload: json.RawMessage(`{"n":1}`)})
		return err
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(cfg.Fleet.Root, "callee", "capabilities.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := call(); err != nil {
		t.Fatal(err)
	}
	good := all["callee/capabilities.yaml"]
	for bad, says := range map[string]string{
		strings.Replace(good, "type: integer", "type: strng", 1):                  "capabilities.yaml:",
		strings.Replace(good, "- name: cat", "- {name: dog, skill: bark}", 1):     `nothing runs its skill "bark"`,
		strings.Replace(good, "agent: agent://callee", "agent: agent://other", 1): "agent://callee",
	} {
		write(bad)
		if err := calleeAddr.Reload(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("reload: %v, want %q", err, says)
		}
		if err := call(); err != nil {
			t.Errorf("after a reload that failed: %v", err)
		}
	}
	// A new required member: the next call is caught by the gate.
	write(strings.Replace(good, "required: [n]", "required: [n, m]", 1))
	if err := calleeAddr.Reload(); err != nil {
		t.Fatal(err)
	}
	var found *drift.SchemaDriftError
	if err := call(); !errors.As(err, &found) || found.Side != rpc.SideRequest {
		t.Errorf("after a breaking reload: %v", err)
	}
	// Those that failed are none.
	reloads := 0
	for _, e := range records(t, cfg, "callee") {
		if e.Kind == auditchain.KindLifecycle && strings.Contains(string(e.Body), `"event":"reloaded"`) {
			reloads++
		}
	}
	if reloads != 1 {
		t.Errorf("%d reloads are recorded", reloads)
	}
}

func TestControlAPI(t *testing.T) {
	cfg := load(t, files())
	cfg.Handlers = handle(echo)
	f := startFleet(t, cfg)
	defer stop(t, f)
	running, err := cfg.Paths.Running(t.Context())
	if err != nil || fmt.Sprint(running) != "[callee caller]" {
		t.Errorf("running %v, %v", running, err)
	}
	calleeAddr := control.NewClient(cfg.Paths.Socket("callee"))
	defer calleeAddr.Close()
	data, err := calleeAddr.Capabilities(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var published struct {
		Version     string         `json:"capabilities_version"`
		Digest      string         `json:"digest"`
		ToolSchemas map[string]any `json:"tool_schemas"`
	}
	if err := json.Unmarshal(data, &published); err != nil || published.Version != "1.0" || published.Digest == "" || len(published.ToolSchemas) != 2 {
		t.Errorf("published %s, %v", data, err)
	}
	if err := calleeAddr.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	callerAddr := control.NewClient(cfg.Paths.Socket("caller"))
	defer callerAddr.Close()
	var refused *control.RefusedError
	if _, err := callerAddr.Capabilities(t.Context()); !errors.As(err, &refused) || refused.HTTPStatus != 404 {
		t.Errorf("capabilities of a client: %v", err)
	}
}

func TestStartRefuses(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(files map[string]string)
		agent  string
		says   string
	}{
		{"an unknown agent", nil, "nobody", `no agent "nobody"`},
		{"a skill that nothing runs", func(f map[string]string) { f["callee/agent.yaml"] = "name: callee\n" }, "callee", `nothing runs its skill "cat"`},
		{"a transport that nobody speaks", func(f map[string]string) {
			f["callee/capabilities.yaml"] = strings.Replace(f["callee/capabilities.yaml"], "{kind: memory, topics: {requests: agents.callee.requests}}",
				"{kind: mqtt, url: u, topics: {requests: x}}", 1)
		}, "callee", "none of the agent's transports [mqtt]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			all := files()
			if test.change != nil {
				test.change(all)
			}
			cfg := load(t, all)
			cfg.Handlers = handle(echo)
			cfg.Bus = memory.NewBus(memory.Options{})
			_, err := daemon.Start(t.Context(), cfg, test.agent)
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v, want %q", err, test.says)
			}
			// Nothing is left behind: the audit log can be opened again.
			if test.agent == "callee" {
				log, err := auditchain.Open(t.Context(), cfg.Paths.AuditDB("callee"), auditchain.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if err := log.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestMemoryDoesNotLeaveTheProcess(t *testing.T) {
	cfg := load(t, files())
	_, err := daemon.Start(t.Context(), cfg, "callee")
	var memoryOnly *daemon.MemoryOnlyError
	if !errors.As(err, &memoryOnly) || !strings.Contains(err.Error(), "agentd fleet run") {
		t.Errorf("error %v", err)
	}
}

func TestSecondProcessIsRefused(t *testing.T) {
	cfg := load(t, files())
	cfg.Handlers = handle(echo)
	f := startFleet(t, cfg)
	defer stop(t, f)
	if _, err := daemon.StartFleet(t.Context(), cfg); auditchain.CodeOf(err) != auditchain.CodeLocked {
		t.Errorf("error %v", err)
	}
	res, err := client(t, f, "caller").RequestAgent(t.Context(), rpc.Request{To: "agent://callee", Capability: "cat", Payload: json.RawMessage(`1`)})
	if err != nil {
		t.Errorf("the first process after it: %v %v", res, err)
	}
}

func TestRun(t *testing.T) {
	cfg := load(t, files())
	cfg.Bus = memory.NewBus(memory.Options{})
	cfg.Handlers = handle(echo)
	cause := errors.New("the end of serve")
	ready := false
	err := daemon.Run(t.Context(), cfg, "callee", func(_ context.Context, d *daemon.Daemon) error {
		ready = d.Ready() == nil
		return cause
	})
	if !errors.Is(err, cause) || !ready {
		t.Errorf("ready %v, %v", ready, err)
	}
}

func TestDefaultPaths(t *testing.T) {
	env := map[string]string{"HOME": "/home/ada", "XDG_RUNTIME_DIR": "/run/user/1", "XDG_STATE_HOME": "relative"}
	get := func(name string) string { return env[name] }
	one, err := daemon.DefaultPaths("f", "/src/one", get)
	if err != nil {
		t.Fatal(err)
	}
	two, _ := daemon.DefaultPaths("f", "/src/two", get)
	if !strings.HasPrefix(one.AuditDB("a"), "/home/ada/.local/state/agentd/f-") || !strings.HasSuffix(one.AuditDB("a"), "/a/audit.db") {
		t.Errorf("audit log at %s", one.AuditDB("a"))
	}
	if !strings.HasPrefix(one.Socket("a"), "/run/user/1/agentd/f-") || one.Socket("a") == two.Socket("a") {
		t.Errorf("sockets at %s and %s", one.Socket("a"), two.Socket("a"))
	}
	delete(env, "HOME")
	if _, err := daemon.DefaultPaths("f", "/", get); err == nil {
		t.Error("state is kept nowhere")
	}
	env["XDG_STATE_HOME"], env["XDG_RUNTIME_DIR"] = "/state", ""
	p, err := daemon.DefaultPaths("f", "/", get)
	if err != nil || !strings.HasPrefix(p.State, "/state/agentd/f-") || !strings.Contains(p.Runtime, fmt.Sprintf("agentd-%d", os.Getuid())) {
		t.Errorf("%+v, %v", p, err)
	}
}

// A log is changed by its agent while that runs, and directly when it does not:
// either way by one call.
func TestWithAuditKeeper(t *testing.T) {
	cfg := load(t, files())
	cfg.Handlers = handle(echo)
	f := startFleet(t, cfg)
	path, socket := cfg.Paths.AuditDB("callee"), cfg.Paths.Socket("callee")
	prune := func(socket string) (done auditchain.Erasure, err error) {
		err = daemon.WithAuditKeeper(t.Context(), path, socket, func(k control.AuditKeeper) error {
			done, err = k.Prune(t.Context(), time.Now().Add(time.Hour), "test")
			return err
		})
		return done, err
	}
	if done, err := prune(socket); err != nil || done.Count != 1 {
		t.Errorf("while the agent runs: %+v, %v; want its start pruned", done, err)
	}
	for name, socket := range map[string]string{"unknown": "", "not served": socket + "x"} {
		if _, err := prune(socket); auditchain.CodeOf(err) != auditchain.CodeLocked {
			t.Errorf("with a socket that is %s: %v; want the log locked", name, err)
		}
	}
	stop(t, f)
	if done, err := prune(socket); err != nil || done.Count != 2 {
		t.Errorf("while it does not run: %+v, %v; want the first pruning and the stop pruned", done, err)
	}
	records(t, cfg, "callee") // verifies
}

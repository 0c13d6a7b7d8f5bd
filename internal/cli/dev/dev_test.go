package dev

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/cli/clitest"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/rpc"
)

// shop has a process skill and one that speaks to standard error. Both are shell scripts.
const shop = `
-- fleet.yaml --
version: 1
name: shop
agents: [{id: clerk, path: ./agents/clerk}, {id: desk, path: ./agents/desk}]
environments: {default: {peersRef: ./rpc-peers.yaml}}
-- rpc-peers.yaml --
version: 1
peers:
  - agent: agent://clerk
    transports: [{kind: memory, topics: {requests: agents.clerk.requests}}]
-- agents/desk/agent.yaml --
name: desk
-- agents/clerk/agent.yaml --
name: clerk
skills:
  price: {process: {command: [sh, agents/clerk/price.sh]}}
-- agents/clerk/price.sh --
echo "pricing" >&2
echo '{"price": 1}'
-- agents/clerk/capabilities.yaml --
version: 1
agent: agent://clerk
transports: [{kind: memory, topics: {requests: agents.clerk.requests}}]
capabilities:
  - name: price
    inputSchema: {type: object, properties: {item: {type: string}}, required: [item], additionalProperties: false}
    outputSchema: {type: object, properties: {price: {type: number}}, required: [price]}
`

// start runs the command until stop is called, which returns its error.
func start(t *testing.T, env *clitest.Env) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, &env.Env) }()
	t.Cleanup(cancel)
	waitFor(t, env, "ready")
	return func() error {
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(time.Minute):
			t.Fatal("the command did not stop")
			return nil
		}
	}
}

func waitFor(t *testing.T, env *clitest.Env, text string) {
	t.Helper()
	eventually.Succeeds(t, "the command shows "+text, func() error {
		if printed := env.Out.String(); !strings.Contains(printed, text) {
			return fmt.Errorf("no %q in %s%s", text, printed, env.Err)
		}
		return nil
	})
}

// call makes a call of the clerk as desk.
func call(t *testing.T, env *clitest.Env, payload string) *rpc.Result {
	t.Helper()
	paths, err := daemon.DefaultPaths("shop", env.Dir, env.Getenv) // without the files, which may be broken
	if err != nil {
		t.Fatal(err)
	}
	client := control.NewClient(paths.Socket("desk"))
	defer client.Close()
	result, err := client.RequestAgent(t.Context(), rpc.Request{To: "agent://clerk", Capability: "price", Payload: json.RawMessage(payload)})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// What a person sees: each call in one line, violations with their places, what a skill says,
// and how to make the first call.
func TestCallsAreShown(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, shop)
	stop := start(t, env)
	waitFor(t, env, `agentd request --as desk clerk price '{"item":`)
	if r := call(t, env, `{"item": "tea"}`); r.Status != rpc.StatusOK {
		t.Fatalf("%+v", r)
	}
	waitFor(t, env, "✓ desk → clerk/price  ok  ")
	waitFor(t, env, "clerk/price │ pricing")
	if r := call(t, env, `{"item": 3}`); r.Status != rpc.StatusSchemaViolation {
		t.Fatalf("%+v", r)
	}
	waitFor(t, env, "✗ desk → clerk/price  schema-violation EAGENTRPC_SCHEMA_VIOLATION  ")
	if got := env.Out.String(); !strings.Contains(got, "the request of price breaks its schema, found by desk:\n") ||
		!strings.Contains(got, "/item  ") || !strings.Contains(got, "[type]\n") {
		t.Errorf("%s", got)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	// One end of each call only, and no colours in what is no terminal.
	if got := env.Out.String(); strings.Count(got, "→ clerk/price") != 2 || strings.Contains(got, "\x1b") {
		t.Errorf("%s", got)
	}
}

// A script, a contract: what is saved is in force, and what is broken is shown with its line
// while the files from before serve.
func TestReloads(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, shop)
	stop := start(t, env)
	// A response that breaks the contract, by a change of the script.
	env.Write(t, "agents/clerk/price.sh", `echo '{"price": "one"}'`)
	waitFor(t, env, "↻ reloaded clerk (agents/clerk/price.sh)")
	if r := call(t, env, `{"item": "tea"}`); r.Status == rpc.StatusOK {
		t.Errorf("%+v", r)
	}
	waitFor(t, env, "the response of price breaks its schema, found by clerk:")
	env.Write(t, "agents/clerk/price.sh", `echo '{"price": 2}'`)

	path := filepath.Join(env.Dir, "agents", "clerk", "capabilities.yaml")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	env.Write(t, "agents/clerk/capabilities.yaml", strings.Replace(string(good), "capabilities:", "capabilties:", 1))
	waitFor(t, env, "capabilities.yaml:4:1")
	waitFor(t, env, "the files from before the change stay in force")
	if r := call(t, env, `{"item": "tea"}`); r.Status != rpc.StatusOK {
		t.Errorf("%+v", r)
	}
	env.Out.Reset()
	env.Write(t, "agents/clerk/capabilities.yaml", strings.Replace(string(good), "item: {type: string}", "item: {type: integer}", 1))
	waitFor(t, env, "↻ reloaded ")
	eventually.Holds(t, "the new contract is in force", func() bool { return call(t, env, `{"item": 3}`).Status == rpc.StatusOK })
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// What has changed at one moment is one reload, of the agents that it concerns, and what
// nobody has changed is not loaded again. How long the moment is, package watch decides.
func TestOneReloadForManySaves(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, shop)
	env.Format = output.JSONL
	running := env.Start(t)
	files, err := env.LoadFleet(fleet.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := newScreen(&env.Env, files)
	r := &reloader{out: out, fleet: running, files: files, seen: stampsOf(files), behind: map[string]bool{}}
	r.changed(t.Context())
	env.Write(t, "agents/clerk/price.sh", "exit 1")
	env.Write(t, "agents/clerk/price.sh", "exit 2 # done")
	env.Write(t, "agents/desk/agent.yaml", "name: desk\ndescription: Asks for prices.\n")
	r.changed(t.Context())
	r.changed(t.Context())
	env.Write(t, "agents/desk/agent.yaml", "name: desk\ndescription: Asks.\n")
	r.changed(t.Context())
	out.close()
	var reloads []string
	for line := range strings.Lines(env.Out.String()) {
		var e reloadEvent
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		reloads = append(reloads, fmt.Sprint(e.Event, e.Agents, e.Files))
	}
	want := "reloaded[clerk desk] [agents/clerk/price.sh agents/desk/agent.yaml], reloaded[desk] [agents/desk/agent.yaml]"
	if got := strings.Join(reloads, ", "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// An agent that fleet.yaml gains is started, and its calls are shown once.
func TestAgentsJoin(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, shop)
	stop := start(t, env)
	env.Write(t, "agents/till/agent.yaml", "name: till\n")
	manifest, err := os.ReadFile(filepath.Join(env.Dir, "fleet.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	env.Write(t, "fleet.yaml", strings.Replace(string(manifest), "agents: [", "agents: [{id: till, path: ./agents/till}, ", 1))
	waitFor(t, env, "till has joined the fleet")
	if err := stop(); err != nil {
		t.Error(err)
	}
	if sockets, err := filepath.Glob(filepath.Join(env.Vars["XDG_RUNTIME_DIR"], "agentd", "*", "*.sock")); err != nil || len(sockets) > 0 {
		t.Errorf("sockets left: %v, %v", sockets, err)
	}
}

// An agent that is added with a fault starts once that is mended, and nothing else has changed.
func TestAgentsJoinOnceMended(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, shop)
	running := env.Start(t)
	files, err := env.LoadFleet(fleet.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := newScreen(&env.Env, files)
	r := &reloader{out: out, fleet: running, files: files, seen: stampsOf(files), behind: map[string]bool{}, joined: func(*daemon.Daemon) {}}
	env.Write(t, "agents/till/agent.yaml", "name: till\ncapabilities: {memroy: {}}\n")
	manifest, err := os.ReadFile(filepath.Join(env.Dir, "fleet.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	env.Write(t, "fleet.yaml", strings.Replace(string(manifest), "agents: [", "agents: [{id: till, path: ./agents/till}, ", 1))
	r.changed(t.Context())
	r.changed(t.Context())
	env.Write(t, "agents/till/agent.yaml", "name: till\n")
	r.changed(t.Context())
	out.close()
	got := env.Out.String()
	if strings.Count(got, "✗ not started: ") != 1 || !strings.Contains(got, "till: it starts once its files are mended\n") || !strings.Contains(got, "↻ till has joined the fleet\n") {
		t.Errorf("%s", got)
	}
}

// A worker that does not start keeps nobody from ending the command meanwhile.
func TestEndsDuringAReload(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, shop)
	stop := start(t, env)
	env.Write(t, "agents/clerk/price.sh", "echo hanging >&2\nexec sleep 600\n")
	env.Write(t, "agents/clerk/agent.yaml", `
name: clerk
skills:
  price: {worker: {start: eager, command: [sh, agents/clerk/price.sh], startTimeoutMs: 600000, killGraceMs: 100}}
`)
	waitFor(t, env, "│ hanging")
	if err := stop(); err != nil {
		t.Error(err)
	}
	if got := env.Out.String(); strings.Contains(got, "not reloaded") {
		t.Errorf("%s", got)
	}
}

// For programs every line is one JSON value that says what it is.
func TestEveryLineIsJSON(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, shop)
	env.Format = output.JSONL
	stop := start(t, env)
	call(t, env, `{"item": "tea"}`)
	call(t, env, `{}`)
	waitFor(t, env, `"schema-violation"`)
	if err := stop(); err != nil {
		t.Error(err)
	}
	seen := map[string]map[string]any{}
	for line := range strings.Lines(env.Out.String()) {
		var value map[string]any
		if err := json.Unmarshal([]byte(line), &value); err != nil || value["time"] == nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		seen[fmt.Sprint(value["event"])] = value
	}
	for kind, members := range map[string][]string{
		"ready":     {"agents", "example"},
		"call":      {"caller", "callee", "capability", "status", "latencyMs", "correlationId"},
		"violation": {"agent", "side", "violations"},
		"stderr":    {"agent", "line"},
	} {
		for _, m := range members {
			if seen[kind][m] == nil {
				t.Errorf("%s: no %s in %v", kind, m, seen[kind])
			}
		}
	}
	one, _ := seen["violation"]["violations"].([]any)
	if len(one) != 1 || fmt.Sprint(one[0]) != "map[expected:missing required property \"item\" kind:required path:/item]" {
		t.Errorf("%v", one)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	noFleet, badFile, asJSON := clitest.New(t, ""), clitest.New(t, shop), clitest.New(t, shop)
	badFile.Write(t, "agents/desk/agent.yaml", "nam: desk\n")
	asJSON.Format = output.JSON
	for name, test := range map[string]struct {
		env  *clitest.Env
		code int
		want string
	}{
		"no fleet": {noFleet, cli.ExitFailed, "fleet.yaml"},
		"bad file": {badFile, cli.ExitFailed, filepath.Join("desk", "agent.yaml") + ":1:"},
		"json":     {asJSON, cli.ExitUsage, "jsonl"},
	} {
		if err := Run(t.Context(), &test.env.Env); clitest.Code(err) != test.code || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

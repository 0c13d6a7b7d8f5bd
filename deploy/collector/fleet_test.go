package collector_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// program is agentd, built for the tests.
var program string //nolint:gochecknoglobals // set once, before any test

func TestMain(m *testing.M) {
	os.Exit(withProgram(m))
}

func withProgram(m *testing.M) int {
	dir, err := os.MkdirTemp("", "agentd")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program = filepath.Join(dir, "agentd")
	build := exec.Command("go", "build", "-o", program, "./cmd/agentd")
	build.Dir, build.Stderr = filepath.Join("..", ".."), os.Stderr
	if err := build.Run(); err != nil {
		panic(err)
	}
	return m.Run()
}

// The files of a fleet of two agents.
var files = map[string]string{ //nolint:gochecknoglobals // a table of constants
	"fleet.yaml": `version: 1
name: signals
agents: [{id: desk, path: ./desk}, {id: hub, path: ./hub}]
environments: {default: {peersRef: ./rpc-peers.yaml}}
`,
	"rpc-peers.yaml": `version: 1
peers:
  - {agent: agent://hub, transports: [{kind: nats, servers: ['${env:AGENTD_NATS_URL}'], subjects: {requests: agents.hub.requests}}]}
`,
	"desk/agent.yaml": "name: desk\n",
	"hub/agent.yaml": `name: hub
skills:
  cat: {process: {command: [cat]}}
  fail: {process: {command: ["false"]}}
`,
	"hub/capabilities.yaml": `version: 1
agent: agent://hub
transports: [{kind: nats, servers: ['${env:AGENTD_NATS_URL}'], subjects: {requests: agents.hub.requests}}]
capabilities:
  - {name: cat, skill: cat, timeoutMs: 60000}
  - {name: fail, skill: fail, timeoutMs: 60000}
  - {name: later, skill: cat, timeoutMs: 60000, delivery: durable}
`,
}

// A fleet is a folder with its files, and the environment of its commands.
type fleet struct {
	t   *testing.T
	dir string
	env []string
}

// newFleet writes the files, and starts a broker and both agents, each of which finds its
// collector in an environment of its own.
func newFleet(t *testing.T, desk, hub []string) *fleet {
	t.Helper()
	f := &fleet{t: t, dir: t.TempDir()}
	for name, text := range files {
		path := filepath.Join(f.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// A path of a socket is short.
	run, err := os.MkdirTemp("", "run")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(run) })
	f.env = append(os.Environ(), "HOME="+f.dir, "XDG_STATE_HOME=", "XDG_RUNTIME_DIR="+run, "OTEL_BSP_SCHEDULE_DELAY=20", "OTEL_BLRP_SCHEDULE_DELAY=20")
	f.start("broker", nil, "broker", "--port", "0", "--store", filepath.Join(f.dir, "store"))
	eventually(t, "the broker has an address", func() bool { return strings.HasPrefix(f.read("broker.out"), "nats://") })
	f.env = append(f.env, "AGENTD_NATS_URL="+strings.TrimSpace(f.read("broker.out")))
	f.start("hub", hub, "run", "--agent", "hub")
	f.start("desk", desk, "run", "--agent", "desk")
	for _, agent := range []string{"hub", "desk"} {
		eventually(t, agent+" is ready", func() bool { return strings.Contains(f.read(agent+".log"), `"msg":"ready"`) })
	}
	return f
}

// start starts a command that ends with the test. What it writes is in <name>.out and
// <name>.log.
func (f *fleet) start(name string, env []string, args ...string) {
	f.t.Helper()
	cmd := f.command(f.t.Context(), env, args...)
	out, err := os.Create(filepath.Join(f.dir, name+".out"))
	if err != nil {
		f.t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(f.dir, name+".log"))
	if err != nil {
		f.t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = out, log
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		_ = cmd.Wait()
		_, _ = out.Close(), log.Close()
		if f.t.Failed() {
			f.t.Logf("%s:\n%s", name, f.read(name+".log"))
		}
	})
}

// command is agentd in the folder of the fleet. When ctx ends it is asked to stop.
func (f *fleet) command(ctx context.Context, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = f.dir, append(append([]string{}, f.env...), env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 20 * time.Second
	return cmd
}

// run runs a command of agentd to its end, and returns what it prints.
func (f *fleet) run(env []string, args ...string) (string, error) {
	var out bytes.Buffer
	cmd := f.command(f.t.Context(), env, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// read returns what a file of the fleet has at present.
func (f *fleet) read(name string) string {
	data, _ := os.ReadFile(filepath.Join(f.dir, name)) // it may not be there yet
	return string(data)
}

// lines counts the lines of an agent's log that have all of some texts.
func (f *fleet) lines(agent string, texts ...string) (n int) {
	for line := range strings.Lines(f.read(agent + ".log")) {
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
			n++
		}
	}
	return n
}

// request has desk call a capability of hub in a trace.
func (f *fleet) request(capability, trace string, args ...string) {
	f.t.Helper()
	all := append([]string{"request", "--as", "desk", "hub", capability, `{"a":1}`}, args...)
	if out, err := f.run([]string{"TRACEPARENT=00-" + trace + "-" + parent + "-01", "TRACESTATE=vendor=1"}, all...); err != nil && capability != "fail" {
		f.t.Fatalf("%v\n%s", err, out)
	}
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("in a minute it has not come to this: " + what)
		}
	}
}

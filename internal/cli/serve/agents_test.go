package serve

import (
	"context"
	"errors"
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
)

// start runs a command until stop is called, which returns its error.
func start(t *testing.T, run func(context.Context) error) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	return func() error {
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(30 * time.Second):
			t.Fatal("the command did not stop")
			return nil
		}
	}
}

// waitFor waits until standard error has a text.
func waitFor(t *testing.T, env *clitest.Env, text string) {
	t.Helper()
	eventually.Succeeds(t, "the command prints a line", func() error {
		if printed := env.Err.String(); !strings.Contains(printed, text) {
			return fmt.Errorf("no %q in %s", text, printed)
		}
		return nil
	})
}

// capabilities asks the running clerk what it offers. It looks for its socket
// itself: the files of the fleet may be faulty.
func capabilities(t *testing.T, env *clitest.Env) string {
	t.Helper()
	sockets, err := filepath.Glob(filepath.Join(env.Vars["XDG_RUNTIME_DIR"], "agentd", "*", "clerk.sock"))
	if err != nil || len(sockets) != 1 {
		t.Fatalf("sockets %v, %v", sockets, err)
	}
	client := control.NewClient(sockets[0])
	defer client.Close()
	text, err := client.Capabilities(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A changed file is loaded. A faulty one is reported with its place, and the
// agents keep what they have, until the file is good again.
func TestFleetReloads(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	stop := start(t, func(ctx context.Context) error { return Fleet(ctx, &env.Env, true) })
	waitFor(t, env, "ready. press ctrl-c to stop.")
	for _, want := range []string{"fleet: office\nrunning 2 agents:\n", "  • clerk  capabilities=3  socket=", "  • desk  client-only  socket="} {
		if !strings.Contains(env.Err.String(), want) {
			t.Errorf("no %q in %s", want, env.Err)
		}
	}
	path := filepath.Join(env.Dir, "clerk", "capabilities.yaml")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	env.Err.Reset()
	// An agent that is ready notices the first change.
	env.Write(t, "clerk/capabilities.yaml", strings.Replace(string(good), "capabilities:", "capabilties:", 1))
	waitFor(t, env, "Not reloaded: clerk, desk. The old files stay in force there.")
	if got := capabilities(t, env); strings.Count(env.Err.String(), "capabilities.yaml:4:") != 1 || !strings.Contains(got, `"file"`) {
		t.Errorf("%s%s", env.Err, got)
	}
	env.Err.Reset()
	env.Write(t, "clerk/capabilities.yaml", strings.Replace(string(good), "name: file\n", "name: stamp\n", 1))
	waitFor(t, env, "reloaded.")
	if got := capabilities(t, env); !strings.Contains(got, `"stamp"`) || strings.Contains(got, `"file"`) {
		t.Errorf("%s", got)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if sockets, err := filepath.Glob(filepath.Join(env.Vars["XDG_RUNTIME_DIR"], "agentd", "*", "*.sock")); err != nil || len(sockets) > 0 {
		t.Errorf("sockets left: %v, %v", sockets, err)
	}
}

// Files that only one agent cannot load keep that one as it was. Who has which files is
// reported.
func TestOneAgentStaysBehind(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	stop := start(t, func(ctx context.Context) error { return Fleet(ctx, &env.Env, true) })
	waitFor(t, env, "ready. press")
	env.Err.Reset()
	if err := os.Remove(filepath.Join(env.Dir, "clerk", "capabilities.yaml")); err != nil {
		t.Fatal(err)
	}
	waitFor(t, env, "\nreloaded.\n")
	if got := env.Err.String(); !strings.Contains(got, "Not reloaded: clerk. The old files stay in force there.") || !strings.Contains(got, "clerk starts or stops offering capabilities") {
		t.Errorf("%s", got)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// Without --watch a changed file waits for SIGHUP.
func TestFleetWithoutWatch(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	stop := start(t, func(ctx context.Context) error { return Fleet(ctx, &env.Env, false) })
	waitFor(t, env, "ready. press")
	env.Write(t, "clerk/agent.yaml", "name: clerk\nskils: {}\n")
	if err := stop(); err != nil {
		t.Error(err)
	}
	if strings.Contains(env.Err.String(), "agent.yaml") || strings.Contains(env.Err.String(), "reloaded") {
		t.Errorf("%s", env.Err)
	}
}

// A reload that waits for a worker does not keep the command from ending.
func TestEndsDuringAReload(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, `
-- fleet.yaml --
version: 1
name: office
agents: [{id: clerk, path: ./clerk}]
-- clerk/agent.yaml --
name: clerk
skills: {price: {process: {command: ["true"]}}}
-- clerk/capabilities.yaml --
version: 1
agent: agent://clerk
transports: [{kind: memory, topics: {requests: agents.clerk.requests}}]
capabilities: [{name: price, skill: price}]
`)
	stop := start(t, func(ctx context.Context) error { return Fleet(ctx, &env.Env, true) })
	waitFor(t, env, "ready. press")
	env.Write(t, "clerk/agent.yaml", `name: clerk
skills: {price: {worker: {start: eager, command: [sh, -c, "echo hanging >&2; exec sleep 600"], startTimeoutMs: 600000, killGraceMs: 100}}}
`)
	waitFor(t, env, "hanging")
	if err := stop(); err != nil {
		t.Error(err)
	}
	if got := env.Err.String(); strings.Contains(got, "Not reloaded") || strings.Contains(got, "\nreloaded") {
		t.Errorf("%s", got)
	}
}

// Nor does one that hangs whatever becomes of its agent.
func TestEndsDuringAReloadThatHangs(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	cfg, err := Config(&env.Env)
	if err != nil {
		t.Fatal(err)
	}
	all, err := daemon.StartFleet(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = all.Stop(context.Background()) }() // what the one agent says of its stop is no matter here
	d, _ := all.Daemon("clerk")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	hangs, over := make(chan struct{}), make(chan struct{})
	defer close(over)
	ended := make(chan error, 1)
	go func() {
		ended <- ReloadUntil(ctx, d, func() (*fleet.Fleet, error) {
			close(hangs)
			<-over // as a file does whose server is away
			return nil, errors.New("too late")
		})
	}()
	<-hangs
	cancel()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("a reload that has not ended is no success")
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it waits for the reload")
	}
}

func TestStartErrors(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	noFleet, badLevel, badFile := clitest.New(t, ""), clitest.New(t, clitest.Office), clitest.New(t, clitest.Office)
	badLevel.LogLevel = "loud"
	badFile.Write(t, "desk/agent.yaml", "nam: desk\n")
	for name, test := range map[string]struct {
		env  *clitest.Env
		code int
		want string
	}{
		"no agent":  {env, cli.ExitFailed, `no agent "nobody"`},
		"no fleet":  {noFleet, cli.ExitFailed, "fleet.yaml"},
		"log level": {badLevel, cli.ExitUsage, "--log-level"},
		"bad file":  {badFile, cli.ExitFailed, filepath.Join("desk", "agent.yaml") + ":1:"},
	} {
		if err := Agent(t.Context(), &test.env.Env, "nobody", true); clitest.Code(err) != test.code || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
		if name == "no agent" {
			continue
		}
		if err := Fleet(t.Context(), &test.env.Env, true); clitest.Code(err) != test.code || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// A second fleet with the same state is refused, and harms nothing.
func TestFleetTwice(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	stop := start(t, func(ctx context.Context) error { return Fleet(ctx, &env.Env, false) })
	waitFor(t, env, "ready. press")
	if err := Fleet(t.Context(), &env.Env, false); clitest.Code(err) != cli.ExitFailed || !strings.Contains(err.Error(), "audit.db") {
		t.Errorf("%v", err)
	}
	if got := capabilities(t, env); !strings.Contains(got, "file") {
		t.Errorf("%s", got)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

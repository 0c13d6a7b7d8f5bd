package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/rpc"
)

// An office is a clerk and a desk that calls it, each an `agentd run` of its own with
// its defaults, over a real broker. The clerk's state is in a folder to be harmed.
type office struct {
	clerk, desk member
	root        string
}

// A member is one process of an office.
type member struct {
	*control.Client
	log   *lines
	state string   // its folder
	env   []string // of commands that are to find it
}

const officeFiles = `
-- fleet.yaml --
version: 1
name: office
agents: [CLERK, {id: desk, path: ./desk}]
environments: {default: {peersRef: ./rpc-peers.yaml}}
-- rpc-peers.yaml --
version: 1
peers:
  - agent: agent://clerk
    transports: [{kind: nats, servers: ["SERVER"], subjects: {requests: agents.clerk.requests}}]
-- desk/agent.yaml --
name: desk
-- clerk/agent.yaml --
name: clerk
skills:
  file: {process: {command: [cat]}}
  spill: {process: {command: [sh, -c, "echo all over the desk >&2; exit 3"]}}
-- clerk/capabilities.yaml --
version: 1
agent: agent://clerk
transports: [{kind: nats, servers: ["SERVER"], subjects: {requests: agents.clerk.requests}}]
capabilities: [{name: file}, {name: spill}]
`

// openOffice starts both agents. Where the folder for the clerk's state is "", it is
// like the desk's. more are further members of the clerk's entry in fleet.yaml, and
// flags those of both commands.
func openOffice(t *testing.T, state string, more []string, flags ...string) *office {
	t.Helper()
	clerk := strings.Join(append([]string{"{id: clerk, path: ./clerk"}, more...), ", ") + "}"
	text := strings.NewReplacer("SERVER", natstest.Run(t, "").URL(), "CLERK", clerk).Replace(officeFiles)
	l := layFleet(t, text, flags...)
	if state == "" {
		state = filepath.Join(l.dir, "c")
	}
	return &office{root: l.root, clerk: l.run(t, "clerk", state), desk: l.run(t, "desk", filepath.Join(l.dir, "d"))}
}

// A laidFleet is the files of a fleet, in a folder that ends with the test.
type laidFleet struct {
	dir, root string
	fleet     *fleet.Fleet
	flags     []string // of every `agentd run`
}

// layFleet writes the files of a fleet, in the form of testscript's archives.
func layFleet(t *testing.T, files string, flags ...string) *laidFleet {
	t.Helper()
	dir, err := os.MkdirTemp("", "agentd") // sockets need short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l := &laidFleet{dir: dir, root: filepath.Join(dir, "fleet"), flags: flags}
	for _, file := range strings.Split(files, "\n-- ")[1:] {
		name, content, _ := strings.Cut(file, " --\n")
		path := filepath.Join(l.root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content+"\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if l.fleet, err = fleet.Load(l.root, fleet.LoadOptions{InspectOnly: true}); err != nil {
		t.Fatal(err)
	}
	return l
}

// run runs an agent, with its state in a folder, until the test ends.
func (l *laidFleet) run(t *testing.T, agent, state string) member {
	t.Helper()
	vars := map[string]string{"XDG_STATE_HOME": state, "XDG_RUNTIME_DIR": filepath.Join(l.dir, "r")}
	paths, err := daemon.DefaultPaths(l.fleet.Name, l.fleet.Root, func(name string) string { return vars[name] })
	if err != nil {
		t.Fatal(err)
	}
	m := member{
		Client: control.NewClient(paths.Socket(agent)), state: filepath.Dir(paths.Idempotency(agent)),
		env: append(os.Environ(), "XDG_STATE_HOME="+state, "XDG_RUNTIME_DIR="+vars["XDG_RUNTIME_DIR"]),
	}
	t.Cleanup(m.Close)
	cmd := exec.Command("agentd", append([]string{"run", "--fleet", l.root, "--agent", agent, "--log-format", "json"}, l.flags...)...)
	cmd.Env = m.env
	m.log = start(t, cmd)
	eventually.Holds(t, agent+" is ready", func() bool { return m.Ready(t.Context()) == nil })
	return m
}

// call makes one call of the desk to the clerk.
func (o *office) call(t *testing.T, key string) *rpc.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	result, err := o.desk.RequestAgent(ctx, rpc.Request{
		To: "agent://clerk", Capability: "file", Payload: json.RawMessage(`{}`), IdempotencyKey: key,
	})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// stop stops both agents and waits for them.
func (o *office) stop(t *testing.T) {
	t.Helper()
	for _, l := range []*lines{o.desk.log, o.clerk.log} {
		if err := l.process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := <-l.ended; err != nil {
			t.Errorf("the agent ended with %v: %s", err, l)
		}
	}
}

// lines are what a process writes to both of its outputs.
type lines struct {
	process *os.Process
	ended   chan error // has the end of the process

	mu  sync.Mutex
	all []string // guarded by mu
}

// start starts a process that ends with the test.
func start(t *testing.T, cmd *exec.Cmd) *lines {
	t.Helper()
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = cmd.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	l := &lines{process: cmd.Process, ended: make(chan error, 1)}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			l.mu.Lock()
			l.all = append(l.all, scanner.Text())
			l.mu.Unlock()
		}
		l.ended <- cmd.Wait() // after the last line: Wait closes the pipe
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		<-read
	})
	return l
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.all, "\n")
}

// records returns the lines, each of which must be JSON.
func (l *lines) records(t *testing.T) (all []map[string]any) {
	t.Helper()
	for line := range strings.Lines(l.String()) {
		var r map[string]any
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Errorf("no JSON: %s", line)
		}
		all = append(all, r)
	}
	return all
}

package main

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/rpc"
)

// An office is a clerk and a desk that calls it, each an `agentd run` of its own with
// its defaults, over a real broker. The clerk's state is in a folder to be harmed.
type office struct {
	clerk, desk *control.Client
	pid         int    // the clerk's
	state       string // the clerk's folder
	log         *lines // of the clerk
	env         []string
	root        string
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
skills: {file: {process: {command: [cat]}}}
-- clerk/capabilities.yaml --
version: 1
agent: agent://clerk
transports: [{kind: nats, servers: ["SERVER"], subjects: {requests: agents.clerk.requests}}]
capabilities: [{name: file}]
`

// openOffice starts both agents. Where the folder for the clerk's state is "", it is
// like the desk's. more are further members of the clerk's entry in fleet.yaml.
func openOffice(t *testing.T, state string, more ...string) *office {
	t.Helper()
	dir, err := os.MkdirTemp("", "agentd") // sockets need short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if state == "" {
		state = filepath.Join(dir, "c")
	}
	o := &office{root: filepath.Join(dir, "fleet"), log: &lines{}}
	clerk := strings.Join(append([]string{"{id: clerk, path: ./clerk"}, more...), ", ") + "}"
	text := strings.NewReplacer("SERVER", natstest.Run(t, "").URL(), "CLERK", clerk).Replace(officeFiles)
	for _, file := range strings.Split(text, "\n-- ")[1:] {
		name, content, _ := strings.Cut(file, " --\n")
		path := filepath.Join(o.root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content+"\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	f, err := fleet.Load(o.root, fleet.LoadOptions{InspectOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	run := func(agent, state string, log *lines) (*control.Client, int) {
		vars := map[string]string{"XDG_STATE_HOME": state, "XDG_RUNTIME_DIR": filepath.Join(dir, "r")}
		env := append(os.Environ(), "XDG_STATE_HOME="+state, "XDG_RUNTIME_DIR="+vars["XDG_RUNTIME_DIR"])
		cmd := exec.Command("agentd", "run", "--fleet", o.root, "--agent", agent, "--log-format", "json")
		cmd.Env = env
		pid := log.start(t, cmd)
		paths, err := daemon.DefaultPaths(f.Name, f.Root, func(name string) string { return vars[name] })
		if err != nil {
			t.Fatal(err)
		}
		client := control.NewClient(paths.Socket(agent))
		t.Cleanup(client.Close)
		within(t, agent+" is ready", func() bool { return client.Ready(t.Context()) == nil })
		if agent == "clerk" {
			o.state, o.env = filepath.Dir(paths.Idempotency(agent)), env
		}
		return client, pid
	}
	o.clerk, o.pid = run("clerk", state, o.log)
	o.desk, _ = run("desk", filepath.Join(dir, "d"), &lines{})
	return o
}

// call makes one call of the desk to the clerk.
func (o *office) call(t *testing.T, key string) *rpc.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	result, err := o.desk.RequestAgent(ctx, rpc.Request{
		To: "agent://clerk", Capability: "file", Payload: json.RawMessage(`{}`), IdempotencyKey: key,
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// A fault stops calls with its name in their error, in one line of the log, in
// readiness and in status; and when it is over so is all of that, without a restart
// and without a call.
func TestFaults(t *testing.T) {
	for name, fault := range map[string]struct {
		state func(t *testing.T) string // nil for any folder
		cause string                    // of the calls' errors
		begin func(t *testing.T, o *office) (end func() error)
	}{
		"a full disk": {tmpfs, "disk-full", func(t *testing.T, o *office) func() error {
			return fill(t, o.state)
		}},
		"a limit for files": {nil, "io", func(t *testing.T, o *office) func() error {
			return limitFiles(t, o)
		}},
		"a folder that is gone": {nil, "io", func(t *testing.T, o *office) func() error {
			if err := os.Rename(o.state, o.state+"-away"); err != nil {
				t.Fatal(err)
			}
			return func() error { return os.Rename(o.state+"-away", o.state) }
		}},
		"a lock of another program": {nil, "busy", func(t *testing.T, o *office) func() error {
			return lockDatabase(t, filepath.Join(o.state, "audit.db"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state := ""
			if fault.state != nil {
				state = fault.state(t)
			}
			o := openOffice(t, state)
			if r := o.call(t, ""); r.Status != rpc.StatusOK {
				t.Fatalf("before: %+v", r.Error)
			}
			end := fault.begin(t, o)
			var refused *rpc.Result
			within(t, "calls are refused", func() bool {
				start := time.Now()
				r := o.call(t, "")
				if took := time.Since(start); took > 10*time.Second {
					t.Errorf("a call took %s", took)
				}
				refused = r
				return r.Status != rpc.StatusOK
			})
			want := fmt.Sprintf(`{"cause":%q}`, fault.cause)
			if e := refused.Error; e.Code != rpc.CodeAuditFailed || !e.Retryable || e.DetectedBy != "agent://clerk" || string(e.Details) != want ||
				!strings.HasPrefix(e.Message, "no record of the call can be kept: ") || strings.Contains(e.Message, o.state) {
				t.Errorf("the call's error is %+v, details %s", e, e.Details)
			}
			if err := o.clerk.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "audit-log: calls are refused: ") {
				t.Errorf("readiness: %v", err)
			}
			status := exec.Command("agentd", "fleet", "status", "-C", o.root)
			status.Env = o.env
			if out, _ := status.CombinedOutput(); !strings.Contains(string(out), "not-ready") || !strings.Contains(string(out), "calls are refused") {
				t.Errorf("status: %s", out)
			}
			if err := end(); err != nil {
				t.Fatal(err)
			}
			within(t, "the clerk is ready again", func() bool { return o.clerk.Ready(t.Context()) == nil })
			if r := o.call(t, ""); r.Status != rpc.StatusOK {
				t.Errorf("after: %+v", r.Error)
			}
			o.wantOneLineEach(t, "audit-log", fault.cause)
			o.stop(t)
			verify := exec.Command("agentd", "audit", "verify", "-C", o.root, "--agent", "clerk")
			verify.Env = o.env
			if out, err := verify.CombinedOutput(); err != nil {
				t.Errorf("verify: %v, %s", err, out)
			}
		})
	}
}

// A store of answers that takes none refuses requests with a key, and no others.
func TestFaultsOfTheIdempotencyStore(t *testing.T) {
	for name, fault := range map[string]struct {
		state func(t *testing.T) string // nil for any folder
		cause string
		begin func(t *testing.T, o *office) (end func() error)
	}{
		"a full disk": {tmpfs, "disk-full", func(t *testing.T, o *office) func() error { return fill(t, o.state) }},
		"a lock of another program": {nil, "busy", func(t *testing.T, o *office) func() error {
			return lockDatabase(t, filepath.Join(o.state, "idempotency.db"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state := ""
			if fault.state != nil {
				state = fault.state(t)
			}
			o := openOffice(t, state, "auditDb: ./audit/clerk.db")
			for _, key := range []string{"", "k-1"} {
				if r := o.call(t, key); r.Status != rpc.StatusOK {
					t.Fatalf("%+v", r.Error)
				}
			}
			end := fault.begin(t, o)
			var r *rpc.Result
			within(t, "requests with a key are refused", func() bool {
				r = o.call(t, fmt.Sprint("k-", time.Now().UnixNano())) // a repetition would write nothing
				return r.Status != rpc.StatusOK
			})
			if e := r.Error; e.Code != rpc.CodeInternal || !e.Retryable || string(e.Details) != fmt.Sprintf(`{"cause":%q}`, fault.cause) ||
				!strings.Contains(e.Message, "store of answers") || strings.Contains(e.Message, o.state) {
				t.Errorf("with a key: %+v, %s", e, e.Details)
			}
			if err := o.clerk.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "idempotency-store: ") {
				t.Errorf("readiness: %v", err)
			}
			if r := o.call(t, ""); r.Status != rpc.StatusOK {
				t.Errorf("without a key: %+v", r.Error)
			}
			if err := end(); err != nil {
				t.Fatal(err)
			}
			within(t, "the clerk is ready again", func() bool { return o.clerk.Ready(t.Context()) == nil })
			if r := o.call(t, "k-2"); r.Status != rpc.StatusOK {
				t.Errorf("afterwards: %+v", r.Error)
			}
			o.wantOneLineEach(t, "idempotency-store", fault.cause)
			o.stop(t)
		})
	}
}

// wantOneLineEach checks what the clerk has logged of its trouble.
func (o *office) wantOneLineEach(t *testing.T, condition, code string) {
	t.Helper()
	var begun, over int
	for _, r := range o.log.records(t) {
		if r["condition"] != condition {
			continue
		}
		switch {
		case r["level"] == "ERROR" && r["code"] == code && r["cause"] != "" && r["remedy"] != "":
			begun++
		case r["level"] == "INFO" && r["lasted"] != nil && strings.HasPrefix(fmt.Sprint(r["msg"]), "over: "):
			over++
		default:
			t.Errorf("logged %v", r)
		}
	}
	if begun != 1 || over != 1 {
		t.Errorf("%d lines that it began and %d that it ended:\n%s", begun, over, o.log)
	}
}

// stop stops the clerk and waits for it.
func (o *office) stop(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(o.pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-o.log.ended; err != nil {
		t.Errorf("the clerk ended with %v: %s", err, o.log)
	}
}

// tmpfs mounts a small file system, where the system allows it.
func tmpfs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("no file system can be mounted here, which takes CAP_SYS_ADMIN (%v); the other faults need none", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// fill leaves no room on the file system of a folder.
func fill(t *testing.T, dir string) (end func() error) {
	t.Helper()
	name := filepath.Join(filepath.Dir(dir), "fill")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = file.Write(make([]byte, 512))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	_ = file.Close() // it is full
	return func() error { return os.Remove(name) }
}

// limitFiles lets no file of the clerk grow, as ulimit -f does.
func limitFiles(t *testing.T, o *office) (end func() error) {
	t.Helper()
	var before unix.Rlimit
	if err := unix.Prlimit(o.pid, unix.RLIMIT_FSIZE, nil, &before); err != nil {
		t.Fatal(err)
	}
	if err := unix.Prlimit(o.pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 4096, Max: before.Max}, nil); err != nil {
		t.Fatal(err)
	}
	return func() error { return unix.Prlimit(o.pid, unix.RLIMIT_FSIZE, &before, nil) }
}

// lockDatabase keeps others from writing to an SQLite file.
func lockDatabase(t *testing.T, path string) (end func() error) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	conn, err := db.Conn(t.Context())
	if err == nil {
		_, err = conn.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() error {
		_, err := conn.ExecContext(context.Background(), "ROLLBACK")
		return errors.Join(err, conn.Close(), db.Close())
	}
}

// within waits for what a process does in its own time. The bound is for machines that
// are busy with much else.
func within(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within a minute", what)
		}
		time.Sleep(10 * time.Millisecond) // between two looks at another process
	}
}

// lines are what a process writes to both of its outputs.
type lines struct {
	ended chan error // has the end of the process

	mu  sync.Mutex
	all []string // guarded by mu
}

// start starts a process that ends with the test.
func (l *lines) start(t *testing.T, cmd *exec.Cmd) (pid int) {
	t.Helper()
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = cmd.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	l.ended = make(chan error, 1)
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
	return cmd.Process.Pid
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

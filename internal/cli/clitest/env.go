package clitest

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/transport/nats"
)

// An Env is the environment of a command, with what the command writes.
type Env struct {
	cli.Env
	// Dir is the folder of the fleet.
	Dir      string
	Out, Err *Buffer
	// Vars are the environment variables. Those for state and sockets point
	// into folders of the test.
	Vars map[string]string
}

// New returns an environment in a fleet of its own, with the files of archive,
// a txtar file without comment. The format is table.
func New(t testing.TB, archive string) *Env {
	t.Helper()
	dir := t.TempDir()
	run, err := os.MkdirTemp("", "agentd") // t.TempDir is too long for the path of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(run) })
	e := &Env{Dir: dir, Out: &Buffer{}, Err: &Buffer{}, Vars: map[string]string{
		"XDG_STATE_HOME": filepath.Join(dir, "state"), "XDG_RUNTIME_DIR": run, "HOME": dir,
	}}
	e.Env = cli.Env{
		Stdin: strings.NewReader(""), Stdout: e.Out, Stderr: e.Err, Getenv: func(name string) string { return e.Vars[name] },
		FleetDir: dir, Format: output.Table,
	}
	for _, f := range txtar.Parse([]byte(archive)).Files {
		e.Write(t, f.Name, string(f.Data))
	}
	return e
}

// Write writes a file of the fleet.
func (e *Env) Write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(e.Dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Start runs the members of the fleet in this process until the test ends.
func (e *Env) Start(t testing.TB) *daemon.Fleet {
	t.Helper()
	f, err := e.LoadFleet(fleet.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	paths, err := e.Paths(f)
	if err != nil {
		t.Fatal(err)
	}
	running, err := daemon.StartFleet(t.Context(), daemon.Config{
		Fleet: f, Paths: paths, Logger: slog.New(slog.DiscardHandler), Version: "v1.2.3", NATS: nats.FromEnv(e.Getenv), Confines: e.Confines,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := running.Stop(ctx); err != nil {
			t.Errorf("stopping the fleet: %v", err)
		}
	})
	return running
}

// Reset forgets what was written, for the next command.
func (e *Env) Reset() {
	e.Out.Reset()
	e.Err.Reset()
}

// Code returns the exit status for the error of a command.
func Code(err error) int {
	code, _ := cli.ExitCode(err)
	return code
}

// A Buffer is a [bytes.Buffer] that several goroutines may use.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

// Write implements [io.Writer].
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String returns what was written since the last Reset.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Reset empties the buffer.
func (b *Buffer) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.b.Reset()
}

package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/internal/natstest"
)

// systemd listens to what a service tells, as systemd does.
func systemd(t *testing.T, dir string) (path string, heard <-chan string) {
	t.Helper()
	path = filepath.Join(dir, "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	all := make(chan string, 1000)
	done := make(chan struct{})
	go func() {
		defer close(done)
		buffer := make([]byte, 4096)
		for {
			n, err := socket.Read(buffer)
			if err != nil {
				return
			}
			all <- string(buffer[:n])
		}
	}()
	t.Cleanup(func() { _ = socket.Close(); <-done })
	return path, all
}

// next takes what systemd hears, up to something that begins so.
func next(t *testing.T, heard <-chan string, prefix string) {
	t.Helper()
	limit := time.After(20 * time.Second)
	for {
		select {
		case state := <-heard:
			if strings.HasPrefix(state, prefix) {
				return
			}
			if state != "WATCHDOG=1" {
				t.Fatalf("systemd heard %q, want %s", state, prefix)
			}
		case <-limit:
			t.Fatalf("systemd did not hear %s", prefix)
		}
	}
}

// systemd hears of the start, of reloads and of the end, and goes on hearing signs
// of life while the broker is away, or it would kill agents for nothing.
func TestSystemdHears(t *testing.T) {
	dir, err := os.MkdirTemp("", "agentd") // sockets need short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	server := natstest.Run(t, "")
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	contract := fmt.Sprintf("version: 1\nagent: agent://a\ntransports: [{kind: nats, servers: [%q], subjects: {requests: agents.a.requests}}]\ncapabilities: [{name: x}]\n", server.URL())
	write("fleet.yaml", "version: 1\nname: s\nagents: [{id: a, path: ./a}]\n")
	write("a/agent.yaml", "name: a\nskills: {x: {process: {command: [cat]}}}\n")
	write("a/capabilities.yaml", contract)
	path, heard := systemd(t, dir)
	env := map[string]string{
		"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "20000", "WATCHDOG_PID": fmt.Sprint(os.Getpid()),
		"XDG_STATE_HOME": filepath.Join(dir, "state"), "XDG_RUNTIME_DIR": filepath.Join(dir, "run"),
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stderr := &lockedBuffer{}
	a := &app{stdin: strings.NewReader(""), stdout: stderr, stderr: stderr, getenv: func(name string) string { return env[name] }}
	status := make(chan int, 1)
	go func() { status <- run(ctx, []string{"run", "--agent", "a", "--fleet", dir}, a) }()

	next(t, heard, "READY=1")
	next(t, heard, "WATCHDOG=1")
	write("a/capabilities.yaml", strings.Replace(contract, "{name: x}", "{name: x, timeoutMs: 1000}", 1))
	next(t, heard, "RELOADING=1\nMONOTONIC_USEC=")
	next(t, heard, "READY=1")

	server.Stop()
	sockets, err := filepath.Glob(filepath.Join(dir, "run", "agentd", "*", "a.sock"))
	if err != nil || len(sockets) != 1 {
		t.Fatalf("sockets %v, %v", sockets, err)
	}
	client := control.NewClient(sockets[0])
	defer client.Close()
	for deadline := time.Now().Add(30 * time.Second); client.Ready(t.Context()) == nil; {
		if time.Now().After(deadline) {
			t.Fatal("the agent is ready without its broker")
		}
		time.Sleep(5 * time.Millisecond) // between two looks at the agent
	}
	for len(heard) > 0 {
		<-heard // of before
	}
	for range 3 {
		next(t, heard, "WATCHDOG=1")
	}
	cancel()
	next(t, heard, "STOPPING=1")
	select {
	case code := <-status:
		if code != 0 {
			t.Errorf("exit status %d: %s", code, stderr)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the agent did not stop")
	}
}

// A lockedBuffer is written to by several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

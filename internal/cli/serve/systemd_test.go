package serve

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/internal/cli/clitest"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/natstest"
)

// systemd receives the notifications of a service, as systemd does.
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

// next waits for a notification with a prefix, passing over the watchdog.
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
				t.Fatalf("systemd got %q, want %s", state, prefix)
			}
		case <-limit:
			t.Fatalf("systemd did not get %s", prefix)
		}
	}
}

// systemd is informed of the start, of reloads and of the end. The watchdog
// notifications continue while the broker is away: without them systemd would
// kill agents for no fault of theirs.
func TestSystemd(t *testing.T) {
	server := natstest.Run(t, "")
	contract := fmt.Sprintf("version: 1\nagent: agent://a\ntransports: [{kind: nats, servers: [%q], subjects: {requests: agents.a.requests}}]\ncapabilities: [{name: x}]\n", server.URL())
	env := clitest.New(t, `
-- fleet.yaml --
version: 1
name: s
agents: [{id: a, path: ./a}]
-- a/agent.yaml --
name: a
skills: {x: {process: {command: [cat]}}}
`)
	env.Write(t, "a/capabilities.yaml", contract)
	path, heard := systemd(t, env.Vars["XDG_RUNTIME_DIR"])
	env.Vars["NOTIFY_SOCKET"], env.Vars["WATCHDOG_USEC"], env.Vars["WATCHDOG_PID"] = path, "20000", fmt.Sprint(os.Getpid())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- Agent(ctx, &env.Env, "a", true) }()

	next(t, heard, "READY=1")
	next(t, heard, "WATCHDOG=1")
	env.Write(t, "a/capabilities.yaml", strings.Replace(contract, "{name: x}", "{name: x, timeoutMs: 1000}", 1))
	next(t, heard, "RELOADING=1\nMONOTONIC_USEC=")
	next(t, heard, "READY=1")

	server.Stop()
	sockets, err := filepath.Glob(filepath.Join(env.Vars["XDG_RUNTIME_DIR"], "agentd", "*", "a.sock"))
	if err != nil || len(sockets) != 1 {
		t.Fatalf("sockets %v, %v", sockets, err)
	}
	client := control.NewClient(sockets[0])
	defer client.Close()
	eventually.Holds(t, "the agent has lost its broker", func() bool { return client.Ready(t.Context()) != nil })
	for len(heard) > 0 {
		<-heard // from before the broker stopped
	}
	for range 3 {
		next(t, heard, "WATCHDOG=1")
	}
	cancel()
	next(t, heard, "STOPPING=1")
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("%v: %s", err, env.Err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the agent did not stop")
	}
}

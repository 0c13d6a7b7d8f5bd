package daemon_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/internal/otlp"
)

// withWaiting is a fleet whose first members are reached by NATS alone, more of them than start at
// one time. The caller, which is the last one, needs no broker.
func withWaiting(t *testing.T, server string) (cfg daemon.Config, waiting []string) {
	t.Helper()
	all := files()
	members := ""
	for i := range 10 {
		id := fmt.Sprintf("far%d", i)
		waiting = append(waiting, id)
		members += "{id: " + id + ", path: ./" + id + "}, "
		all[id+"/agent.yaml"] = "name: " + id + "\nskills: {cat: {process: {command: [cat]}}}\n"
		all[id+"/capabilities.yaml"] = "version: 1\nagent: agent://" + id + "\ncapabilities: [{name: cat}]\n" +
			"transports: [{kind: nats, servers: ['" + server + "'], subjects: {requests: agents." + id + ".requests}}]\n"
	}
	all["fleet.yaml"] = strings.Replace(all["fleet.yaml"], "agents: [", "agents: ["+members, 1)
	cfg = withGo(load(t, all))
	cfg.AwaitBroker, cfg.Listen = true, "127.0.0.1:0"
	return cfg, waiting
}

// startingFleet starts a fleet beside the test. The channel receives the error of the start.
func startingFleet(ctx context.Context, cfg daemon.Config) (started chan *daemon.Fleet, failed chan error) {
	started, failed = make(chan *daemon.Fleet, 1), make(chan error, 1)
	go func() {
		f, err := daemon.StartFleet(ctx, cfg)
		started <- f
		failed <- err
	}()
	return started, failed
}

// Members that wait for their broker keep no other one from starting, and probes say from the
// beginning what each waits for.
func TestFleetStartsSideBySide(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "")
	server.Stop()
	cfg, waiting := withWaiting(t, server.URL())
	started, failed := startingFleet(t.Context(), cfg)
	caller := control.NewClient(cfg.Paths.Socket("caller"))
	t.Cleanup(caller.Close)
	eventually.Succeeds(t, "who needs no broker starts", func() error { return caller.Ready(t.Context()) })
	s, err := caller.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "all others say what they wait for", func() bool {
		_, text := fetch(t, s.Monitoring+"/readyz")
		return strings.Count(text, server.Addr()) == len(waiting)
	})
	for path, want := range map[string]int{"/livez": http.StatusOK, "/startupz": http.StatusServiceUnavailable, "/readyz": http.StatusServiceUnavailable} {
		got, body := fetch(t, s.Monitoring+path)
		if got != want || path == "/readyz" && (!strings.Contains(body, waiting[0]+": ") || strings.Contains(body, "caller: ")) {
			t.Errorf("%s: %d %q, want %d", path, got, body, want)
		}
	}

	server.Start()
	f := <-started
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	defer stop(t, f)
	for i, d := range f.Daemons {
		if want := cfg.Fleet.Members[i].ID; d.Member().ID != want {
			t.Errorf("the member %d is %s, and not %s as declared", i, d.Member().ID, want)
		}
	}
	for _, path := range []string{"/startupz", "/readyz"} {
		if got, body := fetch(t, s.Monitoring+path); got != http.StatusOK {
			t.Errorf("%s: %d %q", path, got, body)
		}
	}
}

// A member that cannot start ends the start of the fleet at once, also of members that wait, and so
// does the end of its context. Neither leaves an agent.
func TestFleetStartEnds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		broken bool
		says   string
	}{"a faulty member": {true, "agent callee: "}, "the context": {false, "context canceled"}} {
		cfg, waiting := withWaiting(t, "nats://127.0.0.1:1")
		if test.broken {
			cfg.Handlers = nil // nothing runs a capability of the callee
		}
		ctx, cancel := context.WithCancel(t.Context())
		_, failed := startingFleet(ctx, cfg)
		if !test.broken {
			far := control.NewClient(cfg.Paths.Socket(waiting[0]))
			eventually.Succeeds(t, "a member waits", func() error {
				_, err := far.Status(ctx)
				return err
			})
			far.Close()
			cancel()
		}
		if err := <-failed; err == nil || !strings.Contains(err.Error(), test.says) || strings.Count("\n"+err.Error(), "\nagent ") != 1 {
			t.Errorf("%s: the start ended with %v", name, err)
		}
		cancel()
		if running, err := cfg.Paths.Running(t.Context()); err != nil || len(running) != 0 {
			t.Errorf("%s: running %v, %v", name, running, err)
		}
	}
}

// The log of the process is that of all its agents: what of it was lost is counted once.
func TestLostLogsOfAFleetAreCountedOnce(t *testing.T) {
	t.Parallel()
	cfg := withGo(load(t, files()))
	cfg.Listen, cfg.LogsLost = "127.0.0.1:0", func() otlp.Dropped { return otlp.Dropped{Full: 7} }
	f := startFleet(t, cfg)
	defer stop(t, f)
	_, text := get(t, f.Daemons[0], "/metrics")
	const series = `agentd_telemetry_lost_total{agent="",reason="queue_full",signal="logs"} 7`
	if n := strings.Count(text, `reason="queue_full",signal="logs"`); n != 1 || !strings.Contains(text, series) {
		t.Errorf("%d series of lost logs, or not %s", n, series)
	}
}

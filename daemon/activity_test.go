package daemon_test

import (
	"context"
	"encoding/json"
	"reflect"
	"sync"
	"testing"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/rpc"
)

// activity asks an agent on its control socket.
func activity(t *testing.T, d *daemon.Daemon) control.Activity {
	t.Helper()
	client := control.NewClient(d.Socket())
	defer client.Close()
	a, err := client.Activity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Calls are counted at both ends, by peer and capability: those that run, those that wait, and
// those that have ended, with their latencies. No port is needed for that.
func TestActivity(t *testing.T) {
	t.Parallel()
	all := natsFiles(natstest.Run(t, "").URL())
	all["callee/agent.yaml"] = "name: callee\nskills: {cat: {process: {command: [cat]}}}\nlimits: {maxInFlight: 1}\n"
	cfg := load(t, all)
	begun, finish := make(chan struct{}, 3), make(chan struct{})
	cfg.Handlers = handle(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		begun <- struct{}{}
		<-finish
		return inv.Payload, nil
	})
	resume := sync.OnceFunc(func() { close(finish) })
	callee, caller := startAgent(t, cfg, "callee"), startAgent(t, cfg, "caller")
	t.Cleanup(resume)
	served := make(chan map[string]int)
	go func() { served <- burst(t, caller, 3) }()
	<-begun
	for _, end := range []struct {
		d    *daemon.Daemon
		want control.InFlight
	}{
		{caller, control.InFlight{Role: rpc.RoleCaller, Peer: "agent://callee", Capability: "go", Running: 3}},
		{callee, control.InFlight{Role: rpc.RoleCallee, Peer: "agent://caller", Capability: "go", Running: 1, Waiting: 2}},
	} {
		eventually.Holds(t, "the calls in flight are shown", func() bool {
			return reflect.DeepEqual(activity(t, end.d).InFlight, []control.InFlight{end.want})
		})
	}
	if a := activity(t, callee); len(a.RoundTrips) != 1 || a.RoundTrips[0].Broker != "nats" || a.RoundTrips[0].Milliseconds <= 0 || a.Status.Agent != "agent://callee" {
		t.Errorf("round trips %+v of %s", a.RoundTrips, a.Status.Agent)
	}
	resume()
	if counts := <-served; counts[""] != 3 {
		t.Fatalf("the calls ended as %v", counts)
	}
	for _, d := range []*daemon.Daemon{callee, caller} {
		// A callee counts when it has replied.
		eventually.Holds(t, "the calls have ended", func() bool {
			a := activity(t, d)
			if len(a.Calls) != 1 || len(a.InFlight) != 0 {
				return false
			}
			var timed uint64
			for _, b := range a.Calls[0].Latencies {
				timed += b.Calls
			}
			return a.Calls[0].Calls == 3 && timed == 3 && a.Calls[0].Failed == nil
		})
	}
}

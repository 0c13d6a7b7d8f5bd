package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats"
)

// keys adds keys to the capability go of the callee.
func keys(all map[string]string, text string) map[string]string {
	all["callee/capabilities.yaml"] = strings.Replace(all["callee/capabilities.yaml"], "  - name: go\n", "  - name: go\n"+text, 1)
	return all
}

// burst makes n calls at once and counts how they end, "" being well.
func burst(t testing.TB, d *daemon.Daemon, n int) map[string]int {
	t.Helper()
	ends := make(chan string, n)
	var calls sync.WaitGroup
	for range n {
		calls.Go(func() {
			end := ""
			if err := callGo(t, d, `{"n":1}`); err != nil {
				end = rpc.CodeOf(err).String()
			}
			ends <- end
		})
	}
	calls.Wait()
	close(ends)
	counts := map[string]int{}
	for end := range ends {
		counts[end]++
	}
	return counts
}

// A thousand calls at once to a fast skill are all served, whatever bounds how many of
// them run at once.
func TestBurst(t *testing.T) {
	server := natstest.Run(t, "")
	for name, concurrency := range map[string]string{"by default": "", "one at once": "    concurrency: 1\n"} {
		t.Run(name, func(t *testing.T) {
			cfg := load(t, keys(natsFiles(server.URL()), concurrency))
			var running, most atomic.Int32
			cfg.Handlers = handle(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
				defer running.Add(-1)
				for n, old := running.Add(1), most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
				}
				return inv.Payload, nil
			})
			callee, caller := startAgent(t, cfg, "callee"), startAgent(t, cfg, "caller")
			if counts := burst(t, caller, 1000); counts[""] != 1000 {
				t.Errorf("the calls ended as %v", counts)
			}
			if concurrency != "" && most.Load() != 1 {
				t.Errorf("%d ran at once", most.Load())
			}
			eventually.Holds(t, "all have ended", func() bool { return callee.Status().Requests == 1000 })
			s := callee.Status()
			if len(s.Capabilities) != 1 || s.Capabilities[0] != (control.CapabilityLoad{Capability: "go"}) || s.Dropped != 0 {
				t.Errorf("load %+v, %d dropped", s.Capabilities, s.Dropped)
			}
		})
	}
}

// What finds the queue full is refused at once. Status and readiness say so until the
// queue has been served, and a reload changes the bounds.
func TestFullQueue(t *testing.T) {
	all := natsFiles(natstest.Run(t, "").URL())
	const callee = "name: callee\nskills: {cat: {process: {command: [cat]}}}\nlimits: {maxInFlight: %d, maxQueued: %d}\n"
	all["callee/agent.yaml"] = fmt.Sprintf(callee, 1, 2)
	cfg := load(t, all)
	begun, finish := make(chan struct{}, 100), make(chan struct{})
	cfg.Handlers = handle(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		begun <- struct{}{}
		<-finish
		return inv.Payload, nil
	})
	resume := sync.OnceFunc(func() { close(finish) })
	d, caller := startAgent(t, cfg, "callee"), startAgent(t, cfg, "caller")
	t.Cleanup(resume)
	served := make(chan map[string]int)
	go func() { served <- burst(t, caller, 3) }()
	<-begun
	eventually.Holds(t, "two wait", func() bool { s := d.Status(); return len(s.Capabilities) == 1 && s.Capabilities[0].Waiting == 2 })
	if counts := burst(t, caller, 5); counts[rpc.CodeBusy.String()] != 5 {
		t.Errorf("the calls ended as %v", counts)
	}
	s := d.Status()
	if l := s.Capabilities[0]; l.Running != 1 || l.Waiting != 2 || l.Refused != 5 || !l.Full {
		t.Errorf("load %+v", l)
	}
	if len(s.Conditions) != 1 || s.Conditions[0].Kind != health.Queue || !s.Ready || len(d.Warnings()) != 1 ||
		!strings.HasPrefix(d.Warnings()[0], "queue: requests of go are refused as busy: 1 run and 2 wait") {
		t.Errorf("conditions %+v, warnings %q, ready %v", s.Conditions, d.Warnings(), s.Ready)
	}
	rewrite(t, cfg, "callee/agent.yaml", fmt.Sprintf(callee, 3, 2))
	if err := d.Reload(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		<-begun // those that waited
	}
	resume()
	if counts := <-served; counts[""] != 3 {
		t.Errorf("the calls ended as %v", counts)
	}
	eventually.Holds(t, "the queue is empty", func() bool { return len(d.Warnings()) == 0 })
}

// A capability that hangs is left alone. Log, status, readiness and the error say so,
// and it ends by itself, by an operator's word, and by a reload.
func TestBreaker(t *testing.T) {
	all := keys(natsFiles(natstest.Run(t, "").URL()), "    timeoutMs: 1000\n")
	const settings = "name: caller\nbreaker: {threshold: 0.5, minCalls: 3, coolDownMs: %d}\n"
	all["caller/agent.yaml"] = fmt.Sprintf(settings, 60_000)
	cfg := load(t, all)
	var hang atomic.Bool
	cfg.Handlers = handle(func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		if hang.Load() {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return inv.Payload, nil
	})
	startAgent(t, cfg, "callee")
	cfg, log := logTo(cfg)
	caller := startAgent(t, cfg, "caller")
	open := func() {
		t.Helper()
		hang.Store(true)
		burst(t, caller, 5)
		if err := callGo(t, caller, `{"n":1}`); rpc.CodeOf(err) != rpc.CodeCircuitOpen {
			t.Fatalf("a call ended with %v", err)
		}
		hang.Store(false)
	}
	closed := func() {
		t.Helper()
		if err := callGo(t, caller, `{"n":1}`); err != nil {
			t.Error(err)
		}
		if w := caller.Warnings(); len(w) != 0 {
			t.Errorf("warnings %q", w)
		}
	}

	open()
	s := caller.Status()
	if len(s.Breakers) != 1 || s.Breakers[0].State != policy.BreakerOpen || s.Breakers[0].Peer != "agent://callee" || s.Breakers[0].Capability != "go" ||
		s.Breakers[0].Refused != 1 || s.Breakers[0].Cause == "" || time.Until(s.Breakers[0].Until) < 30*time.Second {
		t.Errorf("breakers %+v", s.Breakers)
	}
	if len(s.Conditions) != 1 || s.Conditions[0].Kind != health.Circuit || s.Conditions[0].Subject != "agent://callee/go" || !s.Ready ||
		len(caller.Warnings()) != 1 || !strings.Contains(caller.Warnings()[0], "calls to go of agent://callee are refused until ") {
		t.Errorf("conditions %+v, warnings %q", s.Conditions, caller.Warnings())
	}
	if text := log(); strings.Count(text, `level=ERROR msg="circuit open: calls are refused" agent=caller peer=agent://callee capability=go until=`) != 1 {
		t.Errorf("log:\n%s", text)
	}

	// By an operator's word.
	operator := control.NewClient(caller.Socket())
	defer operator.Close()
	for _, none := range []struct {
		peer       envelope.Address
		capability string
	}{{"agent://other", ""}, {"", "other"}} {
		if reset, err := operator.ResetBreakers(t.Context(), none.peer, none.capability); err != nil || len(reset) != 0 {
			t.Errorf("%+v: reset %+v, %v", none, reset, err)
		}
	}
	reset, err := operator.ResetBreakers(t.Context(), "agent://callee", "go")
	if err != nil || len(reset) != 1 || reset[0].State != policy.BreakerOpen || reset[0].Capability != "go" {
		t.Errorf("reset %+v, %v", reset, err)
	}
	closed()
	if text := log(); strings.Count(text, `level=INFO msg="circuit closed: calls are made again"`) != 1 || !strings.Contains(text, "refused=1 reset=true") {
		t.Errorf("log:\n%s", text)
	}

	// By itself, under settings that a reload brings.
	rewrite(t, cfg, "caller/agent.yaml", fmt.Sprintf(settings, 1))
	if err := caller.Reload(); err != nil {
		t.Fatal(err)
	}
	hang.Store(true)
	burst(t, caller, 5)
	hang.Store(false)
	eventually.Holds(t, "the breaker lets a call through", func() bool { return callGo(t, caller, `{"n":1}`) == nil })
	closed()

	// By a reload that turns breakers off.
	rewrite(t, cfg, "caller/agent.yaml", fmt.Sprintf(settings, 60_000))
	if err := caller.Reload(); err != nil {
		t.Fatal(err)
	}
	open()
	rewrite(t, cfg, "caller/agent.yaml", "name: caller\nbreaker: off\n")
	if err := caller.Reload(); err != nil {
		t.Fatal(err)
	}
	closed()
	if s := caller.Status(); len(s.Breakers) != 0 {
		t.Errorf("breakers %+v", s.Breakers)
	}
}

// One of three replicas takes its share of the requests and drops them. The other two
// are called all the time.
func TestSilentReplica(t *testing.T) {
	t.Parallel() // it waits more than it works
	server := natstest.Run(t, "")
	// Only what is dropped may take so long, on a busy machine too.
	cfg := load(t, keys(natsFiles(server.URL()), "    timeoutMs: 3000\n"))
	cfg.Handlers = handle(echo)
	for range 2 {
		startAgent(t, replicaOf(t, cfg, "test"), "callee")
	}
	silent, err := nats.Connect(t.Context(), nats.Options{Servers: []string{server.URL()}})
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if _, err := silent.Subscribe("agents.callee.requests", "agents.callee", func(transport.Message) {}); err != nil {
		t.Fatal(err)
	}
	caller := startAgent(t, cfg, "caller")
	total := map[string]int{}
	for range 2 {
		for end, n := range burst(t, caller, 100) {
			total[end] += n
		}
	}
	// The broker chooses at random: half of the calls at least are beyond chance.
	if total[""] < 100 || total[""]+total[rpc.CodeTimeout.String()] != 200 || total[rpc.CodeTimeout.String()] == 0 {
		t.Errorf("the calls ended as %v", total)
	}
}

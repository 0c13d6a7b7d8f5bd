package durable_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/transport/nats/durable"
)

// A cluster of three loses the leader of the streams while calls run: every one is
// answered, once, with its own answer.
func TestLeaderLoss(t *testing.T) {
	t.Parallel()
	servers := natstest.RunJetStreamCluster(t, 3)
	var urls []string
	for _, s := range servers {
		urls = append(urls, s.URL())
	}
	var mu sync.Mutex
	runs := map[string]int{}
	handler := func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		mu.Lock()
		defer mu.Unlock()
		runs[string(inv.Payload)]++
		return inv.Payload, nil
	}
	opts := durable.Options{Replicas: 3, AckWait: 2 * time.Second, Logger: slog.New(slog.DiscardHandler)}
	serve(t, opts, handler, urls...)
	serve(t, opts, handler, urls...)
	c := client(t, urls...)
	const calls = 200
	half := make(chan struct{})
	var begun atomic.Int64
	var callers sync.WaitGroup
	for worker := range 10 {
		callers.Go(func() {
			for i := worker; i < calls; i += 10 {
				if begun.Add(1) == calls/2 {
					close(half)
				}
				r, err := c.RequestAgent(t.Context(), request(i, rpc.ModeSync, 2*limit))
				if err != nil || string(r.Response) != fmt.Sprintf(`{"n":%d}`, i) {
					t.Errorf("call %d: %s, %v", i, r.Response, err)
				}
			}
		})
	}
	<-half
	for _, s := range servers {
		if s.LeadsStream("AGENTD_REQUESTS_callee_v2") {
			s.Stop()
			break
		}
	}
	callers.Wait()
	mu.Lock()
	defer mu.Unlock()
	again := 0
	for _, n := range runs {
		again += n - 1
	}
	if len(runs) != calls {
		t.Errorf("%d of %d calls were run", len(runs), calls)
	}
	// The stream of answers numbers what it stores: more numbers than calls would
	// be a second answer to one of them.
	for stream, want := range map[string]uint64{"AGENTD_RESULTS_callee_v2": calls, "AGENTD_DEAD_callee_v2": 0} {
		if state := stateOf(t, stream, urls...); state.Msgs != want || state.LastSeq != want {
			t.Errorf("%s holds %d messages of %d ever, and not %d", stream, state.Msgs, state.LastSeq, want)
		}
	}
	t.Logf("%d runs were repeated", again)
}

// stateOf asks a leader that may still be being elected.
func stateOf(t *testing.T, stream string, urls ...string) jetstream.StreamState {
	t.Helper()
	js, err := connect(t, urls...).JetStream()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for {
		asking, cancel := context.WithTimeout(ctx, time.Second)
		s, err := js.Stream(asking, stream)
		cancel()
		if err == nil {
			return s.CachedInfo().State
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

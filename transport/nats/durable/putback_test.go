package durable_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats/durable"
)

// Putting a request back uses up no attempt, however often it happens, at once or
// after a delay, on whichever replica; attempts that failed stay counted.
func TestPutBackUsesUpNoAttempt(t *testing.T) {
	t.Parallel()
	s := natstest.Run(t, "jetstream {}")
	opts := durable.Options{MaxDeliver: 3, FirstDelay: 10 * time.Millisecond}
	type seen struct {
		attempt int
		last    bool
		data    string
	}
	deliveries := make(chan seen, 100)
	var n atomic.Int64
	handle := func(d transport.Delivery) {
		deliveries <- seen{d.Attempt(), d.Last(), string(d.Data())}
		var err error
		switch i := n.Add(1); {
		case i == 6 || i == 12: // fails twice, between put-backs
			err = d.Retry()
		case i == 18:
			err = d.Done(context.Background())
		case i%2 == 0:
			err = d.PutBack(context.Background(), 20*time.Millisecond)
		default:
			err = d.PutBack(context.Background(), 0)
		}
		if err != nil {
			t.Error(err)
		}
	}
	for range 2 { // replicas
		defer takes(t, opts, handle, s.URL())()
	}
	c := client(t, s.URL())
	start(t, c, 1)
	first := ""
	for i := 1; i <= 18; i++ {
		got := <-deliveries
		if i == 1 {
			first = got.data
		}
		want := seen{attempt: 1 + (i-1)/6, data: first}
		want.last = want.attempt == 3
		if got != want {
			t.Fatalf("delivery %d: attempt %d, last %v; want attempt %d, last %v", i, got.attempt, got.last, want.attempt, want.last)
		}
	}
}

// Requests that wait for their turn behind a busy capability, and then fail once in a
// way that a retry mends, are served: waiting costs no attempt.
func TestOverloadThenOneFailure(t *testing.T) {
	t.Parallel()
	s := natstest.Run(t, "jetstream {}")
	refused := make(chan struct{}, 100)
	stop := takes(t, durable.Options{MaxDeliver: 2}, func(d transport.Delivery) {
		if err := d.PutBack(context.Background(), 0); err != nil {
			t.Error(err)
		}
		select {
		case refused <- struct{}{}:
		default:
		}
	}, s.URL())
	c := client(t, s.URL())
	id := start(t, c, 1)
	for range 5 {
		<-refused
	}
	stop()
	var runs atomic.Int64
	serve(t, durable.Options{MaxDeliver: 2}, func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		if runs.Add(1) == 1 {
			return nil, &rpc.SkillError{Message: "later", Retryable: true}
		}
		return inv.Payload, nil
	}, s.URL())
	if r, err := await(t, c, id); err != nil || !strings.Contains(string(r.Response), `"n":1`) || runs.Load() != 2 {
		t.Errorf("%+v, %v, after %d runs", r, err, runs.Load())
	}
}

package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats/durable"
)

// An asynchronous call outlives the callee, which is not there, and the caller,
// which is another process when it fetches the answer.
func TestAsyncCallOutlivesBothEnds(t *testing.T) {
	t.Parallel()
	s := natstest.Run(t, "jetstream {}")
	var runs atomic.Int64
	first := serve(t, durable.Options{}, echo(&runs), s.URL())
	first.stop()
	before := clientOf(t, &violations{}, s.URL())
	id := start(t, before, 7)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if r, err := before.Await(ctx, id); rpc.CodeOf(err) != rpc.CodeTimeout {
		t.Fatalf("nobody has answered yet: %+v, %v", r, err)
	}
	before.Close()
	s.Stop()
	s.Start()
	serve(t, durable.Options{}, echo(&runs), s.URL())
	after := client(t, s.URL())
	for range 2 { // it may be fetched again
		r, err := await(t, after, id)
		if err != nil || string(r.Response) != `{"n":7}` || r.CorrelationID != id {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	if runs.Load() != 1 {
		t.Errorf("the skill ran %d times", runs.Load())
	}
}

// A synchronous call to a durable capability is kept while the callee is away.
func TestSyncCallWaitsForTheCallee(t *testing.T) {
	t.Parallel()
	s := natstest.Run(t, "jetstream {}")
	var runs atomic.Int64
	serve(t, durable.Options{}, echo(&runs), s.URL()).stop()
	c := client(t, s.URL())
	done := make(chan *rpc.Result)
	go func() {
		r, _ := c.RequestAgent(t.Context(), request(1, rpc.ModeSync, limit))
		done <- r
	}()
	serve(t, durable.Options{}, echo(&runs), s.URL())
	if r := <-done; r.Status != rpc.StatusOK || r.Queued || string(r.Response) != `{"n":1}` {
		t.Errorf("%+v", r)
	}
}

// A caller that has given up is served no more: its request is refused for its
// deadline, not run.
func TestNoLateDelivery(t *testing.T) {
	t.Parallel()
	s := natstest.Run(t, "jetstream {}")
	var runs atomic.Int64
	serve(t, durable.Options{}, echo(&runs), s.URL()).stop()
	c := client(t, s.URL())
	if _, err := c.RequestAgent(t.Context(), request(1, rpc.ModeSync, 300*time.Millisecond)); rpc.CodeOf(err) != rpc.CodeTimeout {
		t.Fatal(err)
	}
	serve(t, durable.Options{}, echo(&runs), s.URL())
	id := start(t, c, 2)
	if _, err := await(t, c, id); err != nil {
		t.Fatal(err)
	}
	if runs.Load() != 1 {
		t.Errorf("the skill ran %d times: once for the caller that waits, and for the one that does not", runs.Load())
	}
}

// Which failures are tried again, which are answers, and what is kept of those
// that never went well.
func TestFailures(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	fail := func(err error) rpc.HandlerFunc {
		return func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
			runs.Add(1)
			return nil, err
		}
	}
	for _, test := range []struct {
		name    string
		handler rpc.HandlerFunc
		runs    int64
		code    rpc.Code
		letters int
	}{
		{"passing", fail(&rpc.SkillError{Message: "later", Retryable: true}), 3, rpc.CodeHandlerError, 1},
		{"final", fail(&rpc.SkillError{Message: "never"}), 1, rpc.CodeHandlerError, 0},
		{"bad output", func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
			runs.Add(1)
			return json.RawMessage(`{}`), nil
		}, 1, rpc.CodeSchemaViolation, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := natstest.Run(t, "jetstream {}")
			runs.Store(0)
			calleeAddr := serve(t, durable.Options{MaxDeliver: 3}, test.handler, s.URL())
			defer calleeAddr.stop()
			c := client(t, s.URL())
			_, err := await(t, c, start(t, c, 1))
			if rpc.CodeOf(err) != test.code || runs.Load() != test.runs {
				t.Errorf("%v after %d runs", err, runs.Load())
			}
			// The letter is written after the answer; stopping waits for both.
			calleeAddr.stop()
			letters := 0
			for l, err := range calleeAddr.mailbox.Letters(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				letters++
				if l.Request == nil || string(l.Request.Payload) != `{"n":1}` || l.Attempts != 3 || !strings.Contains(l.Reason, "HANDLER_ERROR after 3 attempts: later") || time.Since(l.Time) > time.Hour {
					t.Errorf("%+v", l)
				}
			}
			if letters != test.letters {
				t.Errorf("%d dead letters", letters)
			}
		})
	}
}

// While a skill runs longer than the broker waits for a sign of life, nobody else
// gets its request.
func TestLongRunsAreNotDeliveredTwice(t *testing.T) {
	t.Parallel()
	s := natstest.Run(t, "jetstream {}")
	var runs atomic.Int64
	slow := func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		runs.Add(1)
		select {
		case <-time.After(2 * time.Second): // longer than AckWait: this is what is tested
			return inv.Payload, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	opts := durable.Options{AckWait: 600 * time.Millisecond}
	serve(t, opts, slow, s.URL())
	serve(t, opts, slow, s.URL())
	c := client(t, s.URL())
	if _, err := await(t, c, start(t, c, 1)); err != nil {
		t.Fatal(err)
	}
	if runs.Load() != 1 {
		t.Errorf("the skill ran %d times", runs.Load())
	}
}

// What a replica cannot finish before it is stopped, another one takes at once.
func TestStoppedReplicaGivesBack(t *testing.T) {
	t.Parallel()
	s := natstest.Run(t, "jetstream {}")
	began := make(chan struct{}, 1)
	// The attempt that was given back is not counted: it is the only one.
	first := serve(t, durable.Options{MaxDeliver: 1}, func(ctx context.Context, _ *rpc.Invocation) (json.RawMessage, error) {
		began <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}, s.URL())
	c := client(t, s.URL())
	id := start(t, c, 1)
	<-began
	first.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		if err := first.inbox.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
	var runs atomic.Int64
	serve(t, durable.Options{MaxDeliver: 1}, echo(&runs), s.URL()) // AckWait is 30 s: a request that was not given back would take that long
	asked := time.Now()
	if _, err := await(t, c, id); err != nil || time.Since(asked) > 25*time.Second {
		t.Errorf("%v, after %s", err, time.Since(asked))
	}
}

// A reply that breaks its schema is a violation for the caller as in any call.
func TestAwaitedAnswersAreValidated(t *testing.T) {
	t.Parallel()
	s := natstest.Run(t, "jetstream {}")
	conn := connect(t, s.URL())
	mailbox, err := durable.OpenMailbox(t.Context(), topic, durable.Options{Conn: conn, Agent: calleeAddr.ID()})
	if err != nil {
		t.Fatal(err)
	}
	// A callee that checks nothing.
	receiver, err := mailbox.Receive(topic, 1, func(d transport.Delivery) {
		e, err := envelope.Decode(d.Data())
		if err != nil {
			t.Error(err)
			return
		}
		reply := envelope.Envelope{
			Kind: envelope.Response, MessageID: "m-1", CorrelationID: e.CorrelationID, CausedBy: e.MessageID, From: calleeAddr, To: callerAddr,
			Capability: e.Capability, Payload: json.RawMessage(`{"ok":true,"data":{"n":"seven"}}`), Auth: envelope.Auth{Kind: envelope.AuthInternal},
		}
		data, err := reply.EncodeChecked()
		if err == nil {
			key := transport.CallKey{Caller: e.From, Callee: calleeAddr, CorrelationID: e.CorrelationID}
			err = errors.Join(d.Answer(t.Context(), key, data), d.Answer(t.Context(), key, []byte("another")), d.Done(t.Context()))
		}
		if err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer receiver.Stop(context.Background())
	var audit violations
	c := clientOf(t, &audit, s.URL())
	r, err := await(t, c, start(t, c, 1))
	if rpc.CodeOf(err) != rpc.CodeSchemaViolation || r.SchemaSide != rpc.SideResponse || audit.n.Load() != 1 {
		t.Errorf("%+v, %v, %d records", r, err, audit.n.Load())
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	with, without := natstest.Run(t, "jetstream {}"), natstest.Run(t, "")
	async := request(1, rpc.ModeAsync, 0)
	plain := async
	plain.Capability = "plain"
	code := func(c *caller.Client, r rpc.Request) rpc.Code {
		_, err := c.RequestAgent(t.Context(), r)
		return rpc.CodeOf(err)
	}
	if got := code(client(t, with.URL()), plain); got != rpc.CodeNeedsDurable {
		t.Errorf("a capability that is not durable: %v", got)
	}
	if got := code(client(t, with.URL()), request(1, rpc.ModeSync, limit)); got != rpc.CodeNoResponders {
		t.Errorf("a callee that never was there: %v", got)
	}
	if got := code(client(t, without.URL()), async); got != rpc.CodePublishFailed {
		t.Errorf("no JetStream: %v", got)
	}
	if _, err := await(t, client(t, with.URL()), "0190a0b0-0000-7000-8000-000000000000"); rpc.CodeOf(err) != rpc.CodeInvalidRequest {
		t.Errorf("a call that was not made: %v", err)
	}
	if _, err := await(t, client(t, with.URL()), "../ x"); rpc.CodeOf(err) != rpc.CodeInvalidRequest {
		t.Errorf("an id that cannot be: %v", err)
	}
	_, err := durable.OpenMailbox(t.Context(), topic, durable.Options{Conn: connect(t, without.URL()), Agent: calleeAddr.ID()})
	if !errors.Is(err, durable.ErrNoJetStream) {
		t.Errorf("a mailbox without JetStream: %v", err)
	}
}

package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/transport/nats/durable"
)

// A dead letter is put back with its body, and the new answer takes the place of
// the old one.
func TestRedriveAndDrop(t *testing.T) {
	t.Parallel()
	s := natstest.Run(t, "jetstream {}")
	var broken atomic.Bool
	broken.Store(true)
	m := serve(t, durable.Options{MaxDeliver: 1}, func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		if broken.Load() {
			return nil, &rpc.SkillError{Message: "down", Retryable: true}
		}
		return inv.Payload, nil
	}, s.URL())
	c := client(t, s.URL())
	ids := []string{start(t, c, 1), start(t, c, 2)}
	for _, id := range ids {
		if _, err := await(t, c, id); rpc.CodeOf(err) != rpc.CodeHandlerError {
			t.Fatal(err)
		}
	}
	numbers := map[string]uint64{}
	deadline := time.Now().Add(limit)
	for len(numbers) < 2 && time.Now().Before(deadline) { // the letter follows the answer
		for l, err := range m.mailbox.Letters(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			numbers[l.Request.CorrelationID] = l.Number
		}
	}
	broken.Store(false)
	if _, err := m.mailbox.Redrive(t.Context(), topic, numbers[ids[0]]); err != nil {
		t.Fatal(err)
	}
	if r, err := await(t, c, ids[0]); err != nil || string(r.Response) != `{"n":1}` {
		t.Errorf("after the redrive: %+v, %v", r, err)
	}
	if _, err := m.mailbox.Drop(t.Context(), numbers[ids[1]]); err != nil {
		t.Fatal(err)
	}
	for _, number := range []uint64{numbers[ids[0]], numbers[ids[1]], 99} {
		if _, err := m.mailbox.Redrive(t.Context(), topic, number); !errors.Is(err, durable.ErrNoLetter) {
			t.Errorf("letter %d: %v", number, err)
		}
	}
	for l := range m.mailbox.Letters(t.Context()) {
		t.Errorf("left: %+v", l)
	}
}

// What is no request is put aside with its body, and does not come again.
func TestPoison(t *testing.T) {
	t.Parallel()
	s := natstest.Run(t, "jetstream {}")
	var runs atomic.Int64
	m := serve(t, durable.Options{}, echo(&runs), s.URL())
	js, err := connect(t, s.URL()).JetStream()
	if err == nil {
		_, err = js.Publish(t.Context(), topic+".durable", []byte("no envelope"))
	}
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(limit)
	for time.Now().Before(deadline) {
		for l, err := range m.mailbox.Letters(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if string(l.Data) != "no envelope" || l.Request != nil {
				t.Errorf("%+v", l)
			}
			if _, err := m.mailbox.Redrive(t.Context(), topic, l.Number); !errors.Is(err, durable.ErrNoRequest) {
				t.Errorf("redriven: %v", err)
			}
			return
		}
	}
	t.Error("it was not put aside")
}

// A forged letter whose correlation id is a wildcard stands for no call: to redrive it
// removes nobody's answers.
func TestRedriveKeepsTheAnswersToOthers(t *testing.T) {
	t.Parallel()
	s := natstest.Run(t, "jetstream {}")
	var runs atomic.Int64
	m := serve(t, durable.Options{}, echo(&runs), s.URL())
	c := client(t, s.URL())
	id := start(t, c, 1)
	if _, err := await(t, c, id); err != nil {
		t.Fatal(err)
	}
	js, err := connect(t, s.URL()).JetStream()
	if err != nil {
		t.Fatal(err)
	}
	wildcards := []string{">", "*"}
	for _, wildcard := range wildcards {
		forged := envelope.Envelope{
			Kind: envelope.Request, MessageID: "m", CorrelationID: wildcard, From: callerAddr, To: calleeAddr, Capability: "count",
			Auth: envelope.Auth{Kind: envelope.AuthInternal},
		}
		data, err := forged.Encode()
		if err == nil {
			_, err = js.Publish(t.Context(), topic+".durable", data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range letters(t, m.mailbox, len(wildcards)) {
		if _, err := m.mailbox.Redrive(t.Context(), topic, l.Number); !errors.Is(err, durable.ErrNoRequest) {
			t.Errorf("%+v: %v, want ErrNoRequest", l.Request, err)
		}
	}
	if r, err := await(t, c, id); err != nil || string(r.Response) != `{"n":1}` {
		t.Errorf("the answer to the genuine call: %+v, %v", r, err)
	}
}

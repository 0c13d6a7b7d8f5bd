package callee_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
	"github.com/agentd/agentd/rpc/internal/wire"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/memory"
)

// A faultyTransport refuses one topic, and its subscriptions fail when they close.
type faultyTransport struct {
	transport.Transport
	refused     string
	err         error
	open        map[string]bool
	closeErrors map[string]error // by topic
}

func (f *faultyTransport) Subscribe(topic, group string, h transport.Handler) (transport.Subscription, error) {
	if topic == f.refused {
		return nil, f.err
	}
	s, err := f.Transport.Subscribe(topic, group, h)
	f.open[topic] = true
	return faultySubscription{s, f, topic}, err
}

type faultySubscription struct {
	transport.Subscription
	from  *faultyTransport
	topic string
}

func (s faultySubscription) Close() error {
	delete(s.from.open, s.topic)
	return errors.Join(s.Subscription.Close(), s.from.closeErrors[s.topic])
}

// A crowded transport has no room for any request.
type crowded struct{ *memory.Conn }

func (c crowded) SubscribeOverflow(topic, group string, _, overflow transport.Handler) (transport.Subscription, error) {
	return c.Subscribe(topic, group, overflow)
}

// A request that nobody has time for is refused as busy, and says when to come again. It
// runs nothing, and it gets no answer unless it proves its sender and names a topic of
// the sender's: otherwise a stranger could have the agent publish wherever it likes.
func TestOverflowingRequests(t *testing.T) {
	const victim = "agents.victim.requests"
	for name, test := range map[string]struct {
		change  func(*envelope.Envelope)
		sign    bool
		raw     string // instead of the request
		twice   bool
		busy    int    // replies
		refused string // proofs
		calls   int    // access records
	}{
		"proven":               {sign: true, busy: 1, calls: 1},
		"not proven":           {refused: "callee missing-auth"},
		"repeated":             {sign: true, twice: true, busy: 1, refused: "callee replayed", calls: 1},
		"a foreign topic":      {change: func(e *envelope.Envelope) { e.ReplyTo = "memory://" + victim }, sign: true, refused: "callee foreign-reply"},
		"an event":             {change: func(e *envelope.Envelope) { e.Kind, e.ReplyTo = envelope.Event, "" }, sign: true, calls: 1},
		"a response":           {change: func(e *envelope.Envelope) { e.Kind = envelope.Response }, sign: true},
		"on another transport": {change: func(e *envelope.Envelope) { e.ReplyTo = "kafka://x" }, sign: true, calls: 1},
		"no envelope":          {raw: `{"version":2,"kind":"request","correlationId":"c-1","from":"agent://concierge","replyTo":"memory://` + victim + `"}`, calls: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const topic = "agents.pr-reviewer.crowded"
				counted, calls := &runs{skill: rpctest.Answers(rpctest.ValidAnswer)}, &rpctest.Calls{}
				proofs, refusals := rpctest.Proven(t)
				w := rpctest.NewWorld(t, counted, proofs, func(_ *caller.Config, ic *callee.Config) { ic.Records.Access = calls })
				if err := w.Inbox.Listen(crowded{w.CalleeConn}, topic); err != nil {
					t.Fatal(err)
				}
				misled := make(chan transport.Message, 9)
				if _, err := w.CallerConn.Subscribe(victim, "", func(m transport.Message) { misled <- m }); err != nil {
					t.Fatal(err)
				}
				f := rpctest.NewForeignCaller(t, w)
				e := f.Request()
				if e.From = rpctest.Concierge; test.change != nil {
					test.change(e)
				}
				data := []byte(test.raw)
				if test.raw == "" {
					data = encode(t, e)
				}
				if test.sign {
					var err error
					if data, err = e.EncodeSigned(rpctest.Keyring(t, rpctest.Concierge, rpctest.Reviewer)); err != nil {
						t.Fatal(err)
					}
				}
				for range 1 + map[bool]int{true: 1}[test.twice] {
					if err := w.CallerConn.Publish(t.Context(), transport.Message{Topic: topic, Data: data}); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
				if counted.Load() != 0 || len(misled) != 0 || len(f.Replies) != test.busy || refusals.Proofs() != test.refused || len(calls.All()) != test.calls {
					t.Fatalf("%d runs, %d misled, %d replies, refused %q, %d records",
						counted.Load(), len(misled), len(f.Replies), refusals.Proofs(), len(calls.All()))
				}
				if test.busy > 0 {
					_, err := wire.ParseReply((<-f.Replies).Payload)
					if err == nil || err.Code != rpc.CodeBusy || err.RetryIn != time.Second || !strings.Contains(string(err.Details), `"retry_after_seconds":1`) {
						t.Errorf("reply %+v", err)
					}
				}
			})
		})
	}
}

// An inbox that cannot have all its topics keeps none of them, and reports both why
// and what went wrong when it gave the others back.
func TestListenFails(t *testing.T) {
	const control, capabilities = rpctest.Topic + ".control", rpctest.Topic + ".capabilities"
	denied, stuck, lost := errors.New("denied"), errors.New("stuck"), errors.New("lost")
	for _, test := range []struct {
		refused     string
		closeErrors map[string]error
		want        []error
	}{
		{control, nil, []error{denied}},
		{capabilities, map[string]error{control: stuck}, []error{denied, stuck}},
		{rpctest.Topic, nil, []error{denied}},
		{rpctest.Topic, map[string]error{control: stuck, capabilities: lost}, []error{denied, stuck, lost}},
		{rpctest.Topic, map[string]error{capabilities: lost}, []error{denied, lost}},
	} {
		conn := memory.NewBus(memory.Options{}).Connect()
		defer func() { _ = conn.Close() }()
		f := &faultyTransport{Transport: conn, refused: test.refused, err: denied, open: map[string]bool{}, closeErrors: test.closeErrors}
		in, err := callee.New(callee.Config{
			Self: rpctest.Reviewer, Contract: rpctest.Document(t, rpctest.Contract), Records: rpc.Records{Auditor: &rpctest.Violations{}},
			Handlers: map[string]rpc.Handler{"review-pr": rpctest.Answers(`1`), "loose": rpctest.Answers(`1`)},
		})
		if err != nil {
			t.Fatal(err)
		}
		err = in.Listen(f, rpctest.Topic)
		for _, want := range []error{denied, stuck, lost} {
			wanted := false
			for _, w := range test.want {
				wanted = wanted || w == want
			}
			if errors.Is(err, want) != wanted {
				t.Errorf("%s refused: %v: %v, want %v", test.refused, err, !wanted, wanted)
			}
		}
		if err == nil || !strings.HasPrefix(err.Error(), "callee: ") {
			t.Errorf("%s refused: %v", test.refused, err)
		}
		if len(f.open) != 0 {
			t.Errorf("%s refused: %v stay subscribed", test.refused, f.open)
		}
		if err := in.Shutdown(t.Context()); err != nil { // it has nothing to close
			t.Errorf("%s refused: then %v", test.refused, err)
		}
	}
}

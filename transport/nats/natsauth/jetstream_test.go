package natsauth_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats/durable"
	"github.com/agentd/agentd/transport/nats/natsauth"
	"github.com/agentd/agentd/transport/nats/once"
	"github.com/agentd/agentd/transport/nats/quota"
)

// Replicas of an agent share their limits on a server with its rules, and no
// other agent can touch them.
func TestSharedLimits(t *testing.T) {
	rules, conf, keys := derive(t, load(t,
		member{id: "team.notes", subject: "agents.team.notes.requests", shared: true},
		member{id: "other", subject: "agents.other.requests", shared: true},
	))
	s := &stage{t: t, url: natstest.Run(t, conf+"\njetstream {}\n").URL(), keys: keys}
	s.provision(rules)
	c := &capability.Capability{Name: "s", RateLimit: &capability.RateLimit{Requests: 3, Burst: 3, Period: time.Hour, Shared: true}}
	limiter := func(as, of string, log io.Writer) *quota.Limiter {
		js, err := s.jetStream(as).JetStream()
		if err != nil {
			t.Fatal(err)
		}
		return quota.New(quota.Options{
			JetStream: js, Provisioned: true, Bucket: natsauth.LimitsBucket(of), Local: policy.NewRateLimiter(0), Timeout: 5 * time.Second,
			Logger: slog.New(slog.NewTextHandler(log, nil)),
		})
	}
	var text bytes.Buffer
	replicas := []*quota.Limiter{limiter("team.notes", "team.notes", &text), limiter("team.notes", "team.notes", &text)}
	allowed := 0
	for i := range 10 {
		if replicas[i%2].Take("agent://desk", "", c, time.Now()).Allowed {
			allowed++
		}
	}
	if allowed != 3 || text.Len() > 0 {
		t.Errorf("%d calls of 3 were allowed: %s", allowed, text.String())
	}
	intruder, err := s.jetStream("other").JetStream()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond) // what is denied is never answered
	defer cancel()
	if err := intruder.DeleteKeyValue(ctx, natsauth.LimitsBucket("team.notes")); err == nil {
		t.Error("another agent could delete the bucket")
	}
}

// Replicas of an agent share what they have served on a server with its rules, of each
// supported version, and no other agent has a part in it.
func TestSharedAnswers(t *testing.T) {
	t.Parallel()
	rules, conf, keys := derive(t, load(t,
		member{id: "team.notes", subject: "agents.team.notes.requests", once: true},
		member{id: "other", subject: "agents.other.requests", once: true},
	))
	natstest.EachVersion(t, conf+"\njetstream {}\n", func(t *testing.T, url string) {
		s := &stage{t: t, url: url, keys: keys}
		s.provision(rules)
		options := func(as, bucket string) once.Options {
			js, err := s.jetStream(as).JetStream()
			if err != nil {
				t.Fatal(err)
			}
			return once.Options{
				JetStream: js, Provisioned: true, Bucket: bucket, Lease: time.Hour, MaxBytes: 1 << 20, Timeout: 20 * time.Second, Logger: slog.New(slog.DiscardHandler),
			}
		}
		answers := func(as, of string, change func(*once.Options)) *once.Answers {
			o := options(as, natsauth.AnswersBucket(of))
			change(&o)
			a := once.NewAnswers(o)
			t.Cleanup(func() { _ = a.Close() })
			return a
		}
		as := func(*once.Options) {}
		first, second := answers("team.notes", "team.notes", as), answers("team.notes", "team.notes", as)
		r := callee.KeyedRequest{From: "agent://desk", Capability: "s", Key: "k"}
		forgotten := r
		forgotten.Key = "forgotten"
		begin := func(a *once.Answers, r callee.KeyedRequest, want callee.PriorState) {
			t.Helper()
			if prior, err := a.Begin(t.Context(), r, [32]byte{1}, false); err != nil || prior.State != want {
				t.Errorf("%+v, %v", prior, err)
			}
		}
		begin(first, r, callee.PriorNone)
		begin(first, forgotten, callee.PriorNone)
		if err := errors.Join(first.Finish(t.Context(), r, []byte(`{"ok":true}`)), first.Forget(t.Context(), forgotten), first.Check(t.Context())); err != nil {
			t.Error(err)
		}
		begin(second, r, callee.PriorDone)
		begin(second, forgotten, callee.PriorNone)
		messages := once.NewMessages(options("team.notes", natsauth.MessagesBucket("team.notes")))
		for want := range 2 {
			if first, err := messages.Take(t.Context(), "agent://desk", "m", time.Now()); err != nil || first != (want == 0) {
				t.Errorf("taken for the first time: %v, %v", first, err)
			}
		}
		intruder := answers("other", "team.notes", func(o *once.Options) { o.Timeout = 300 * time.Millisecond }) // what is denied is never answered
		if prior, err := intruder.Begin(t.Context(), r, [32]byte{1}, true); err == nil {
			t.Errorf("another agent has got at the answers: %+v", prior)
		}
	})
}

// Calls are kept on a server with these rules, of each supported version; answers are for
// their caller alone.
func TestDurableCalls(t *testing.T) {
	t.Parallel()
	rules, conf, keys := derive(t, load(t,
		member{id: "desk", peers: []string{"team.notes agents.team.notes.requests"}},
		member{id: "spy", peers: []string{"team.notes agents.team.notes.requests"}},
		member{id: "team.notes", subject: "agents.team.notes.requests", durable: true},
	))
	natstest.EachVersion(t, conf+"\njetstream {}\n", func(t *testing.T, url string) {
		testDurableCalls(t, &stage{t: t, url: url, keys: keys}, rules)
	})
}

func testDurableCalls(t *testing.T, s *stage, rules *natsauth.Rules) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	calls := func(id string) *durable.Calls {
		c, err := durable.NewCalls(durable.Options{Conn: s.jetStream(id), Agent: id})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if err := calls("desk").Enqueue(ctx, "agent://team.notes", "agents.team.notes.requests", "m-0", nil); !errors.Is(err, transport.ErrNoQueue) {
		t.Errorf("before the streams are there: %v", err)
	}
	s.provision(rules)
	mailbox, err := durable.OpenMailbox(ctx, "agents.team.notes.requests", durable.Options{Conn: s.jetStream("team.notes"), Agent: "team.notes", MaxDeliver: 1})
	if err != nil {
		t.Fatal(err)
	}
	broken, redriven := 0, make(chan string, 1)
	key := transport.CallKey{Caller: "agent://desk", Callee: "agent://team.notes", CorrelationID: "c-1"}
	receiver, err := mailbox.Receive("agents.team.notes.requests", 1, func(d transport.Delivery) {
		if e, err := envelope.Decode(d.Data()); err == nil {
			end := d.Done
			switch broken++; broken {
			case 1:
				end = func(ctx context.Context) error { return d.PutBack(ctx, 0) } // MaxDeliver is 1: as a copy
			case 2:
				end = func(ctx context.Context) error { return d.DeadLetter(ctx, "for the test") }
			default:
				redriven <- e.MessageID
			}
			if err := end(ctx); err != nil {
				t.Error(broken, err)
			}
			return
		}
		answered, err := d.Answered(ctx, key)
		if err = errors.Join(err, d.Answer(ctx, key, []byte("an answer")), d.Done(ctx)); err != nil || answered {
			t.Error(answered, err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer receiver.Stop(context.Background())
	desk := calls("desk")
	if err := errors.Join(desk.Note(ctx, "c-1", []byte("a note")), desk.Enqueue(ctx, "agent://team.notes", "agents.team.notes.requests", "m-1", []byte("a request"))); err != nil {
		t.Fatal(err)
	}
	if answer, err := desk.Await(ctx, key, nil); err != nil || string(answer) != "an answer" {
		t.Errorf("%s, %v", answer, err)
	}
	if note, err := desk.Noted(ctx, "c-1"); err != nil || string(note) != "a note" {
		t.Errorf("%s, %v", note, err)
	}
	short, cancelShort := context.WithTimeout(t.Context(), 500*time.Millisecond) // what is denied is never answered
	defer cancelShort()
	if answer, err := calls("spy").Await(short, key, nil); err == nil {
		t.Errorf("somebody else got the answer %q", answer)
	}
	request := envelope.Envelope{
		Kind: envelope.Request, MessageID: "m-2", CorrelationID: "c-2", From: "agent://desk", To: "agent://team.notes", Capability: "s",
		Auth: envelope.Auth{Kind: envelope.AuthInternal},
	}
	data, err := request.EncodeChecked()
	if err != nil {
		t.Fatal(err)
	}
	if err := desk.Enqueue(ctx, "agent://team.notes", "agents.team.notes.requests", "m-2", data); err != nil {
		t.Fatal(err)
	}
	for letters := 0; letters == 0 && ctx.Err() == nil; {
		for l, err := range mailbox.Letters(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			letters++
			if _, err := mailbox.Redrive(ctx, "agents.team.notes.requests", l.Number); err != nil {
				t.Fatal(err)
			}
		}
	}
	select {
	case id := <-redriven:
		if id != "m-2" {
			t.Error(id)
		}
	case <-ctx.Done():
		t.Error("the letter did not come again")
	}
}

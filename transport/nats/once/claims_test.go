package once_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/transport/nats/once"
)

// An answer is remembered although somebody has deleted the bucket meanwhile.
func TestBucketIsEmptied(t *testing.T) {
	t.Parallel()
	url := natstest.Run(t, withJetStream).URL()
	a := replica(t, url, forever)
	begin(t, a, "k", false, callee.PriorNone)
	begin(t, a, "left", false, callee.PriorNone)
	js := jetStream(t, url)
	ok(t, js.DeleteKeyValue(t.Context(), "answers"))
	_, err := js.CreateKeyValue(t.Context(), once.AnswersConfig("answers", time.Hour, 1))
	ok(t, err)
	ok(t, a.Finish(t.Context(), request("k"), json.RawMessage(reply)))
	ok(t, a.Leave(t.Context(), request("left")))
	b := replica(t, url, forever)
	begin(t, b, "k", false, callee.PriorDone)
	begin(t, b, "left", false, callee.PriorBegun)
}

// A claim is there again, if somebody has deleted the bucket while the request runs.
func TestBucketIsEmptiedDuringARequest(t *testing.T) {
	t.Parallel()
	url := natstest.Run(t, withJetStream).URL()
	a := replica(t, url, 200*time.Millisecond)
	begin(t, a, "k", false, callee.PriorNone)
	js := jetStream(t, url)
	ok(t, js.DeleteKeyValue(t.Context(), "answers"))
	kv, err := js.CreateKeyValue(t.Context(), once.AnswersConfig("answers", time.Hour, 1))
	ok(t, err)
	eventually.Holds(t, "the claim is there again", func() bool {
		keys, err := kv.Keys(t.Context())
		return err == nil && len(keys) == 1
	})
	ok(t, a.Finish(t.Context(), request("k"), json.RawMessage(reply)))
	begin(t, replica(t, url, forever), "k", false, callee.PriorDone)
}

// The request of a replica that is gone is not run again, unless it may be. Then only
// the new answer counts.
func TestReplicaDies(t *testing.T) {
	t.Parallel()
	url := natstest.Run(t, withJetStream).URL()
	const lease = 200 * time.Millisecond
	var lines bytes.Buffer
	dead := replica(t, url, lease, func(o *once.Options) { o.Logger = slog.New(slog.NewTextHandler(&lines, nil)) })
	begin(t, dead, "k", false, callee.PriorNone)
	begin(t, dead, "other", false, callee.PriorNone)
	ok(t, dead.Close()) // it renews nothing any more, as if it were killed
	b, c := replica(t, url, forever), replica(t, url, forever)
	begin(t, b, "k", false, callee.PriorBegun)
	begin(t, c, "k", false, callee.PriorBegun)
	begin(t, b, "k", true, callee.PriorBegun)
	short, cancel := context.WithTimeout(t.Context(), 2*lease)
	defer cancel()
	if prior, err := c.Begin(short, request("k"), digest("x"), true); err == nil {
		t.Errorf("two replicas have taken over: %+v", prior)
	}
	err := dead.Finish(t.Context(), request("k"), json.RawMessage(`{"ok":true,"data":"late"}`))
	if e := new(once.Error); !errors.As(err, &e) || e.Cause != "" || !strings.Contains(err.Error(), "another one has taken") {
		t.Errorf("the late answer: %v", err)
	}
	ok(t, b.Finish(t.Context(), request("k"), json.RawMessage(reply)))
	if prior := begin(t, c, "k", false, callee.PriorDone); string(prior.Reply) != reply {
		t.Errorf("%s", prior.Reply)
	}
	// One that was only silent, and whose request nobody has taken over, still answers.
	begin(t, b, "other", false, callee.PriorBegun)
	ok(t, dead.Finish(t.Context(), request("other"), json.RawMessage(reply)))
	begin(t, b, "other", false, callee.PriorDone)
}

// A caller whose calls take less time than a lease, and which repeats them, learns in the
// end that nobody serves its request.
func TestShortCallsOutwaitALease(t *testing.T) {
	t.Parallel()
	url := natstest.Run(t, withJetStream).URL()
	const lease = time.Second
	dead, b := replica(t, url, lease), replica(t, url, forever)
	begin(t, dead, "k", false, callee.PriorNone)
	ok(t, dead.Close())
	waits := 0
	eventually.Holds(t, "the lease is over", func() bool {
		short, cancel := context.WithTimeout(t.Context(), lease/5)
		defer cancel()
		prior, err := b.Begin(short, request("k"), digest("x"), false)
		if err != nil {
			waits++
		}
		return err == nil && prior.State == callee.PriorBegun
	})
	if waits == 0 {
		t.Error("the lease was over at once")
	}
}

// A replica renews the claims of requests that run for long.
func TestRenewal(t *testing.T) {
	t.Parallel()
	url := natstest.Run(t, withJetStream).URL()
	a := replica(t, url, 100*time.Millisecond)
	begin(t, a, "k", true, callee.PriorNone)
	watcher, err := watch(t, url)
	ok(t, err)
	for range 4 {
		select {
		case <-watcher:
		case <-time.After(20 * time.Second):
			t.Fatal("the claim is not renewed")
		}
	}
	ok(t, a.Finish(t.Context(), request("k"), json.RawMessage(reply)))
	begin(t, replica(t, url, forever), "k", true, callee.PriorDone)
}

// Claims are renewed side by side: a server that is far away does not make many of them
// outlast their lease.
func TestRenewalsOverlap(t *testing.T) {
	t.Parallel()
	url := natstest.Run(t, withJetStream).URL()
	met := make(chan struct{})
	a := replica(t, url, 100*time.Millisecond, func(o *once.Options) {
		o.JetStream = pairing{o.JetStream, &pairedUpdates{meeting: make(chan struct{}), met: met}}
	})
	begin(t, a, "k", true, callee.PriorNone)
	begin(t, a, "other", true, callee.PriorNone)
	select {
	case <-met:
	case <-time.After(15 * time.Second):
		t.Error("each renewal waits for the one before")
	}
}

// pairing is JetStream with a bucket whose first update waits for a second one.
type pairing struct {
	jetstream.JetStream
	updates *pairedUpdates
}

func (p pairing) CreateOrUpdateKeyValue(ctx context.Context, c jetstream.KeyValueConfig) (jetstream.KeyValue, error) {
	kv, err := p.JetStream.CreateOrUpdateKeyValue(ctx, c)
	p.updates.KeyValue = kv
	return p.updates, err
}

type pairedUpdates struct {
	jetstream.KeyValue
	meeting chan struct{}
	met     chan struct{} // closed once two updates have been underway at once
}

func (p *pairedUpdates) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	select {
	case <-p.met:
	case p.meeting <- struct{}{}:
		close(p.met)
	case <-p.meeting:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	return p.KeyValue.Update(ctx, key, value, revision)
}

// watch hears of the changes of the bucket.
func watch(t *testing.T, url string) (<-chan jetstream.KeyValueEntry, error) {
	kv, err := jetStream(t, url).KeyValue(t.Context(), "answers")
	if err != nil {
		return nil, err
	}
	w, err := kv.WatchAll(t.Context(), jetstream.UpdatesOnly())
	if err != nil {
		return nil, err
	}
	return w.Updates(), nil
}

// An answer that is given while the server is away is stored when it is back.
func TestAnswerWhileTheServerIsAway(t *testing.T) {
	t.Parallel()
	s := natstest.Run(t, withJetStream)
	a := replica(t, s.URL(), time.Second, func(o *once.Options) { o.Timeout = 200 * time.Millisecond })
	begin(t, a, "k", false, callee.PriorNone)
	begin(t, a, "forgotten", false, callee.PriorNone)
	s.Stop()
	for _, err := range []error{
		a.Finish(t.Context(), request("k"), json.RawMessage(reply)), a.Forget(t.Context(), request("forgotten")), a.Check(t.Context()),
	} {
		if e := new(once.Error); !errors.As(err, &e) || e.Cause != once.CauseAway {
			t.Errorf("%v", err)
		}
	}
	s.Start()
	b := replica(t, s.URL(), forever)
	// A lease of a second: what is not stored by then is a request whose outcome nobody knows.
	eventually.Holds(t, "the answer is stored", func() bool {
		prior, err := b.Begin(t.Context(), request("k"), digest("x"), false)
		return err == nil && prior.State == callee.PriorDone && string(prior.Reply) == reply
	})
	eventually.Holds(t, "the other is forgotten", func() bool {
		prior, err := b.Begin(t.Context(), request("forgotten"), digest("x"), false)
		return err == nil && prior.State == callee.PriorNone
	})
	eventually.Holds(t, "the bucket works", func() bool { return a.Check(t.Context()) == nil })
}

// A request whose claim arrives although this replica has given up is not left claimed:
// it has not begun.
func TestClaimThatArrivesLate(t *testing.T) {
	t.Parallel()
	s := natstest.Run(t, withJetStream)
	proxy := natstest.NewProxy(t, s.Addr())
	a := replica(t, proxy.URL(), 200*time.Millisecond, func(o *once.Options) { o.Timeout = 500 * time.Millisecond })
	ok(t, a.Check(t.Context()))
	watcher, err := watch(t, s.URL())
	ok(t, err)
	proxy.Stall()
	_, err = a.Begin(t.Context(), request("k"), digest("x"), false)
	if e := new(once.Error); !errors.As(err, &e) || e.Cause != once.CauseAway {
		t.Fatalf("%v", err)
	}
	proxy.Resume()
	for _, want := range []jetstream.KeyValueOp{jetstream.KeyValuePut, jetstream.KeyValueDelete} {
		select {
		case entry := <-watcher:
			if entry.Operation() != want {
				t.Errorf("%s, want %s", entry.Operation(), want)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("no %s", want)
		}
	}
	begin(t, replica(t, s.URL(), forever), "k", false, callee.PriorNone)
}

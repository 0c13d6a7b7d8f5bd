package once_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/transport/nats"
	"github.com/agentd/agentd/transport/nats/once"
)

const (
	withJetStream = "jetstream { max_memory_store: 64MB, max_file_store: 256MB }\n"
	// forever is a lease that does not end within a test.
	forever = time.Hour
)

func jetStream(t testing.TB, url string) jetstream.JetStream {
	t.Helper()
	c, err := nats.Connect(t.Context(), nats.Options{Servers: []string{url}, ReconnectWait: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	js, err := c.JetStream()
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// replica is the store of one replica.
func replica(t testing.TB, url string, lease time.Duration, change ...func(*once.Options)) *once.Answers {
	t.Helper()
	o := once.Options{
		JetStream: jetStream(t, url), Bucket: "answers", TTL: time.Hour, Lease: lease, MaxBytes: 1 << 20, Timeout: 20 * time.Second,
		Logger: slog.New(slog.DiscardHandler),
	}
	for _, c := range change {
		c(&o)
	}
	a := once.NewAnswers(o)
	t.Cleanup(func() { _ = a.Close() })
	return a
}

func request(key string) callee.KeyedRequest {
	return callee.KeyedRequest{From: "agent://buyer", TenantID: "acme", Capability: "pay", Key: key}
}

func digest(payload string) [sha256.Size]byte { return sha256.Sum256([]byte(payload)) }

// begin begins a request, and demands a state.
func begin(t testing.TB, a *once.Answers, key string, repeatable bool, want callee.PriorState) callee.Prior {
	t.Helper()
	prior, err := a.Begin(t.Context(), request(key), digest("x"), repeatable)
	if err != nil || prior.State != want {
		t.Fatalf("%s: state %d, want %d: %v", key, prior.State, want, err)
	}
	return prior
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const reply = `{"ok":true,"data":{"receipt":  7}}`

// What one replica has done the others know, on every supported version of the server.
func TestReplicasShareAnswers(t *testing.T) {
	t.Parallel()
	natstest.EachVersion(t, withJetStream, func(t *testing.T, url string) {
		a, b := replica(t, url, forever), replica(t, url, forever)
		begin(t, a, "k", false, callee.PriorNone)
		ok(t, a.Finish(t.Context(), request("k"), json.RawMessage(reply)))
		if prior := begin(t, b, "k", false, callee.PriorDone); string(prior.Reply) != reply || prior.Digest != digest("x") {
			t.Errorf("%s, %x", prior.Reply, prior.Digest)
		}
		if prior, err := b.Begin(t.Context(), request("k"), digest("y"), true); err != nil || prior.Digest == digest("y") {
			t.Errorf("another payload: %+v, %v", prior, err)
		}
		for i, other := range []callee.KeyedRequest{
			{From: "agent://else", TenantID: "acme", Capability: "pay", Key: "k"}, {From: "agent://buyer", Capability: "pay", Key: "k"},
			{From: "agent://buyer", TenantID: "acme", Capability: "refund", Key: "k"}, {From: "agent://buyer", TenantID: "acmepay", Key: "k"},
		} {
			if prior, err := b.Begin(t.Context(), other, digest("x"), false); err != nil || prior.State != callee.PriorNone {
				t.Errorf("request %d is taken for another one: %+v, %v", i, prior, err)
			}
		}
		// What had no effect is forgotten, and what nobody knows is not waited for.
		begin(t, a, "forgotten", false, callee.PriorNone)
		ok(t, a.Forget(t.Context(), request("forgotten")))
		begin(t, b, "forgotten", false, callee.PriorNone)
		begin(t, a, "left", false, callee.PriorNone)
		ok(t, a.Leave(t.Context(), request("left")))
		begin(t, b, "left", false, callee.PriorBegun)
		begin(t, b, "left", true, callee.PriorBegun)
		ok(t, b.Finish(t.Context(), request("left"), json.RawMessage(reply)))
		begin(t, a, "left", false, callee.PriorDone)
		// The server itself forgets, whatever it knows of lifetimes.
		kv, err := jetStream(t, url).KeyValue(t.Context(), "answers")
		ok(t, err)
		status, err := kv.Status(t.Context())
		ok(t, err)
		if status.TTL() != time.Hour {
			t.Errorf("kept for %s", status.TTL())
		}
		for key := range keys(t, kv) {
			if strings.Contains(key, "buyer") || strings.Contains(key, "pay") {
				t.Errorf("the key %s says who called what", key)
			}
		}
	})
}

func keys(t *testing.T, kv jetstream.KeyValue) map[string]bool {
	t.Helper()
	lister, err := kv.ListKeys(t.Context())
	ok(t, err)
	all := map[string]bool{}
	for key := range lister.Keys() {
		all[key] = true
	}
	return all
}

// Of many that begin one request at many replicas, one runs it and the others get its
// answer.
func TestOneReplicaRuns(t *testing.T) {
	t.Parallel()
	natstest.EachVersion(t, withJetStream, func(t *testing.T, url string) {
		const replicas, rounds = 8, 10
		var all []*once.Answers
		for range replicas {
			all = append(all, replica(t, url, forever))
		}
		for round := range rounds {
			runOnOne(t, all, fmt.Sprint("k-", round))
		}
	})
}

// runOnOne begins a request at all replicas at once.
func runOnOne(t *testing.T, all []*once.Answers, key string) {
	t.Helper()
	var runs atomic.Int32
	var wg sync.WaitGroup
	for n, a := range all {
		wg.Go(func() {
			prior, err := a.Begin(t.Context(), request(key), digest("x"), n%2 == 0)
			switch {
			case err != nil:
				t.Error(err)
			case prior.State == callee.PriorNone:
				runs.Add(1)
				if err := a.Finish(t.Context(), request(key), json.RawMessage(reply)); err != nil {
					t.Error(err)
				}
			case prior.State != callee.PriorDone || string(prior.Reply) != reply:
				t.Errorf("%+v", prior)
			}
		})
	}
	wg.Wait()
	if runs.Load() != 1 {
		t.Errorf("%d replicas ran the request", runs.Load())
	}
}

// The same where several servers keep the bucket, and a read may be behind a write.
func TestOneReplicaRunsOnACluster(t *testing.T) {
	t.Parallel()
	servers := natstest.RunJetStreamCluster(t, 3)
	var all []*once.Answers
	for _, s := range servers {
		for range 2 {
			all = append(all, replica(t, s.URL(), forever, func(o *once.Options) { o.Replicas = 3 }))
		}
	}
	ok(t, all[0].Check(t.Context()))
	for round := range 5 {
		runOnOne(t, all, fmt.Sprint("k-", round))
	}
	messages := once.NewMessages(once.Options{JetStream: jetStream(t, servers[0].URL()), Bucket: "messages", Replicas: 3})
	for want := range 2 {
		if first, err := messages.Take(t.Context(), "agent://buyer", "m", time.Now()); err != nil || first != (want == 0) {
			t.Errorf("taken for the first time: %v, %v", first, err)
		}
	}
}

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
	until(t, "the claim is there again", func() bool {
		keys, err := kv.Keys(t.Context())
		return err == nil && len(keys) == 1
	})
	ok(t, a.Finish(t.Context(), request("k"), json.RawMessage(reply)))
	begin(t, replica(t, url, forever), "k", false, callee.PriorDone)
}

// While a replica serves a request the others wait, for as long as their callers do.
func TestWaitsForAnotherReplica(t *testing.T) {
	t.Parallel()
	url := natstest.Run(t, withJetStream).URL()
	a, b := replica(t, url, forever), replica(t, url, forever)
	begin(t, a, "k", true, callee.PriorNone)
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := b.Begin(short, request("k"), digest("x"), true)
	e := new(once.Error)
	if !errors.As(err, &e) || e.Cause != "" || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the bucket is blamed for a caller's deadline: %v", err)
	}
	got := make(chan callee.Prior, 1)
	go func() {
		prior, err := b.Begin(t.Context(), request("k"), digest("x"), true)
		if err != nil {
			t.Error(err)
		}
		got <- prior
	}()
	ok(t, a.Finish(t.Context(), request("k"), json.RawMessage(reply)))
	if prior := <-got; prior.State != callee.PriorDone || string(prior.Reply) != reply {
		t.Errorf("%+v", prior)
	}
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
	until(t, "the lease is over", func() bool {
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
	until(t, "the answer is stored", func() bool {
		prior, err := b.Begin(t.Context(), request("k"), digest("x"), false)
		return err == nil && prior.State == callee.PriorDone && string(prior.Reply) == reply
	})
	until(t, "the other is forgotten", func() bool {
		prior, err := b.Begin(t.Context(), request("forgotten"), digest("x"), false)
		return err == nil && prior.State == callee.PriorNone
	})
	until(t, "the bucket works", func() bool { return a.Check(t.Context()) == nil })
}

// until looks again and again, for a while.
func until(t testing.TB, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited for too long until %s", what)
		}
		time.Sleep(time.Millisecond) // between two looks
	}
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

// Nobody without the agent's key can make up an answer, or move one to another request.
func TestForgedAnswers(t *testing.T) {
	t.Parallel()
	url := natstest.Run(t, withJetStream).URL()
	with := func(secrets ...string) *once.Answers {
		return replica(t, url, forever, func(o *once.Options) {
			o.Secrets = func() (all [][]byte) {
				for _, s := range secrets {
					all = append(all, []byte(s))
				}
				return all
			}
		})
	}
	store := func(a *once.Answers, key string) {
		t.Helper()
		begin(t, a, key, false, callee.PriorNone)
		ok(t, a.Finish(t.Context(), request(key), json.RawMessage(reply)))
	}
	refused := func(a *once.Answers, key string) {
		t.Helper()
		prior, err := a.Begin(t.Context(), request(key), digest("x"), true)
		if e := new(once.Error); !errors.As(err, &e) || e.Cause != "" || !strings.Contains(err.Error(), "not sealed with a key of this agent") {
			t.Errorf("%s: %+v, %v", key, prior, err)
		}
	}
	before, now := with("old"), with("new", "old")
	store(before, "k")
	begin(t, now, "k", false, callee.PriorDone) // keys change while answers are kept
	store(now, "k-2")
	refused(before, "k-2")
	store(with(), "bare")
	refused(now, "bare")
	store(with("mallory"), "forged")
	refused(now, "forged")
	refused(with(), "k")
	// The answer to one request in the place of another.
	kv, err := jetStream(t, url).KeyValue(t.Context(), "answers")
	ok(t, err)
	known := keys(t, kv)
	begin(t, now, "claimed", false, callee.PriorNone)
	var answer []byte
	for key := range keys(t, kv) {
		if known[key] {
			entry, err := kv.Get(t.Context(), key)
			ok(t, err)
			answer = entry.Value()
		}
	}
	for key := range keys(t, kv) {
		if !known[key] {
			_, err := kv.Put(t.Context(), key, answer)
			ok(t, err)
		}
	}
	refused(with("new", "old", "mallory"), "claimed")
}

// What is too large for the server is refused before it is sent, and the claim stays.
func TestReplyTooLarge(t *testing.T) {
	t.Parallel()
	url := natstest.Run(t, withJetStream).URL()
	a := replica(t, url, forever)
	begin(t, a, "k", false, callee.PriorNone)
	if err := a.Finish(t.Context(), request("k"), make([]byte, 1<<20)); !errors.Is(err, callee.ErrReplyTooLarge) {
		t.Errorf("%v", err)
	}
	ok(t, a.Finish(t.Context(), request("k"), make([]byte, 1<<20-4096)))
}

// A bucket that is not there is found out, and used once an operator has made it.
func TestBucketIsMissing(t *testing.T) {
	t.Parallel()
	natstest.EachVersion(t, withJetStream, func(t *testing.T, url string) {
		a := replica(t, url, forever, func(o *once.Options) { o.Provisioned = true })
		_, err := a.Begin(t.Context(), request("k"), digest("x"), false)
		if e := new(once.Error); !errors.As(err, &e) || e.Cause != once.CauseMissing || !strings.Contains(err.Error(), "answers") {
			t.Errorf("%v", err)
		}
		_, err = jetStream(t, url).CreateKeyValue(t.Context(), once.AnswersConfig("answers", time.Hour, 1))
		ok(t, err)
		ok(t, a.Check(t.Context()))
		begin(t, a, "k", false, callee.PriorNone)
	})
	off := replica(t, natstest.Run(t, "").URL(), forever)
	if e := new(once.Error); !errors.As(off.Check(t.Context()), &e) || e.Cause != once.CauseMissing {
		t.Errorf("without JetStream: %v", e)
	}
}

// A server without room says so.
func TestServerIsFull(t *testing.T) {
	t.Parallel()
	url := natstest.Run(t, "jetstream { max_memory_store: 1MB, max_file_store: 64KB }\n").URL()
	a := replica(t, url, forever)
	var err error
	for i := 0; err == nil && i < 100; i++ {
		key := fmt.Sprint("k-", i)
		if _, err = a.Begin(t.Context(), request(key), digest("x"), false); err == nil {
			err = a.Finish(t.Context(), request(key), make([]byte, 16<<10))
		}
	}
	if e := new(once.Error); !errors.As(err, &e) || e.Cause != once.CauseFull {
		t.Errorf("%v", err)
	}
}

// What a keyed call costs more than one without a key.
func BenchmarkRequest(b *testing.B) {
	a := replica(b, natstest.Run(b, withJetStream).URL(), forever)
	for i := 0; b.Loop(); i++ {
		key := fmt.Sprint(i)
		begin(b, a, key, false, callee.PriorNone)
		if err := a.Finish(b.Context(), request(key), json.RawMessage(reply)); err != nil {
			b.Fatal(err)
		}
	}
}

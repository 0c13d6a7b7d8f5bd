package once_test

import (
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

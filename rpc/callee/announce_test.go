package callee_test

import (
	"context"
	"sync"
	"testing"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
	"github.com/agentd/agentd/rpc/internal/wire"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/memory"
)

// Callers that follow an agent hear what it serves whenever that has changed, be it
// only a version, and when a replica begins to listen.
func TestAnnouncements(t *testing.T) {
	answers := rpctest.Answers(rpctest.ValidAnswer)
	w := rpctest.NewWorld(t, answers)
	heard := make(chan string, 10)
	follow := func(peers ...rpc.Peer) {
		t.Helper()
		if err := w.Client.Follow(peers, func(peer envelope.Address, revision string) {
			if peer != rpctest.Reviewer {
				t.Errorf("heard of %s", peer)
			}
			heard <- revision
		}); err != nil {
			t.Fatal(err)
		}
	}
	reviewer := rpc.Peer{Address: rpctest.Reviewer, Transport: "memory", Topic: rpctest.Topic}
	follow(reviewer, rpc.Peer{Address: "agent://far", Transport: "nats", Topic: "x"})
	serve := func(since string) (revision string) {
		t.Helper()
		doc := rpctest.ContractWith(t, "    since: '"+since+"'\n")
		if err := w.Inbox.SetContract(doc, map[string]rpc.Handler{"review-pr": answers, "loose": answers}); err != nil {
			t.Fatal(err)
		}
		form := doc.Published()
		if _, err := form.JSON(); err != nil {
			t.Fatal(err)
		}
		return form.Revision
	}
	first := serve("1")
	if got := rpctest.Wait(t, heard); got != first {
		t.Errorf("heard %s, want %s", got, first)
	}
	serve("1") // nothing new
	// Neither what makes no sense nor what names another agent is heard.
	for _, forged := range []string{`{"agent":"agent://other","revision":"x"}`, `hello`} {
		if err := w.CallerConn.Publish(t.Context(), transport.Message{Topic: wire.ChangedTopic(rpctest.Topic), Data: []byte(forged)}); err != nil {
			t.Fatal(err)
		}
	}
	second := serve("2")
	if got := rpctest.Wait(t, heard); got != second || first == second {
		t.Errorf("heard %s, want %s", got, second)
	}
	if err := w.Inbox.Listen(w.CalleeConn, "elsewhere"); err != nil {
		t.Fatal(err)
	}
	follow(reviewer, rpc.Peer{Address: rpctest.Reviewer, Transport: "memory", Topic: "elsewhere"})
	third := serve("3")
	for range 2 { // on both topics
		if got := rpctest.Wait(t, heard); got != third {
			t.Errorf("heard %s, want %s", got, third)
		}
	}
	follow()
	serve("4")
	if len(heard) != 0 {
		t.Errorf("a peer that is followed no more is heard")
	}
}

// A reloading connection has the inbox serve something else while it announces what it
// serves.
type reloading struct {
	*memory.Conn
	reload func()
}

func (r *reloading) Publish(ctx context.Context, m transport.Message) error {
	if m.Topic == wire.ChangedTopic("elsewhere") {
		r.reload()
	}
	return r.Conn.Publish(ctx, m)
}

// A contract that changes while the inbox begins to listen is announced as well.
func TestAnnouncementDuringAReload(t *testing.T) {
	answers := rpctest.Answers(rpctest.ValidAnswer)
	w := rpctest.NewWorld(t, answers)
	doc := rpctest.ContractWith(t, "    since: '2'\n")
	form := doc.Published()
	if _, err := form.JSON(); err != nil {
		t.Fatal(err)
	}
	heard := map[string]bool{}
	s, err := w.CallerConn.Subscribe(wire.ChangedTopic("elsewhere"), "", func(m transport.Message) {
		if n, err := wire.ParseNotice(m.Data); err == nil {
			heard[n.Revision] = true
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	begun := false
	conn := &reloading{w.CalleeConn, func() {
		if begun { // this is the announcement that it causes
			return
		}
		begun = true
		if err := w.Inbox.SetContract(doc, map[string]rpc.Handler{"review-pr": answers, "loose": answers}); err != nil {
			t.Error(err)
		}
	}}
	if err := w.Inbox.Listen(conn, "elsewhere"); err != nil {
		t.Fatal(err)
	}
	if err := s.Drain(t.Context()); err != nil || !heard[form.Revision] {
		t.Errorf("heard %v and not %s: %v", heard, form.Revision, err)
	}
}

// A replica that serves something else than the caller's first digest serves the
// request all the same if the caller has proven its contract as well.
func TestDigestsOfOtherReplicas(t *testing.T) {
	for also, code := range map[string]rpc.Code{"": rpc.CodeSchemaStale, "sha256:other": rpc.CodeSchemaStale, "its own": 0} {
		doc := rpctest.Document(t, rpctest.Contract)
		c, _ := doc.Lookup("review-pr")
		if also == "its own" {
			also = "sha256:other " + c.Digest
		}
		w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), func(cc *caller.Config, _ *callee.Config) {
			cc.Checks.Gate = clearing{caller.Clearance{Digest: "sha256:older", Also: also}}
		})
		res := w.Call(t, rpctest.Request())
		want := rpc.StatusError
		if code == 0 {
			want = rpc.StatusOK
		}
		rpctest.WantStatus(t, res, want, code)
	}
}

// A clearing gate lets every call go on.
type clearing struct{ clearance caller.Clearance }

func (g clearing) Check(context.Context, caller.Probe) (caller.Clearance, error) {
	return g.clearance, nil
}

// A returning connection is lost and made again when the test says so.
type returning struct {
	*memory.Conn
	mu    sync.Mutex
	again chan struct{} // guarded by mu
}

func (r *returning) NextReconnect() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.again
}

func (r *returning) reconnect() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.again)
	r.again = make(chan struct{})
}

// An agent whose connection was lost announces itself when it is back, each time: callers
// may have cancelled calls meanwhile that wait in its queue.
func TestAnnouncementAfterALostConnection(t *testing.T) {
	w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer))
	heard := make(chan envelope.Address, 10)
	for _, topic := range []string{"elsewhere", rpctest.Topic} {
		if _, err := w.CallerConn.Subscribe(wire.ChangedTopic(topic), "", func(m transport.Message) {
			if n, err := wire.ParseNotice(m.Data); err == nil && topic == "elsewhere" {
				heard <- n.Agent
			} else {
				t.Errorf("heard %+v on %s: %v", n, topic, err)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	conn := &returning{Conn: w.CalleeConn, again: make(chan struct{})}
	if err := w.Inbox.Listen(conn, "elsewhere"); err != nil {
		t.Fatal(err)
	}
	for range 3 { // when it begins to listen, and after each reconnection
		if got := rpctest.Wait(t, heard); got != rpctest.Reviewer {
			t.Errorf("heard of %s", got)
		}
		conn.reconnect()
	}
}

package natsauth_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats"
	"github.com/agentd/agentd/transport/nats/durable"
	"github.com/agentd/agentd/transport/nats/natsauth"
	"github.com/agentd/agentd/transport/nats/once"
	"github.com/agentd/agentd/transport/nats/quota"
)

// A member of a test's fleet.
type member struct {
	id       string
	subject  string   // of its requests; "" offers nothing
	peers    []string // "id subject"
	noServer bool     // takes requests by memory instead
	shared   bool     // shares its rate limit between replicas
	tells    bool     // progress
	durable  bool     // keeps requests
	once     bool     // shares what it has served between replicas
}

func load(t testing.TB, members ...member) *fleet.Fleet {
	t.Helper()
	root := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	manifest := "version: 1\nname: test \"fleet\"\nagents:\n"
	for i, m := range members {
		dir := fmt.Sprintf("m%d", i)
		manifest += fmt.Sprintf("  - {id: %q, path: ./%s}\n", m.id, dir)
		agent := fmt.Sprintf("name: %q\nskills: {s: {process: {command: [cat]}}}\n", m.id)
		if m.once {
			agent += "idempotency: {store: shared}\n"
		}
		write(dir+"/agent.yaml", agent)
		if m.subject != "" {
			transportOf := fmt.Sprintf("{kind: nats, servers: [nats://127.0.0.1], subjects: {requests: %q}}", m.subject)
			if m.noServer {
				transportOf = fmt.Sprintf("{kind: memory, topics: {requests: %q}}", m.subject)
			}
			limit := ""
			if m.shared {
				limit = ", rateLimit: {requests: 3, period: 1h, shared: true}"
			}
			if m.tells {
				limit += ", progress: true"
			}
			if m.durable {
				limit += ", delivery: durable"
			}
			write(dir+"/capabilities.yaml", fmt.Sprintf("version: 1\nagent: %q\ntransports: [%s]\ncapabilities: [{name: s%s}]\n", "agent://"+m.id, transportOf, limit))
		}
		peers := "version: 1\npeers:\n"
		if len(m.peers) == 0 {
			peers = "version: 1\npeers: []\n"
		}
		for _, p := range m.peers {
			id, subject, _ := strings.Cut(p, " ")
			peers += fmt.Sprintf("  - {agent: %q, transports: [{kind: nats, servers: [nats://127.0.0.1], subjects: {requests: %q}}]}\n", "agent://"+id, subject)
		}
		write(dir+"/rpc-peers.yaml", peers)
	}
	write("fleet.yaml", manifest)
	f, err := fleet.Load(root, fleet.LoadOptions{InspectOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// triage: the desk may call the reviewer, the reviewer the notes, and nobody the desk.
func triage(t *testing.T) *fleet.Fleet {
	return load(t,
		member{id: "desk", peers: []string{"reviewer agents.reviewer.requests", "elsewhere other.requests"}},
		member{id: "reviewer", subject: "agents.reviewer.requests", peers: []string{"team.notes agents.team.notes.requests"}},
		member{id: "team.notes", subject: "agents.team.notes.requests"},
	)
}

func derive(t *testing.T, f *fleet.Fleet) (rules *natsauth.Rules, conf, keyDir string) {
	t.Helper()
	rules, err := natsauth.Derive(f, natsauth.Options{})
	if err != nil {
		t.Fatal(err)
	}
	keyDir = filepath.Join(t.TempDir(), "keys")
	keys, err := rules.EnsureKeys(keyDir)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := rules.WriteConfig(&b, keys); err != nil {
		t.Fatal(err)
	}
	return rules, b.String(), keyDir
}

// A stage is a server with the rules of a fleet.
type stage struct {
	t    *testing.T
	url  string
	keys string

	creds bool // connects with credentials files
}

func newStage(t *testing.T) *stage {
	_, conf, keys := derive(t, triage(t))
	return &stage{t: t, url: natstest.Run(t, conf).URL(), keys: keys}
}

// as connects as a member.
func (s *stage) as(id string) *nats.Conn {
	s.t.Helper()
	return s.connect(id, nats.Options{InboxPrefix: natsauth.InboxPrefix(id)})
}

// connect connects with the key, or the credentials, of a name.
func (s *stage) connect(name string, opts nats.Options) *nats.Conn {
	s.t.Helper()
	opts.Servers = []string{s.url}
	if s.creds {
		opts.CredsFile = natsauth.CredsFile(s.keys, name)
	} else {
		opts.NKeySeedFile = natsauth.KeyFile(s.keys, name)
	}
	c, err := nats.Connect(s.t.Context(), opts)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

// jetStream connects a member to its part of JetStream.
func (s *stage) jetStream(id string) *nats.Conn {
	s.t.Helper()
	return s.connect(natsauth.QueueKey(id), nats.Options{InboxPrefix: natsauth.InboxPrefix(id), JetStreamPrefix: natsauth.APIPrefix})
}

// operator connects as the owner of JetStream.
func (s *stage) operator() jetstream.JetStream {
	s.t.Helper()
	js, err := s.connect(natsauth.OperatorKey, nats.Options{}).JetStream()
	if err != nil {
		s.t.Fatal(err)
	}
	return js
}

// provision makes what the members use.
func (s *stage) provision(rules *natsauth.Rules) jetstream.JetStream {
	s.t.Helper()
	js := s.operator()
	for _, q := range rules.Queues {
		resources := durable.ResourcesOf(durable.Options{Agent: q.ID}, q.Requests, q.Calls)
		resources.Buckets = append(resources.Buckets, sharedBuckets(&q)...)
		if _, err := resources.Provision(s.t.Context(), js, false); err != nil {
			s.t.Fatal(err)
		}
	}
	return js
}

// sharedBuckets are those that the replicas of an agent share.
func sharedBuckets(q *natsauth.Queue) (all []jetstream.KeyValueConfig) {
	if q.Limits {
		all = append(all, quota.BucketConfig(natsauth.LimitsBucket(q.ID), 1))
	}
	if q.Idempotency {
		all = append(all, once.AnswersConfig(natsauth.AnswersBucket(q.ID), time.Hour, 1), once.MessagesConfig(natsauth.MessagesBucket(q.ID), 1))
	}
	return all
}

func wait[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(20 * time.Second):
		t.Fatal("waited for too long")
		panic("unreachable")
	}
}

func (s *stage) inbox(c *nats.Conn) (transport.Inbox, chan transport.Message) {
	s.t.Helper()
	got := make(chan transport.Message, 16)
	inbox, err := c.OpenInbox(func(m transport.Message) { got <- m })
	if err != nil {
		s.t.Fatal(err)
	}
	return inbox, got
}

func (s *stage) publish(c *nats.Conn, topic, reply, data string) {
	s.t.Helper()
	if err := c.Publish(context.Background(), transport.Message{Topic: topic, Reply: reply, Data: []byte(data)}); err != nil {
		s.t.Fatal(err)
	}
}

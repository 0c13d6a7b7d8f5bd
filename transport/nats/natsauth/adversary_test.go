package natsauth_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentd/agentd/transport/nats/durable"
	"github.com/agentd/agentd/transport/nats/natsauth"
)

// A step is one thing that a hostile client does, with one of an agent's connections.
type step struct {
	By        string `json:"by"` // calls or jetstream
	Subscribe string `json:"subscribe,omitempty"`
	Publish   string `json:"publish,omitempty"`
	Reply     string `json:"reply,omitempty"`
	Data      string `json:"data,omitempty"`
}

// A message is what a hostile client got.
type message struct{ Subject, Data string }

const (
	callsConn     = "calls"
	jetStreamConn = "jetstream"
	// secret is in everything that belongs to others. No hostile client may see it.
	secret = "SECRET"
	// loot is where a hostile client listens on both of its connections.
	loot = "_INBOX.mallory.loot"
)

// An arena is a server with the rules of a fleet in which alice serves kept requests, bob
// calls her, and mallory is a member with every right that a member can have: he serves
// kept requests, shares limits and what he has served, and calls alice, but not carol.
type arena struct {
	t     *testing.T
	url   string
	keys  map[string]string // of mallory, by connection; "" on a server without rules
	js    jetstream.JetStream
	rules *natsauth.Rules

	victims       *victims
	bob, operator *natsgo.Conn
}

// victims hear what reaches the other agents.
type victims struct {
	mu    sync.Mutex
	heard []string
}

func (v *victims) take() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	heard := v.heard
	v.heard = nil
	return heard
}

func hostileFleet(t *testing.T) (*natsauth.Rules, string, string) {
	const alice, carol = "agents.alice.requests", "agents.carol.requests"
	return derive(t, load(t,
		member{id: "alice", subject: alice, durable: true, shared: true, once: true},
		member{id: "bob", peers: []string{"alice " + alice, "carol " + carol}},
		member{id: "carol", subject: carol, durable: true},
		member{id: "mallory", subject: "agents.mallory.requests", durable: true, shared: true, once: true, tells: true, peers: []string{"alice " + alice}},
	))
}

// newArena fills JetStream, and has the victims listen. keyFile is the path of a name's
// seed or credentials; nil is for a server without rules, where everybody shares one
// account with JetStream.
func newArena(t *testing.T, url string, rules *natsauth.Rules, keyFile func(name string) string) *arena {
	t.Helper()
	a := &arena{t: t, url: url, rules: rules, keys: map[string]string{}, victims: &victims{}}
	key := func(name string) string {
		if keyFile == nil {
			return ""
		}
		text, err := os.ReadFile(keyFile(name))
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(text))
	}
	a.keys[callsConn], a.keys[jetStreamConn] = key("mallory"), key(natsauth.QueueKey("mallory"))
	a.operator = a.connect(key(natsauth.OperatorKey))
	var err error
	if a.js, err = jetstream.New(a.operator); err != nil {
		t.Fatal(err)
	}
	a.furnish()
	for name, subjects := range map[string][]string{
		"alice":                    {"agents.alice.requests", "agents.alice.requests.*"},
		"carol":                    {"agents.carol.requests", "agents.carol.requests.*"},
		"bob":                      {"_INBOX.bob.>"},
		natsauth.QueueKey("bob"):   {"_INBOX.bob.>", "agentd.answered.*.bob.*"},
		natsauth.QueueKey("alice"): {"_INBOX.alice.>"},
		natsauth.OperatorKey:       {"_INBOX.operator.>", "victim.>"},
		natsauth.ObserverKey:       {"_INBOX.OBSERVER.>"},
	} {
		nc := a.connect(key(name))
		if name == "bob" {
			a.bob = nc
		}
		for _, subject := range subjects {
			if _, err := nc.Subscribe(subject, func(m *natsgo.Msg) {
				a.victims.mu.Lock()
				defer a.victims.mu.Unlock()
				if m.Subject == aliveSubject || m.Subject == "agents.alice.requests.durable" {
					return // the traffic of settle
				}
				a.victims.heard = append(a.victims.heard, name+" on "+m.Subject)
			}); err != nil {
				t.Fatal(err)
			}
		}
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// furnish makes what the agents use, with something in it, anew.
func (a *arena) furnish() {
	a.t.Helper()
	t := a.t
	for name := range a.js.StreamNames(t.Context()).Name() {
		stream, err := a.js.Stream(t.Context(), name)
		if err == nil && strings.HasPrefix(name, "AGENTD_") || strings.HasPrefix(name, "KV_agentd-") {
			err = stream.Purge(t.Context())
			for consumer := range stream.ConsumerNames(t.Context()).Name() {
				err = errors.Join(err, stream.DeleteConsumer(t.Context(), consumer))
			}
		} else {
			err = a.js.DeleteStream(t.Context(), name)
		}
		if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			t.Fatal(err)
		}
	}
	for _, q := range a.rules.Queues {
		resources := durable.ResourcesOf(durable.Options{Agent: q.ID, MaxBytes: 1 << 20}, q.Requests, q.Calls)
		resources.Buckets = append(resources.Buckets, sharedBuckets(&q)...)
		// The server still removes the files of a stream that an attack has just deleted.
		const removing, tries = 10049, 100
		for try := 1; ; try++ {
			_, err := resources.Provision(t.Context(), a.js, false)
			if api, ok := errors.AsType[*jetstream.APIError](err); ok && api.ErrorCode == removing && try < tries {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	for _, subject := range []string{
		"agents.alice.requests.durable", "agents.carol.requests.durable", "agents.mallory.requests.durable",
		"agentd.results.alice.bob.c1", "agentd.results.carol.bob.c1", "agentd.dead.alice",
		"$KV.agentd-limits-alice.k", "$KV.agentd-calls-bob.k", "$KV.agentd-answers-alice.k", "$KV.agentd-messages-alice.k",
	} {
		data := secret
		if strings.Contains(subject, "mallory") {
			data = "{}"
		}
		if _, err := a.js.Publish(t.Context(), subject, []byte(data)); err != nil {
			t.Fatalf("%s: %v", subject, err)
		}
	}
}

// connect connects with a seed, with credentials, or with "" without either.
func (a *arena) connect(key string) *natsgo.Conn {
	a.t.Helper()
	options := []natsgo.Option{natsgo.ErrorHandler(func(*natsgo.Conn, *natsgo.Subscription, error) {})}
	switch {
	case strings.HasPrefix(key, "-----"):
		options = append(options, natsgo.UserCredentialBytes([]byte(key)))
	case key != "":
		path := filepath.Join(a.t.TempDir(), "seed")
		if err := os.WriteFile(path, []byte(key), 0o600); err != nil {
			a.t.Fatal(err)
		}
		option, err := natsgo.NkeyOptionFromSeed(path)
		if err != nil {
			a.t.Fatal(err)
		}
		options = append(options, option)
	}
	nc, err := natsgo.Connect(a.url, options...)
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(nc.Close)
	return nc
}

// state describes everything in JetStream that mallory may not change: all of it but the
// content of his own streams, and new requests to alice.
func (a *arena) state() string {
	a.t.Helper()
	var all []string
	streams := a.js.ListStreams(a.t.Context())
	for info := range streams.Info() {
		config, err := json.Marshal(info.Config)
		if err != nil {
			a.t.Fatal(err)
		}
		line := fmt.Sprintf("%s %s first %d", info.Config.Name, config, info.State.FirstSeq)
		switch {
		case strings.HasSuffix(info.Config.Name, "mallory"):
			line = string(config)
		case info.Config.Name != "AGENTD_REQUESTS_alice":
			line += fmt.Sprintf(" last %d messages %d", info.State.LastSeq, info.State.Msgs)
		}
		all = append(all, line)
		stream, err := a.js.Stream(a.t.Context(), info.Config.Name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			continue // an attack has just deleted it
		}
		if err != nil {
			a.t.Fatal(err)
		}
		for consumer := range stream.ListConsumers(a.t.Context()).Info() {
			config, err := json.Marshal(consumer.Config)
			if err != nil {
				a.t.Fatal(err)
			}
			line := fmt.Sprintf("%s of %s %s", consumer.Name, info.Config.Name, config)
			if !strings.HasSuffix(info.Config.Name, "mallory") {
				line += fmt.Sprintf(" delivered %d", consumer.Delivered.Consumer)
			}
			all = append(all, line)
		}
	}
	if err := streams.Err(); err != nil {
		a.t.Fatal(err)
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// aliveSubject is where bob sends something to alice.
const aliveSubject = "agents.alice.requests.alive"

// settle returns once the server has done what was asked of it before: it serves the
// requests of the JetStream API in order. Meanwhile the others have traffic, which a
// hostile subscriber would hear.
func (a *arena) settle() {
	a.t.Helper()
	err := errors.Join(a.operator.Publish("agents.alice.requests.durable", []byte(secret)), a.bob.Publish(aliveSubject, []byte(secret)), a.bob.Flush())
	if err != nil {
		a.t.Fatal(err)
	}
	for range 3 {
		if _, err := a.js.CreateStream(a.t.Context(), jetstream.StreamConfig{Name: "settled", Subjects: []string{"settled"}, Storage: jetstream.MemoryStorage}); err != nil {
			a.t.Fatal(err)
		}
		if err := a.js.DeleteStream(a.t.Context(), "settled"); err != nil {
			a.t.Fatal(err)
		}
	}
}

// harm runs steps as mallory, and returns what came of it.
func (a *arena) harm(run func(t *testing.T, a *arena, steps []step) []message, steps []step) (all []string) {
	a.t.Helper()
	listen := []step{{By: callsConn, Subscribe: loot + ".>"}, {By: jetStreamConn, Subscribe: loot + ".>"}}
	before := a.state()
	a.victims.take()
	for _, m := range run(a.t, a, append(listen, steps...)) {
		if strings.Contains(m.Data, secret) || strings.Contains(m.Data, `"subjects"`) && strings.Contains(m.Data, "alice") {
			all = append(all, "mallory read "+m.Subject)
		}
	}
	if after := a.state(); after != before {
		all = append(all, "JetStream was changed:\n"+after+"\nbefore:\n"+before)
	}
	for _, heard := range a.victims.take() {
		all = append(all, "heard by "+heard)
	}
	return all
}

// goClient does the steps with nats.go.
func goClient(t *testing.T, a *arena, steps []step) (got []message) {
	t.Helper()
	var mu sync.Mutex
	conns := map[string]*natsgo.Conn{callsConn: a.connect(a.keys[callsConn]), jetStreamConn: a.connect(a.keys[jetStreamConn])}
	for _, s := range steps {
		nc := conns[s.By]
		var err error
		if s.Subscribe != "" {
			_, err = nc.Subscribe(s.Subscribe, func(m *natsgo.Msg) {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, message{m.Subject, string(m.Data)})
			})
		} else {
			err = nc.PublishMsg(&natsgo.Msg{Subject: s.Publish, Reply: s.Reply, Data: []byte(s.Data)})
		}
		if err != nil {
			t.Errorf("%+v: %v", s, err)
		}
	}
	for range 2 {
		for _, nc := range conns {
			if err := nc.Flush(); err != nil {
				t.Error(err)
			}
		}
		a.settle()
	}
	for _, nc := range conns {
		nc.Close()
	}
	mu.Lock()
	defer mu.Unlock()
	return got
}

// nodeClient does the steps with the client for Node.
func nodeClient(t *testing.T, a *arena, steps []step) (got []message) {
	t.Helper()
	dir := filepath.Dir(os.Getenv("AGENTD_NODE_MODULES"))
	file := filepath.Join(t.TempDir(), "steps.json")
	data, err := json.Marshal(map[string]any{"keys": a.keys, "steps": steps})
	if err == nil {
		err = os.WriteFile(file, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", "testdata/adversary.mjs", a.url, file)
	cmd.Env = append(os.Environ(), "AGENTD_NODE_MODULES="+dir)
	var failure strings.Builder
	cmd.Stderr = &failure
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := false
	for scan := bufio.NewScanner(stdout); scan.Scan(); {
		var line struct {
			message
			Done bool
		}
		if err := json.Unmarshal(scan.Bytes(), &line); err != nil {
			t.Fatalf("%s: %v", scan.Text(), err)
		}
		if !line.Done {
			got = append(got, line.message)
			continue
		}
		done = true
		a.settle()
		_ = stdin.Close() // asks it to end
	}
	if err := cmd.Wait(); err != nil || !done {
		t.Errorf("the hostile client: %v\n%s", err, failure.String())
	}
	return got
}

package natsauth_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats"
	"github.com/agentd/agentd/transport/nats/durable"
	"github.com/agentd/agentd/transport/nats/natsauth"
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
}

func load(t *testing.T, members ...member) *fleet.Fleet {
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
		write(dir+"/agent.yaml", fmt.Sprintf("name: %q\nskills: {s: {process: {command: [cat]}}}\n", m.id))
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
		if q.Limits {
			resources.Buckets = append(resources.Buckets, quota.BucketConfig(natsauth.LimitsBucket(q.ID), 1))
		}
		if _, err := resources.Provision(s.t.Context(), js, false); err != nil {
			s.t.Fatal(err)
		}
	}
	return js
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

func TestCallsAlongThePeersFiles(t *testing.T) {
	s := newStage(t)
	for _, call := range []struct{ from, to, topic string }{
		{"desk", "reviewer", "agents.reviewer.requests"},
		{"reviewer", "team.notes", "agents.team.notes.requests"},
	} {
		caller, callee := s.as(call.from), s.as(call.to)
		inbox, replies := s.inbox(caller)
		_, err := callee.Subscribe(call.topic, "agents."+call.to, func(m transport.Message) { s.publish(callee, m.Reply, "", "re") })
		if err != nil {
			t.Fatal(err)
		}
		control := make(chan string, 1)
		if _, err := callee.Subscribe(call.topic+".control", "", func(m transport.Message) { control <- string(m.Data) }); err != nil {
			t.Fatal(err)
		}
		s.publish(caller, call.topic, inbox.Topic("one"), "q")
		if m := wait(t, replies); m.Topic != inbox.Topic("one") || string(m.Data) != "re" {
			t.Errorf("%s calls %s: got %+v", call.from, call.to, m)
		}
		s.publish(caller, call.topic+".control", "", "cancel")
		wait(t, control)
		changed := make(chan string, 1)
		if _, err := caller.Subscribe(natsauth.ChangedSubject(call.topic), "", func(m transport.Message) { changed <- string(m.Data) }); err != nil {
			t.Fatal(err)
		}
		s.publish(callee, natsauth.ChangedSubject(call.topic), "", "news")
		wait(t, changed)
	}
}

// An absent peer is told from a forbidden one.
func TestAbsentPeerIsNoResponders(t *testing.T) {
	s := newStage(t)
	c := s.as("desk")
	inbox, got := s.inbox(c)
	s.publish(c, "agents.reviewer.requests", inbox.Topic("x"), "q")
	if m := wait(t, got); !errors.Is(m.Err, transport.NoResponders) {
		t.Errorf("got %+v", m)
	}
}

func TestForbiddenSubscriptions(t *testing.T) {
	s := newStage(t)
	inbox, _ := s.inbox(s.as("desk"))
	for id, topics := range map[string][]string{
		"desk": {
			"agents.desk.requests", "agents.reviewer.requests", "agents.reviewer.requests.control", "anything",
			"agentd.changed.agents.team.notes.requests",
		},
		"reviewer":   {"agents.team.notes.requests", inbox.Topic("x"), "_INBOX.other.x", "agents.reviewer"},
		"team.notes": {"agents.reviewer.requests", inbox.Topic("x"), "$SRV.PING.reviewer", "$SYS.ACCOUNT.x"},
	} {
		c := s.as(id)
		for _, topic := range topics {
			if _, err := c.Subscribe(topic, "", func(transport.Message) {}); !errors.Is(err, transport.Denied) {
				t.Errorf("%s subscribes to %s: %v, want Denied", id, topic, err)
			}
		}
	}
}

func TestForbiddenPublications(t *testing.T) {
	s := newStage(t)
	private, _ := s.inbox(s.as("desk"))
	for id, topics := range map[string][]string{
		"desk": {
			"agents.team.notes.requests", "agents.team.notes.requests.control", "anything", "$SRV.PING",
			"agentd.changed.agents.reviewer.requests",
		},
		"reviewer":   {"_INBOX.team+notes.x", "agents.desk.requests", "agents.reviewer.requests", "agents.desk.responses"},
		"team.notes": {private.Topic("x"), "agents.reviewer.requests", "$JS.API.INFO"},
	} {
		c := s.as(id)
		_, notices := s.inbox(c)
		for _, topic := range topics {
			s.publish(c, topic, "", "forbidden")
			if m := wait(t, notices); m.Topic != topic || !errors.Is(m.Err, transport.Denied) {
				t.Errorf("%s publishes on %s: got %+v, want Denied", id, topic, m)
			}
		}
	}
}

// A callee answers its callers, as often as they are told of progress, and whatever reply
// subject a request names, nobody else.
func TestAnswersGoToCallersAlone(t *testing.T) {
	s := newStage(t)
	caller, callee := s.as("desk"), s.as("reviewer")
	inbox, replies := s.inbox(caller)
	_, notices := s.inbox(callee)
	_, err := callee.Subscribe("agents.reviewer.requests", "g", func(m transport.Message) {
		s.publish(callee, m.Reply, "", "first")
		s.publish(callee, m.Reply, "", "second")
	})
	if err != nil {
		t.Fatal(err)
	}
	s.publish(caller, "agents.reviewer.requests", inbox.Topic("one"), "q")
	for _, want := range []string{"first", "second"} {
		if m := wait(t, replies); string(m.Data) != want {
			t.Errorf("got %+v", m)
		}
	}
	for _, foreign := range []string{"_INBOX.team+notes.x", "$JS.API.STREAM.PURGE.X", "agents.desk.requests", "agents.team.notes.responses", "$SYS.REQ.SERVER.PING"} {
		s.publish(caller, "agents.reviewer.requests", foreign, "q")
		for range 2 {
			if m := wait(t, notices); m.Topic != foreign || !errors.Is(m.Err, transport.Denied) {
				t.Errorf("got %+v, want Denied on %s", m, foreign)
			}
		}
	}
}

// What a peers file lists for a caller that is no member may be answered, too.
func TestReplyTopicsOfOthers(t *testing.T) {
	f := triage(t)
	reviewer, _ := f.Member("reviewer")
	reviewer.Peers[0].ReplyTopics = []string{"notes.answers", "notes.more.>"}
	rules, _, _ := derive(t, f)
	for _, subject := range []string{"notes.answers", "notes.more.>", "_INBOX.desk.>"} {
		if !slices.Contains(rules.Users[1].Publish, subject) {
			t.Errorf("the reviewer may publish to %v, want %s", rules.Users[1].Publish, subject)
		}
	}
}

func TestStrangersAreRefused(t *testing.T) {
	s := newStage(t)
	if _, err := nats.Connect(t.Context(), nats.Options{Servers: []string{s.url}}); !errors.Is(err, transport.Denied) {
		t.Errorf("without a key: %v", err)
	}
	_, _, others := derive(t, triage(t))
	_, err := nats.Connect(t.Context(), nats.Options{Servers: []string{s.url}, NKeySeedFile: natsauth.KeyFile(others, "desk")})
	if !errors.Is(err, transport.Denied) {
		t.Errorf("with a key of another fleet: %v", err)
	}
}

func TestDerive(t *testing.T) {
	rules, conf, _ := derive(t, triage(t))
	if len(rules.Users) != 3 || rules.Users[0].Responds || !rules.Users[1].Responds {
		t.Errorf("users %+v", rules.Users)
	}
	if !slices.Equal(rules.External, []envelope.Address{"agent://elsewhere"}) || !strings.Contains(conf, "#   agent://elsewhere") {
		t.Errorf("external peers %v", rules.External)
	}
	want := []string{"agentd.changed.agents.team.notes.requests", "$SRV.STATS.team_notes", "_INBOX.team+notes.>", "_INBOX.OBSERVER.>", "_INBOX.reviewer.>"}
	if p := rules.Users[2].Publish; !slices.Equal(p, want) {
		t.Errorf("an agent without peers may publish to %v", p)
	}
}

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

// A callee may ask whether those that call it are there, and nobody else.
func TestCallersAlive(t *testing.T) {
	s := newStage(t)
	desk, notes := s.as("desk"), s.as("team.notes")
	deskInbox, _ := s.inbox(desk)
	gone := deskInbox.Topic("c-1")
	reviewer := s.as("reviewer")
	if !reviewer.Listening(t.Context(), gone) {
		t.Error("the desk listens")
	}
	if err := errors.Join(deskInbox.Close(), desk.Client().Flush()); err != nil {
		t.Fatal(err)
	}
	if reviewer.Listening(t.Context(), gone) {
		t.Error("the desk listens no more")
	}
	if !notes.Listening(t.Context(), gone) {
		t.Error("the desk does not call the notes: they may not know")
	}
}

func TestDeriveHonoursPermissions(t *testing.T) {
	rules, err := natsauth.Derive(triage(t), natsauth.Options{
		Allowed: func(_, to envelope.Address) bool { return to != "agent://reviewer" },
	})
	if err != nil {
		t.Fatal(err)
	}
	if p := rules.Users[0].Publish; slices.Contains(p, "agents.reviewer.requests") || !slices.Contains(p, "other.requests") {
		t.Errorf("the desk may publish to %v", p)
	}
}

func TestDeriveSkipsMembersWithoutNATS(t *testing.T) {
	rules, err := natsauth.Derive(load(t,
		member{id: "local", subject: "agents.local.requests", noServer: true},
		member{id: "remote", subject: "agents.remote.requests"},
	), natsauth.Options{})
	if err != nil || len(rules.Users) != 1 || rules.Users[0].ID != "remote" {
		t.Errorf("%+v, %v", rules, err)
	}
	_, err = natsauth.Derive(load(t, member{id: "local", subject: "t", noServer: true}), natsauth.Options{})
	if !errors.Is(err, natsauth.ErrNoNATS) {
		t.Errorf("a fleet without NATS: %v", err)
	}
}

func TestDeriveRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		members []member
		want    []string
	}{
		"one subject for two": {[]member{{id: "a", subject: "s"}, {id: "b", subject: "s"}}, []string{"agents a and b share subjects"}},
		"subject below":       {[]member{{id: "a", subject: "s.x"}, {id: "b", subject: "s"}}, []string{"s.x and s"}},
		"wildcard":            {[]member{{id: "a", subject: "s.*"}}, []string{"capabilities.yaml", `"s.*"`, "not a valid NATS subject"}},
		"everything":          {[]member{{id: "a", subject: ">"}}, []string{"not a valid NATS subject"}},
		"inbox of another":    {[]member{{id: "a", subject: "_INBOX.b"}}, []string{"belongs to NATS"}},
		"system":              {[]member{{id: "a", subject: "$SYS.x"}}, []string{"belongs to NATS"}},
		"reference":           {[]member{{id: "a", subject: "${env:S}"}}, []string{"is a reference"}},
		"peer's subject":      {[]member{{id: "a", peers: []string{"b >"}}}, []string{"rpc-peers.yaml:3", "agent://b", "not a valid NATS subject"}},
		"one service name":    {[]member{{id: "a.b", subject: "s"}, {id: "a_b", subject: "t"}}, []string{"same service name a_b"}},
		"all faults, not one": {[]member{{id: "a", subject: "x y"}, {id: "b", subject: ">"}}, []string{`"x y"`, `">"`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := natsauth.Derive(load(t, test.members...), natsauth.Options{})
			if err == nil {
				t.Fatal("accepted")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %q in it", err, want)
				}
			}
		})
	}
}

func TestKeysAreKept(t *testing.T) {
	rules, err := natsauth.Derive(triage(t), natsauth.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "keys")
	first, err := rules.EnsureKeys(dir)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(natsauth.KeyFile(dir, "desk"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("seed %v, %v; want it readable by its owner alone", info.Mode(), err)
	}
	if err := os.Remove(natsauth.KeyFile(dir, "desk")); err != nil {
		t.Fatal(err)
	}
	second, err := rules.EnsureKeys(dir)
	if err != nil {
		t.Fatal(err)
	}
	if first["reviewer"] != second["reviewer"] || first["desk"] == second["desk"] {
		t.Errorf("keys %v, then %v", first, second)
	}
	if err := os.WriteFile(natsauth.KeyFile(dir, "desk"), []byte("no seed"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := rules.EnsureKeys(dir); err == nil || !strings.Contains(err.Error(), "delete it for a new key") {
		t.Errorf("a damaged seed: %v", err)
	}
	if err := rules.WriteConfig(io.Discard, nil); err == nil {
		t.Error("a configuration without keys was written")
	}
}

func ExampleInboxPrefix() {
	fmt.Println(natsauth.InboxPrefix("team.notes"), natsauth.ServiceName("team.notes"))
	// Output: _INBOX.team+notes team_notes
}

package natsauth_test

import (
	"errors"
	"testing"

	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats"
	"github.com/agentd/agentd/transport/nats/natsauth"
)

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

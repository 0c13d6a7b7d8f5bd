package nats_test

import (
	"testing"

	natsgo "github.com/nats-io/nats.go"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/alloctest"
	"github.com/agentd/agentd/transport/nats"
)

// An agent owns its own inboxes, and nothing that another could listen on.
func TestOwnsReply(t *testing.T) {
	t.Parallel()
	for subject, want := range map[string]bool{
		"_INBOX.bob.XJ4hMmKCd1v5lYDQaWLqbs.c-1": true,
		"_INBOX.bob.x":                          true,
		natsgo.NewInbox():                       true, // a client without a prefix
		natsgo.NewInbox() + ".token":            true,
		"agents.bob.responses":                  true, // the reference system's
		"_INBOX.bob":                            false,
		"_INBOX.bob.":                           false,
		"_INBOX.bob.>":                          false,
		"_INBOX.bob.*":                          false,
		"_INBOX.alice.x":                        false,
		"_INBOX.bobby.x":                        false,
		"_INBOX.bob+by.x":                       false,
		"_INBOX.aliceandthirtymoreletters.x":    false,
		"_INBOX.X.x":                            false,
		"_INBOX.":                               false,
		"_INBOX":                                false,
		"_inbox.bob.x":                          false,
		"$JS.API.STREAM.PURGE.AGENTD_REQUESTS_alice": false,
		"$JS.ACK.AGENTD_REQUESTS_bob.agentd.1":       false,
		"$KV.agentd-calls-bob.x":                     false,
		"$SYS.REQ.SERVER.PING":                       false,
		"_R_.XJ4hMmKCd1v5lYDQaWLqbs":                 false,
		"agents.alice.requests":                      false,
		"agents.alice.responses":                     false,
		"agents.bob.requests":                        false,
		"agents.bob.requests.control":                false,
		"agentd.results.alice.bob.x":                 false,
		"agents.bob.x.responses":                     false,
		"":                                           false,
		"_INBOX.bob.x y":                             false,
		"_INBOX.bob.x\r\nPUB y 0":                    false,
	} {
		if got := nats.OwnsReply("agent://bob", subject); got != want {
			t.Errorf("%q: %v, want %v", subject, got, want)
		}
	}
	for agent, subject := range map[envelope.Address]string{"agent://team.notes": "_INBOX.team+notes.x", "agent://team": "_INBOX.team.notes.x"} {
		if !nats.OwnsReply(agent, subject) {
			t.Errorf("%s does not own %s", agent, subject)
		}
	}
	if nats.OwnsReply("agent://team", "_INBOX.team+notes.x") || nats.OwnsReply("agent://team.notes", "_INBOX.team.notes.x") {
		t.Error("one agent's inboxes are below another's")
	}
}

// Every request has a reply subject: the check allocates nothing.
func TestOwnsReplyAllocatesNothing(t *testing.T) {
	for _, subject := range []string{"_INBOX.team+notes.XJ4hMmKCd1v5lYDQaWLqbs.c-1", "agents.team.notes.responses"} {
		if n := alloctest.Least(100, func() { nats.OwnsReply("agent://team.notes", subject) }); n != 0 {
			t.Errorf("%s: %v allocations", subject, n)
		}
	}
}

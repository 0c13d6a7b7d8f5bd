package wire

import (
	"strings"
	"testing"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/identity"
)

// A message counts as one hop, whatever its header says: only a well-formed number
// tells of more.
func TestHops(t *testing.T) {
	for text, want := range map[string]int{"1": 1, "2": 2, "16": 16, "0": 1, "-3": 1, "": 1, "many": 1, "99999999999999999999": 1} {
		if got := Hops(envelope.Headers{{Key: envelope.HeaderHops, Value: text}}); got != want {
			t.Errorf("%q counts as %d hops, want %d", text, got, want)
		}
	}
	if got := Hops(nil); got != 1 {
		t.Errorf("no header counts as %d hops", got)
	}
}

func TestSeal(t *testing.T) {
	signer, err := identity.NewKeyring(identity.Options{
		Self:  "agent://a",
		Peers: map[envelope.Address]identity.Peer{"agent://b": {Secrets: []identity.Secret{{ID: "k", Key: []byte(strings.Repeat("s", 32))}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		signer envelope.Signer
		kind   envelope.AuthKind
	}{"bare claim": {nil, envelope.AuthInternal}, "signed": {signer, envelope.AuthHMAC}} {
		e := &envelope.Envelope{Kind: envelope.Event, MessageID: "m", CorrelationID: "c", From: "agent://a", To: "agent://b", Capability: "x"}
		data, err := Seal(test.signer, e)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		back, err := envelope.Decode(data)
		if err != nil || back.Auth.Kind != test.kind {
			t.Errorf("%s: proves itself by %+v, %v", name, back.Auth, err)
		}
	}
	if _, err := Seal(nil, &envelope.Envelope{Kind: envelope.Event}); err == nil {
		t.Error("an incomplete envelope was encoded")
	}
}

// The names and topics of agentd's own services cannot be those of capabilities.
func TestTopics(t *testing.T) {
	const requests = "agents.a.requests"
	for got, want := range map[string]string{
		CapabilitiesTopic(requests):            "agents.a.requests.capabilities",
		ControlTopic(requests):                 "agents.a.requests.control",
		ChangedTopic(requests):                 "agentd.changed.agents.a.requests",
		ServiceTopic(requests, "verify"):       "agents.a.requests.verify",
		ServiceName("verify"):                  "agentd.verify",
		QueueGroup("agent://pr-reviewer"):      "agents.pr-reviewer",
		ServiceTopic(requests, "capabilities"): CapabilitiesTopic(requests),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

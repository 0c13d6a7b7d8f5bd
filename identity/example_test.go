package identity_test

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/identity"
)

// Two agents know nothing but each other's public keys.
func Example() {
	dir, err := os.MkdirTemp("", "identity")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	now := time.Now()
	ours, _ := identity.Store{Path: filepath.Join(dir, "concierge.json")}.Ensure(now)
	theirs, _ := identity.Store{Path: filepath.Join(dir, "reviewer.json")}.Ensure(now)

	concierge, _ := identity.NewKeyring(identity.Options{
		Self: "agent://concierge", Own: ours,
		Peers: map[envelope.Address]identity.Peer{"agent://reviewer": {Public: []identity.PublicKey{{Key: theirs[0].Public}}}},
	})
	reviewer, _ := identity.NewKeyring(identity.Options{
		Self: "agent://reviewer", Own: theirs,
		Peers: map[envelope.Address]identity.Peer{"agent://concierge": {Public: []identity.PublicKey{{Key: ours[0].Public}}}},
	})
	e := &envelope.Envelope{
		Kind: envelope.Event, MessageID: "1", CorrelationID: "1", Capability: "review",
		From: "agent://concierge", To: "agent://reviewer",
	}
	data, _ := e.EncodeSigned(concierge)
	received, _ := envelope.Decode(data)
	fmt.Println(reviewer.Verify(received))

	received.Capability = "approve"
	_, err = reviewer.Verify(received)
	fmt.Println(identity.ReasonOf(err))
	// Output:
	// true <nil>
	// bad-signature
}

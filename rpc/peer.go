package rpc

import (
	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
)

// A Peer is what the caller knows of an agent that it may call.
type Peer struct {
	// Address names the agent.
	Address envelope.Address
	// Transport is the kind of the transport that reaches it.
	Transport string
	// Topic is where it takes requests.
	Topic string
	// Contract is the capabilities file that the caller was built against. With
	// nil nothing is known: every name may be called, with any JSON.
	Contract *capability.Document
	// MinSchemaVersion is the oldest `since` of a capability that the caller
	// accepts; "" accepts all. A [Gate] holds the peer to it.
	MinSchemaVersion string
}

// A PeerTable finds peers. It is safe for concurrent use.
type PeerTable interface {
	// Peer returns the peer with an address, and whether there is one.
	Peer(envelope.Address) (Peer, bool)
}

// Peers is a fixed [PeerTable].
type Peers map[envelope.Address]Peer

// Peer implements [PeerTable].
func (p Peers) Peer(a envelope.Address) (Peer, bool) {
	peer, ok := p[a]
	return peer, ok
}

// RequestsTopic is where an agent takes requests when its files do not say.
func RequestsTopic(a envelope.Address) string { return "agents." + a.ID() + ".requests" }

// controlTopic is where the callee's processes take control events: all of
// them, because only one knows the call that an event is about.
func controlTopic(requests string) string { return requests + ".control" }

// queueGroup is shared by the replicas of an agent.
func queueGroup(a envelope.Address) string { return "agents." + a.ID() }

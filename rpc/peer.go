package rpc

import (
	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
)

// A Peer is what a caller knows of an agent that it may call.
type Peer struct {
	// Address names the agent.
	Address envelope.Address
	// Transport is the kind of the transport that reaches it.
	Transport string
	// Topic is where it takes requests.
	Topic string
	// Contract is the capabilities file that the caller was built against. Nil means
	// that it is unknown: every name may be called, with any JSON.
	Contract *capability.Document
	// Foreign is set for a peer that another system than agentd may run: one outside
	// the fleet, or one whose files are those of the reference system. Such a peer need
	// not keep asynchronous requests.
	Foreign bool
	// MinSchemaVersion is the oldest `since` of a capability that the caller
	// accepts; "" accepts all. The drift gate enforces it.
	MinSchemaVersion string
}

// A PeerTable finds peers. It is safe for concurrent use.
type PeerTable interface {
	// Peer returns the peer with an address, and whether there is one.
	Peer(envelope.Address) (Peer, bool)
}

// A PeerExplainer is a [PeerTable] that can tell why it lacks a peer: which file
// lists the peers, and which there are.
type PeerExplainer interface {
	PeerTable
	// ExplainMissing completes the sentence "no peer registered for …: ".
	ExplainMissing(envelope.Address) string
}

// Peers is a fixed [PeerTable].
type Peers map[envelope.Address]Peer

// Peer implements [PeerTable].
func (p Peers) Peer(a envelope.Address) (Peer, bool) {
	peer, ok := p[a]
	return peer, ok
}

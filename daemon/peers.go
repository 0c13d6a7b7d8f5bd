package daemon

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/spelling"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/transport"
)

// A peerTable holds the peers as calls see them. A reload swaps the whole table.
type peerTable struct{ current atomic.Pointer[peerList] }

var _ rpc.PeerExplainer = (*peerTable)(nil)

// A peerList are the peers of one load of the files.
type peerList struct {
	rpc.Peers
	member *fleet.Member
}

// Peer implements [rpc.PeerTable].
func (t *peerTable) Peer(a envelope.Address) (rpc.Peer, bool) { return t.current.Load().Peer(a) }

// ExplainMissing implements [rpc.PeerExplainer].
func (t *peerTable) ExplainMissing(to envelope.Address) string {
	m := t.current.Load().member
	if m.PeersFile == "" {
		return fmt.Sprintf("%s has no peers file: list it in rpc-peers.yaml beside fleet.yaml", m.Address)
	}
	// Without the scheme, which all addresses share: it would make any two look alike.
	ids := make([]string, len(m.Peers))
	for i, p := range m.Peers {
		ids[i] = p.Address.ID()
	}
	return fmt.Sprintf("%s lists %s", m.PeersFile, spelling.Among(to.ID(), ids))
}

// peersOf builds the peer table of a member, choosing one transport for each peer.
func (d *Daemon) peersOf(m *fleet.Member) *peerList {
	peers := rpc.Peers{}
	for _, p := range m.Peers {
		spec := d.chooseTransport(p)
		peers[p.Address] = rpc.Peer{
			Address: p.Address, Transport: string(spec.Kind), Topic: spec.Requests, Contract: p.Document,
			Foreign: p.Foreign, MinSchemaVersion: p.MinSchemaVersion,
		}
	}
	return &peerList{Peers: peers, member: m}
}

// chooseTransport returns the first of a peer's transports that this process
// supports. Where it supports none it returns the first declared one: a call then
// fails with an error that names the missing transport.
func (d *Daemon) chooseTransport(p *fleet.Peer) capability.TransportSpec {
	for _, spec := range p.Transports {
		if d.transport(spec.Kind) != nil {
			return spec
		}
	}
	return p.Transports[0]
}

// transport returns the process's transport of a kind, or nil.
func (d *Daemon) transport(kind capability.TransportKind) transport.Transport {
	i := slices.IndexFunc(d.transports, func(t transport.Transport) bool { return t.Kind() == string(kind) })
	if i < 0 {
		return nil
	}
	return d.transports[i]
}

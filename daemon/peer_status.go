package daemon

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/transport/nats"
	"github.com/agentd/agentd/transport/nats/discovery"
	"github.com/agentd/agentd/transport/nats/natsauth"
)

// peerTimeout bounds how long one peer may take to say what it serves.
const peerTimeout = 5 * time.Second

// VerifyPeers asks every peer, or only those given, what it serves now, all at the
// same time. It returns one status for each, in the order of the peers file.
func (d *Daemon) VerifyPeers(ctx context.Context, only []envelope.Address) []control.PeerStatus {
	peers := slices.DeleteFunc(slices.Clone(d.Member().Peers), func(p *fleet.Peer) bool {
		return p.Address == d.Member().Address || len(only) > 0 && !slices.Contains(only, p.Address)
	})
	all := make([]control.PeerStatus, len(peers))
	var verifying sync.WaitGroup
	for i, p := range peers {
		verifying.Go(func() { all[i] = d.verifyPeer(ctx, p) })
	}
	verifying.Wait()
	return all
}

// verifyPeer checks whether a peer answers, and whether it serves the contract
// that is held here.
func (d *Daemon) verifyPeer(ctx context.Context, p *fleet.Peer) (s control.PeerStatus) {
	spec := d.chooseTransport(p)
	s = control.PeerStatus{Peer: p.Address, Transport: string(spec.Kind), Subject: spec.Requests, External: !p.InFleet, State: control.PeerUnreachable}
	ctx, cancel := context.WithTimeout(ctx, peerTimeout)
	defer cancel()
	if conn, ok := d.transport(spec.Kind).(*nats.Conn); ok {
		// Beside the request below: finding replicas ends with a quiet period, which
		// would otherwise add to the time of every peer.
		var finding sync.WaitGroup
		var instances int
		var version string
		finding.Go(func() { instances, version = findReplicas(ctx, conn, p.Address, d.cfg.Fleet.BrokerName(p.Address)) })
		defer func() { finding.Wait(); s.Instances, s.Version = instances, version }()
	}
	start := time.Now()
	// The same request as the drift gate's, so that the answer is what a call would
	// meet.
	data, err := d.client.Published(ctx, p.Address)
	s.LatencyMs = float64(time.Since(start).Microseconds()) / 1000
	if err != nil {
		s.Error = err.Error()
		return s
	}
	live, err := capability.ParsePublished(data)
	if err != nil {
		// It answers, and the gate refuses calls to it for the same reason.
		s.State, s.Error = control.PeerDrifted, err.Error()
		return s
	}
	s.State, s.Digest = control.PeerReachable, live.Digest
	if p.Document == nil {
		return s // no contract is held here that could differ
	}
	for _, c := range p.Document.Capabilities {
		if served, ok := live.ToolSchemas[c.Name]; !ok || served.Digest != c.Digest {
			s.State = control.PeerDrifted
			s.Differ = append(s.Differ, c.Name)
		}
	}
	return s
}

// findReplicas counts the running instances of an agent and lists their versions, as
// they announce themselves on NATS. A peer that does not announce itself has none,
// which does not mean that it cannot be called.
func findReplicas(ctx context.Context, conn *nats.Conn, a envelope.Address, name string) (instances int, version string) {
	found, err := discovery.Find(ctx, conn, natsauth.ServiceName(name), findQuiet)
	if err != nil {
		return 0, ""
	}
	var versions []string
	for _, i := range found {
		// Two ids may share a service name: only the address distinguishes them.
		if i.Metadata[MetadataAgent] == string(a) {
			instances++
			versions = append(versions, cmp.Or(i.Metadata[MetadataVersion], i.Version))
		}
	}
	slices.Sort(versions)
	return instances, strings.Join(slices.Compact(versions), ", ")
}

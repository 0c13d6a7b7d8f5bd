package daemon

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/caller"
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

// verifyPeer checks whether a peer answers, and proves whether what it serves agrees
// with the contract that is held here. Calls go by what it finds.
func (d *Daemon) verifyPeer(ctx context.Context, p *fleet.Peer) (s control.PeerStatus) {
	spec := d.chooseTransport(p)
	s = control.PeerStatus{Peer: p.Address, Transport: string(spec.Kind), Subject: spec.Requests, External: !p.InFleet, State: control.PeerUnreachable}
	ctx, cancel := context.WithTimeout(ctx, peerTimeout)
	defer cancel()
	probe, ok := d.client.Probe(p.Address)
	if !ok { // a reload has just removed it
		s.Error = "no peer any more"
		return s
	}
	var found replicas
	if conn, ok := d.transport(spec.Kind).(*nats.Conn); ok {
		found = findReplicas(ctx, conn, p.Address, d.brokerName(p.Address), spec.Requests)
		s.Instances, s.Version, s.Contracts = len(found.digests), found.version, found.contracts()
	}
	start := time.Now()
	e := d.gate.Examine(ctx, probe, found.digests)
	s.LatencyMs = float64(time.Since(start).Microseconds()) / 1000
	switch {
	case e.Err == nil:
		s.State, s.Unusable = control.PeerReachable, e.Unusable
		s.Digest, _ = e.Live[0].ContractsDigest() // "" for schemas that have none
	case e.Answered:
		// It answers, and the gate refuses calls to it for the same reason.
		s.State, s.Error = control.PeerDrifted, e.Err.Error()
	case d.publishesNothing(ctx, p, e.Err):
		s.State, s.NoContract = control.PeerReachable, true
	default:
		s.Error = e.Err.Error()
	}
	if s.State != control.PeerUnreachable && spec.Kind != capability.Memory { // in one process there is one clock
		skew, _ := d.client.ClockSkew(ctx, p.Address)
		s.ClockSkewMs = skew.Milliseconds()
	}
	for _, f := range e.Findings {
		drifted := control.PeerDrift{Capability: f.Capability, Reason: f.Err.Error()}
		var detailed caller.DetailedError
		if errors.As(f.Err, &detailed) {
			drifted.Details = detailed.Details()
		}
		s.State, s.Differ, s.Drifts = control.PeerDrifted, append(s.Differ, f.Capability), append(s.Drifts, drifted)
	}
	return s
}

// publishesNothing reports whether a peer is there although it does not say what it
// serves, for why: it is of another make, or older.
func (d *Daemon) publishesNothing(ctx context.Context, p *fleet.Peer, why error) bool {
	var published *capability.PublishedError
	if errors.As(why, &published) {
		return true // it has answered, without a contract
	}
	// The absence of a peer with an identity takes its time to be believed.
	code := rpc.CodeOf(why)
	return (code == rpc.CodeNoResponders || code == rpc.CodeTimeout) && d.client.Reaches(ctx, p.Address)
}

// replicas are the running instances of an agent, as they announce themselves on NATS.
type replicas struct {
	digests []string // of what they serve, one for each
	version string   // of agentd, or several
}

// contracts counts the replicas by what they serve, if that differs.
func (r replicas) contracts() map[string]int {
	counts := map[string]int{}
	for _, digest := range r.digests {
		counts[digest]++
	}
	if len(counts) < 2 {
		return nil
	}
	return counts
}

// findReplicas finds the running instances of the agent that takes requests at a
// subject. A peer that does not announce itself has none, which does not mean that it
// cannot be called.
func findReplicas(ctx context.Context, conn *nats.Conn, a envelope.Address, name, subject string) (r replicas) {
	found, err := discovery.Find(ctx, conn, natsauth.ServiceName(name), findQuiet)
	if err != nil {
		return replicas{}
	}
	var versions []string
	for _, i := range found {
		// Two ids may share a service name, and two fleets an address.
		if i.Metadata[MetadataAgent] == string(a) && slices.Contains(i.Subjects, subject) {
			r.digests = append(r.digests, i.Metadata[MetadataDigest])
			versions = append(versions, cmp.Or(i.Metadata[MetadataVersion], i.Version))
		}
	}
	slices.Sort(versions)
	r.version = strings.Join(slices.Compact(versions), ", ")
	return r
}

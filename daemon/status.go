package daemon

import (
	"cmp"
	"context"
	"os"
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

// peerTimeout bounds how long one peer may take to tell what it serves.
const peerTimeout = 5 * time.Second

// Status is what the control API tells of the agent.
func (d *Daemon) Status() control.Status {
	done := d.stats.total()
	s := control.Status{
		Agent: d.Member().Address, Fleet: d.cfg.Fleet.Name, Version: d.cfg.Version, PID: os.Getpid(), Started: d.started,
		Ready: true, Warnings: d.Warnings(), Requests: done.requests, Errors: done.errors,
	}
	if err := d.Ready(); err != nil {
		s.Ready, s.Reason = false, err.Error()
	}
	if s.Ready && d.announcement != nil {
		s.Instance = d.announcement.ID()
	}
	if contract := d.Member().Capabilities; contract != nil {
		s.Digest = contract.Digest()
	}
	for _, t := range d.transports {
		s.Transports = append(s.Transports, t.Kind())
	}
	return s
}

// VerifyPeers asks every peer, or those given, what they serve now.
func (d *Daemon) VerifyPeers(ctx context.Context, only []envelope.Address) []control.PeerStatus {
	peers := slices.DeleteFunc(slices.Clone(d.Member().Peers), func(p *fleet.Peer) bool {
		return p.Address == d.Member().Address || len(only) > 0 && !slices.Contains(only, p.Address)
	})
	all := make([]control.PeerStatus, len(peers))
	var asking sync.WaitGroup
	for i, p := range peers {
		asking.Go(func() { all[i] = d.verifyPeer(ctx, p) })
	}
	asking.Wait()
	return all
}

func (d *Daemon) verifyPeer(ctx context.Context, p *fleet.Peer) (s control.PeerStatus) {
	spec := d.pick(p)
	s = control.PeerStatus{Peer: p.Address, Transport: string(spec.Kind), Subject: spec.Requests, External: !p.InFleet, State: control.PeerUnreachable}
	ctx, cancel := context.WithTimeout(ctx, peerTimeout)
	defer cancel()
	if conn, ok := d.transport(spec.Kind).(*nats.Conn); ok {
		var looking sync.WaitGroup
		var instances int
		var version string
		looking.Go(func() { instances, version = findReplicas(ctx, conn, p.Address) })
		defer func() { looking.Wait(); s.Instances, s.Version = instances, version }()
	}
	asked := time.Now()
	data, err := d.client.Published(ctx, p.Address)
	s.LatencyMs = float64(time.Since(asked).Microseconds()) / 1000
	if err != nil {
		s.Error = err.Error()
		return s
	}
	live, err := capability.ParsePublished(data)
	if err != nil {
		s.State, s.Error = control.PeerDrifted, err.Error()
		return s
	}
	s.State, s.Digest = control.PeerReachable, live.Digest
	if p.Document == nil {
		return s // nothing is known here that could differ
	}
	for _, c := range p.Document.Capabilities {
		if offered, ok := live.ToolSchemas[c.Name]; !ok || offered.Digest != c.Digest {
			s.State = control.PeerDrifted
			s.Differ = append(s.Differ, c.Name)
		}
	}
	return s
}

// findReplicas asks NATS which instances of an agent run. One that is no NATS service is
// found none of, which says nothing about whether it can be called.
func findReplicas(ctx context.Context, conn *nats.Conn, a envelope.Address) (instances int, version string) {
	found, err := discovery.Find(ctx, conn, natsauth.ServiceName(a.ID()), quiet)
	if err != nil {
		return 0, ""
	}
	var versions []string
	for _, i := range found {
		if i.Metadata[MetadataAgent] == string(a) {
			instances++
			versions = append(versions, cmp.Or(i.Metadata[MetadataVersion], i.Version))
		}
	}
	slices.Sort(versions)
	return instances, strings.Join(slices.Compact(versions), ", ")
}

package daemon

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
)

// liveTimeout bounds what [Daemon.Activity] waits for brokers: one that is away must not keep an
// operator from seeing that it is.
const liveTimeout = time.Second

// Activity is what the agent does. It asks the brokers how far away they are.
func (d *Daemon) Activity(ctx context.Context) control.Activity {
	a := control.Activity{Status: d.Status(), Calls: d.stats.calls.Counts(), Models: d.models.Counts(d.stats.calls)}
	slices.SortFunc(a.Models, func(x, y control.ModelTokens) int {
		return cmp.Or(strings.Compare(x.Capability, y.Capability), strings.Compare(x.Provider, y.Provider), strings.Compare(x.Model, y.Model), strings.Compare(x.Operation, y.Operation))
	})
	if !d.ready.Load() { // what follows comes and goes with the agent
		return a
	}
	a.InFlight = d.inFlight()
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	live := d.live(ctx)
	for _, b := range a.Status.Brokers {
		if took, ok := live.RoundTrips[b.Broker]; ok {
			a.RoundTrips = append(a.RoundTrips, control.RoundTrip{Broker: b.Broker, Milliseconds: milliseconds(took)})
		}
	}
	if live.Queue != nil {
		q := control.Queue(*live.Queue)
		a.Queue = &q
	}
	return a
}

// inFlight counts the calls that have not ended, under the names of those that have.
func (d *Daemon) inFlight() []control.InFlight {
	type key struct {
		role       rpc.Role
		peer       envelope.Address
		capability string
	}
	counts := map[key]control.InFlight{}
	add := func(role rpc.Role, peer envelope.Address, capability string, running, waiting int) {
		peer, capability = d.stats.calls.Named(role, peer, capability)
		k := key{role, peer, capability}
		n := counts[k]
		counts[k] = control.InFlight{Role: role, Peer: peer, Capability: capability, Running: n.Running + running, Waiting: n.Waiting + waiting}
	}
	for _, l := range d.client.PeerLoads() {
		add(rpc.RoleCaller, l.Peer, l.Capability, l.Pending, 0)
	}
	if d.inbox != nil {
		for _, l := range d.inbox.CallerLoads() {
			add(rpc.RoleCallee, l.Caller, l.Capability, l.Running, l.Waiting)
		}
	}
	all := make([]control.InFlight, 0, len(counts))
	for _, n := range counts {
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b control.InFlight) int {
		return cmp.Or(strings.Compare(string(a.Role), string(b.Role)), strings.Compare(string(a.Peer), string(b.Peer)), strings.Compare(a.Capability, b.Capability))
	})
	return all
}

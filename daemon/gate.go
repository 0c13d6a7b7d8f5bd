package daemon

import (
	"maps"
	"slices"

	"github.com/agentd/agentd/drift"
	"github.com/agentd/agentd/fleet"
)

// newGate builds the drift gate. Stop closes it.
func (d *Daemon) newGate(mode drift.Mode) *drift.Gate {
	return drift.NewGate(drift.Options{Mode: mode, Auditor: d.audit, Logger: d.log})
}

// reloadGate puts a member's drift mode in force, and has every peer asked again by
// the next call to it: what the gate knows it has found out with the old files.
func (d *Daemon) reloadGate(m *fleet.Member) {
	d.gate.SetMode(drift.Mode(m.Agent.Drift))
	d.gate.Reset()
	d.followPeers()
}

// followPeers has the gate hear when peers announce that they serve something else.
// It is no error when that cannot be: such a change is noticed by the next call, and a
// refusal of calls ends after a bounded time.
func (d *Daemon) followPeers() {
	peers := slices.Collect(maps.Values(d.peers.current.Load().Peers))
	if err := d.client.Follow(peers, d.gate.Hear); err != nil {
		d.log.Warn("changes of these peers' contracts are not heard at once: give the agent the permissions that `agentd fleet nats-config` writes", "error", err)
	}
}

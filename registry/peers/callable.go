package peers

import (
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/policy"
)

// Callable returns the peers of a member whose contracts a file declares, without the
// capabilities that no call of it could reach: rules, its own permissions, deny them, or
// the files of the peer admit others only.
func Callable(f *fleet.Fleet, m *fleet.Member, rules *policy.CallerRules) []Peer {
	var all []Peer
	for _, p := range m.Peers {
		if p.Document == nil {
			continue
		}
		peer := Peer{Address: p.Address}
		for _, c := range p.Document.Capabilities {
			if reachable(rules.Decide(p.Address, c.Name)) && admitted(f, m, p, c.Name) {
				peer.Capabilities = append(peer.Capabilities, c)
			}
		}
		all = append(all, peer)
	}
	return all
}

// reachable reports whether a call can be allowed, at once or by a person.
func reachable(d policy.Decision) bool { return d.Allowed || d.Reason == policy.AskRule }

// admitted reports whether a peer of the fleet lets the member in. The files of others
// are not known; they decide when they are called.
func admitted(f *fleet.Fleet, m *fleet.Member, p *fleet.Peer, capability string) bool {
	if !p.InFleet {
		return true
	}
	e, err := policy.Explain(f, m.Address, p.Address, capability)
	return err != nil || e.Callee == nil || reachable(*e.Callee)
}

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
		peer, admits := Peer{Address: p.Address}, admission(f, m, p)
		for _, c := range p.Document.Capabilities {
			if reachable(rules.Decide(p.Address, c.Name)) && admits(c.Name) {
				peer.Capabilities = append(peer.Capabilities, c)
			}
		}
		all = append(all, peer)
	}
	return all
}

// reachable reports whether a call can be allowed, at once or by a person.
func reachable(d policy.Decision) bool { return d.Allowed || d.Reason == policy.AskRule }

// admission reports for each capability of a peer whether the peer lets the member in. The
// files of agents outside of the fleet are not known; they decide when they are called.
func admission(f *fleet.Fleet, m *fleet.Member, p *fleet.Peer) func(capability string) bool {
	callee, ok := f.Member(p.Address.ID())
	if !ok {
		return func(string) bool { return true }
	}
	if callee.ClientOnly() {
		return func(string) bool { return false }
	}
	rules, err := policy.NewCalleeRules(callee)
	return func(capability string) bool { return err != nil || reachable(rules.Decide(m.Address, capability)) }
}

package policy

import (
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
)

// Reach returns which agents the permissions of a fleet allow to call each other at
// all: may is true when from may call some capability of to, perhaps after a person
// has approved. The broker's permissions are derived from it, so that in doubt it
// is true: a peer whose contract is not known may have any capability. Agents that
// are not members call nobody. The error names the place of a malformed pattern.
func Reach(f *fleet.Fleet) (may func(from, to envelope.Address) bool, err error) {
	reached := map[[2]envelope.Address]bool{}
	for _, m := range f.Members {
		rules, err := NewCallerRules(m)
		if err != nil {
			return nil, err
		}
		for _, p := range m.Peers {
			pair := [2]envelope.Address{m.Address, p.Address}
			if p.Document == nil {
				reached[pair] = true
				continue
			}
			for _, c := range p.Document.Capabilities {
				d := rules.Decide(p.Address, c.Name)
				reached[pair] = reached[pair] || d.Allowed || d.Reason == AskRule
			}
		}
	}
	return func(from, to envelope.Address) bool { return reached[[2]envelope.Address{from, to}] }, nil
}

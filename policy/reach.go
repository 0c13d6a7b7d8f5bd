package policy

import (
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
)

// Reach says which agents the permissions of a fleet let call each other at all:
// may is true when from may call any capability of to, or may after a person's
// word. Of a peer whose contract is not known, any capability may be there. Agents
// that are no members call nobody. The error names the place of a pattern that is
// none.
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

package fleetlint

import (
	"slices"
	"strings"

	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/policy"
)

// rules are what decides about the calls of one member, at its two ends of a call.
type rules struct {
	caller *policy.CallerRules
	callee *policy.CalleeRules // nil for a member that offers nothing
}

// readRules reads the rules of every member. ok is false when one has a pattern that
// cannot be read, which is then reported.
func (c *checker) readRules() (all map[*fleet.Member]rules, ok bool) {
	all, ok = map[*fleet.Member]rules{}, true
	for _, m := range c.fleet.Members {
		var r rules
		var err error
		if r.caller, err = policy.NewCallerRules(m); err == nil && !m.ClientOnly() {
			r.callee, err = policy.NewCalleeRules(m)
		}
		if err != nil {
			c.fail(PermissionMalformed, m.Position, "", "%s", err)
			ok = false
		}
		all[m] = r
	}
	return all, ok
}

// calls reports agents that exist to call others and cannot, calls that are denied
// whoever makes them, and rules that permit none.
func (c *checker) calls() {
	all, ok := c.readRules()
	if !ok {
		return
	}
	c.scopes(all)
	members := c.fleet.Members
	idle := slices.DeleteFunc(slices.Clone(members), func(m *fleet.Member) bool { return c.callsSomebody(m, all) })
	switch {
	case len(members) == 0:
		c.warn(CallNone, c.manifest(), "list its agents under agents", "the fleet has no agents: nothing runs")
		return
	// A single agent that serves others is called from elsewhere.
	case len(members) == 1 && !members[0].ClientOnly():
	case len(idle) == len(members):
		c.warn(CallNone, members[0].Position, c.remedy(), "no agent of this fleet can call anybody")
		return
	default:
		for _, m := range idle {
			if m.ClientOnly() {
				c.warn(CallNone, m.Position, c.remedy(), "agent %q offers no capabilities, and can call nobody", m.ID)
			}
		}
	}
	for _, m := range members {
		c.unserved(m)
		if !slices.Contains(idle, m) {
			c.unmatched(m)
		}
	}
}

// callsSomebody reports whether the files of both ends let m make any call.
func (c *checker) callsSomebody(m *fleet.Member, all map[*fleet.Member]rules) bool {
	return slices.ContainsFunc(m.Peers, func(p *fleet.Peer) bool {
		callee, inFleet := c.fleet.Member(p.Address.ID())
		switch {
		case callee == m: // members share files, and so find themselves listed
			return false
		case p.Document == nil:
			return !inFleet // a foreign agent may offer anything; a member offers nothing
		}
		return slices.ContainsFunc(p.Document.Names(), func(name string) bool {
			d := all[m].caller.Decide(p.Address, name)
			if !d.Allowed && d.Reason != policy.AskRule {
				return false
			}
			// What a foreign agent permits is not known, and a member may serve less
			// than the file that its caller pins.
			return !inFleet || callee.ClientOnly() || serves(all[callee].callee.Decide(m.Address, name))
		})
	})
}

// serves leaves out a missing scope, which is a finding of its own, about the callee.
func serves(d policy.Decision) bool {
	return d.Allowed || d.Reason == policy.ScopeMissing || d.Reason == policy.AskRule
}

// remedy says what calls lack: peers, or permissions for them.
func (c *checker) remedy() string {
	for _, m := range c.fleet.Members {
		if len(m.Peers) > 0 {
			return "`agentd permissions explain <from> <to> <capability>` names the rule that decides"
		}
	}
	return "list the agents that may be called in rpc-peers.yaml beside fleet.yaml"
}

// unmatched reports the rules of a member that allow no call which it could make.
// Rules that deny may stand there for peers to come.
func (c *checker) unmatched(m *fleet.Member) {
	if m.Agent.Permissions == nil {
		return
	}
	var targets []string
	for _, p := range m.Peers {
		if p.Document == nil && !p.InFleet {
			return // its capabilities, and so the possible calls, are not known
		}
		if p.Document == nil {
			continue
		}
		for _, name := range p.Document.Names() {
			targets = append(targets, policy.Target(p.Address, name))
		}
	}
	for _, r := range slices.Concat(m.Agent.Permissions.Allow, m.Agent.Permissions.Ask) {
		glob, err := policy.ParseGlob(r.Pattern)
		// Other tools' rules belong to the reference runtime.
		if err != nil || !strings.HasPrefix(r.Pattern, "RequestAgent:") || slices.ContainsFunc(targets, glob.Match) {
			continue
		}
		c.warn(PermissionUnmatched, r.Position, "`agentd fleet graph` shows who offers what", "the rule %q matches no capability of a peer", r.Pattern)
	}
	c.unmatchedClients(m, targets)
}

// unmatchedClients reports rules that would give clients of a member's faces something, and match no call. targets are what the member's own rules are matched against.
func (c *checker) unmatchedClients(m *fleet.Member, targets []string) {
	mcp, control := m.Agent.Permissions.Clients, m.Agent.Permissions.Control
	for _, r := range slices.Concat(mcp.Allow, mcp.Ask, control.Allow, control.Ask) {
		// Which clients there are was checked by the load: what counts is the rest.
		_, target, _ := strings.Cut(r.Pattern, "/")
		glob, err := policy.ParseGlob("RequestAgent:" + target)
		if err != nil || strings.Contains(r.Pattern, "**") || slices.ContainsFunc(targets, glob.Match) {
			continue
		}
		c.warn(PermissionUnmatched, r.Position, "`agentd fleet graph` shows who offers what", "the rule %q matches no capability of a peer", r.Pattern)
	}
}

// unserved reports the rules of a member that ask about calls of capabilities which it
// does not offer. The callers are not judged: they may be of another fleet.
func (c *checker) unserved(m *fleet.Member) {
	if m.Agent.Permissions == nil {
		return
	}
	var offered []string
	if !m.ClientOnly() {
		offered = m.Capabilities.Names()
	}
	for _, r := range m.Agent.Permissions.Serve {
		name := r.Pattern[strings.LastIndexByte(r.Pattern, '/')+1:]
		glob, err := policy.ParseGlob(name)
		if err != nil || strings.Contains(name, "**") && len(offered) > 0 || slices.ContainsFunc(offered, glob.Match) {
			continue
		}
		c.warn(PermissionUnmatched, r.Position, "`agentd fleet graph` shows who offers what", "the rule %q matches no capability of the agent: nobody would be asked", r.Pattern)
	}
}

// scopes reports the capabilities that need what their agent has not been granted.
func (c *checker) scopes(all map[*fleet.Member]rules) {
	for _, m := range c.fleet.Members {
		if m.ClientOnly() {
			continue
		}
		for _, offered := range m.Capabilities.Capabilities {
			if scope := all[m].callee.MissingScope(offered.Name); scope != "" {
				c.warn(ScopeUngranted, offered.Position, "add it to scopes in "+c.show(m.Agent.Path),
					"the capability %q needs the scope %q, which agent %q does not grant: every call to it is denied", offered.Name, scope, m.ID)
			}
		}
	}
}

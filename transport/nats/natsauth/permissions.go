package natsauth

import (
	"slices"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
)

// callersOf are the members that may call each member, or witness its log for it, over
// NATS, in declared order. A fleet has many members with few peers each: nobody looks at
// all pairs of them.
func callersOf(f *fleet.Fleet, opts Options) map[envelope.Address][]string {
	callers := make(map[envelope.Address][]string, len(f.Members))
	for _, m := range f.Members {
		for _, p := range m.Peers {
			if p.InFleet && p.Address != m.Address && len(natsSubjects(p.Transports)) > 0 &&
				(opts.allows(m.Address, p.Address) || witnesses(m, p.Address)) {
				callers[p.Address] = append(callers[p.Address], m.ID)
			}
		}
	}
	return callers
}

// answerSubjects are the subjects to which a callee publishes its answers and progress,
// and on which it checks whether its callers are still connected: the inboxes of the
// members that may call it, those of the observer, and what its peers file lists.
//
// The list takes the place of nats-server's allow_responses, which allows whatever reply
// subject a request names, past every deny list: a caller could name the subject of
// another agent.
func answerSubjects(callee *fleet.Member, callers []string) []string {
	var all []string
	listed := make(map[string]bool, len(callers)+1)
	add := func(subject string) {
		if !listed[subject] {
			listed[subject] = true
			all = append(all, subject)
		}
	}
	add(InboxPrefix(ObserverKey) + ".>")
	for _, id := range callers {
		add(InboxPrefix(id) + ".>")
	}
	for _, p := range callee.Peers {
		for _, subject := range p.ReplyTopics {
			add(subject)
		}
	}
	return all
}

// sharesLimits reports whether the member's replicas count calls together.
func sharesLimits(m *fleet.Member) bool {
	return slices.ContainsFunc(m.Capabilities.Capabilities, func(c *capability.Capability) bool {
		return c.RateLimit != nil && c.RateLimit.Shared
	})
}

// witnesses reports whether an agent is a witness of the member's audit log.
func witnesses(m *fleet.Member, a envelope.Address) bool {
	return slices.ContainsFunc(m.Agent.Audit.Witnesses, func(w fleet.Witness) bool { return w.Address == a })
}

// mayKeepRequests reports whether a peer may keep requests. One whose contract is not
// known here may.
func mayKeepRequests(d *capability.Document) bool { return d == nil || d.KeepsRequests() }

// requestSubjects are the subjects where a member accepts requests.
func requestSubjects(m *fleet.Member) []string {
	if m.ClientOnly() {
		return nil
	}
	return natsSubjects(m.Capabilities.Transports)
}

// natsSubjects are the subjects of requests among transports, each once.
func natsSubjects(transports []capability.TransportSpec) []string {
	var out []string
	for _, t := range transports {
		if t.Kind == capability.NATS && !slices.Contains(out, t.Requests) {
			out = append(out, t.Requests)
		}
	}
	return out
}

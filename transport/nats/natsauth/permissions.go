package natsauth

import (
	"slices"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
)

// answerSubjects are the subjects to which a callee publishes its answers and progress,
// and on which it checks whether its callers are still connected: the inboxes of the
// members that may call it, those of the observer, and what its peers file lists.
//
// The list takes the place of nats-server's allow_responses, which allows whatever reply
// subject a request names, past every deny list: a caller could name the subject of
// another agent.
func answerSubjects(f *fleet.Fleet, callee *fleet.Member, opts Options) []string {
	all := []string{InboxPrefix(ObserverKey) + ".>"}
	for _, m := range f.Members {
		if m.Address == callee.Address {
			continue
		}
		p, ok := m.Peer(callee.Address)
		if ok && len(natsSubjects(p.Transports)) > 0 && (opts.allows(m.Address, callee.Address) || witnesses(m, callee.Address)) {
			all = append(all, InboxPrefix(m.ID)+".>")
		}
	}
	for _, p := range callee.Peers {
		for _, subject := range p.ReplyTopics {
			if !slices.Contains(all, subject) {
				all = append(all, subject)
			}
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

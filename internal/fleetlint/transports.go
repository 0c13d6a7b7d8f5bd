package fleetlint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/transport"
)

// spoken reports whether agentd speaks a kind of transport.
func spoken(kind capability.TransportKind) bool {
	return kind == capability.Memory || kind == capability.NATS
}

// transports reports where requests cannot arrive: at the member's own end, and at
// the other ends that its peers file names.
func (c *checker) transports() {
	takes := map[string]*fleet.Member{}
	for _, m := range c.fleet.Members {
		if m.ClientOnly() {
			continue
		}
		who := fmt.Sprintf("agent %q takes requests", m.ID)
		c.kinds(m.Capabilities.Transports, who, "it does not start")
		for _, t := range m.Capabilities.Transports {
			if !c.subject(t) {
				continue
			}
			if other := takes[t.Address()]; other != nil {
				c.warn(TransportShared, t.Position, fmt.Sprintf("such as agents.%s.requests", m.ID),
					"the agents %q and %q both take requests at %s, and get each other's", other.ID, m.ID, t.Requests)
				continue
			}
			takes[t.Address()] = m
		}
		c.lacks(m)
	}
	for _, m := range c.fleet.Members {
		for _, p := range m.Peers {
			c.kinds(p.Transports, fmt.Sprintf("%s is reached", p.Address), "every call to it ends as EAGENTRPC_NO_TRANSPORT")
			callee, _ := c.fleet.Member(p.Address.ID())
			for _, t := range p.Transports {
				if c.subject(t) && callee != nil && !callee.ClientOnly() {
					c.mismatch(callee, t)
				}
			}
			for _, topic := range p.ReplyTopics {
				c.replies(p, topic)
			}
		}
	}
}

// kinds reports transports that agentd does not speak: all of them is what stops
// calls; one beside others is passed over.
func (c *checker) kinds(all []capability.TransportSpec, who, consequence string) {
	var unknown []string
	for _, t := range all {
		if !spoken(t.Kind) {
			unknown = append(unknown, string(t.Kind))
		}
	}
	switch {
	case unknown == nil:
	case len(unknown) == len(all):
		c.warn(TransportUnsupported, all[0].Position, "add one of kind nats or memory",
			"%s by %s only, which agentd does not speak: %s", who, strings.Join(unknown, " and "), consequence)
	default:
		c.note(TransportUnsupported, all[0].Position, "", "%s by %s too, which agentd does not speak: it uses the others", who, strings.Join(unknown, " and "))
	}
}

// subject reports a subject that no broker takes, and returns whether it is fine. It
// says nothing about kinds that agentd does not speak.
func (c *checker) subject(t capability.TransportSpec) bool {
	if !spoken(t.Kind) {
		return false
	}
	if transport.CheckTopic("subscribe", t.Requests) != nil {
		c.fail(TransportSubject, t.Position, "parts of letters, digits, - and _ between single dots, such as agents.clerk.requests",
			"%q cannot be subscribed: a subject has no empty part, no white space and no wildcard", t.Requests)
		return false
	}
	if t.Kind == capability.NATS && (strings.HasPrefix(t.Requests, "$") || strings.HasPrefix(t.Requests, "_INBOX")) {
		c.warn(TransportSubject, t.Position, "such as agents.clerk.requests", "%q belongs to the NATS server: requests there reach no agent", t.Requests)
		return false
	}
	return true
}

// mismatch reports a subject of a peers file at which its agent takes no requests.
func (c *checker) mismatch(callee *fleet.Member, t capability.TransportSpec) {
	var takes []string
	for _, own := range callee.Capabilities.Transports {
		switch {
		case own.Kind != t.Kind:
		case transport.CheckTopic("subscribe", own.Requests) != nil:
			return // which is the fault to mend first
		default:
			takes = append(takes, own.Requests)
		}
	}
	switch {
	case takes == nil:
		c.warn(TransportMismatch, t.Position, "", "agent %q takes no requests by %s: calls this way find nobody", callee.ID, t.Kind)
	case !slices.Contains(takes, t.Requests):
		c.warn(TransportMismatch, t.Position, "write "+takes[0], "agent %q takes no requests at %s: calls this way find nobody", callee.ID, t.Requests)
	}
}

// replies reports a reply topic that takes in the requests of an agent. A peer that names
// it has others publish there in their own name: what they answer is then a request.
func (c *checker) replies(p *fleet.Peer, topic string) {
	parent, below := strings.CutSuffix(topic, ">")
	for _, m := range c.fleet.Members {
		if m.ClientOnly() {
			continue
		}
		for _, t := range m.Capabilities.Transports {
			if spoken(t.Kind) && (t.Requests == topic || below && strings.HasPrefix(t.Requests, parent)) {
				c.warn(TransportReplies, p.Position, "list topics at which nobody but the peer listens",
					"replyTopics of %s has %q, and agent %q takes requests at %s: an answer there would be a request", p.Address, topic, m.ID, t.Requests)
			}
		}
	}
}

// lacks reports capabilities that need what only NATS has.
func (c *checker) lacks(m *fleet.Member) {
	if slices.ContainsFunc(m.Capabilities.Transports, func(t capability.TransportSpec) bool { return t.Kind == capability.NATS }) {
		return
	}
	if i := m.Agent.Idempotency; i.Shared {
		c.warn(TransportLacks, i.Position, "add a transport of kind nats", "agent %q says `store: shared`, and is not on NATS, where its replicas could share it", m.ID)
	}
	for _, offered := range m.Capabilities.Capabilities {
		if offered.Delivery == capability.DeliveryDurable {
			c.warn(TransportLacks, offered.Position, "add a transport of kind nats", "the capability %q says `delivery: durable`, and agent %q is not on NATS, which keeps requests", offered.Name, m.ID)
		}
		if l := offered.RateLimit; l != nil && l.Shared {
			c.warn(TransportLacks, offered.Position, "add a transport of kind nats", "the rate limit of %q is shared, and agent %q is not on NATS, where its replicas could count together", offered.Name, m.ID)
		}
	}
}

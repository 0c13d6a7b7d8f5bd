package callee

import (
	"log/slog"
	"slices"
	"strings"

	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/rpc/internal/wire"
)

// replyTo has the answer go to topic, if that is the caller's. A caller that may not
// publish somewhere must not make this agent do it: the answer could be a request to
// another agent, or to the broker itself. So a foreign topic gets no answer at all,
// not even a refusal, and the attempt is recorded.
func (c *call) replyTo(topic string) bool {
	if c.ownsReply(topic) {
		c.replyTopic = topic
		return true
	}
	in := c.inbox
	c.logRefusal(slog.LevelWarn, "request dropped: its reply topic is not the caller's", "replyTopic", truncate.String(topic, wire.MaxName))
	why := &identity.Error{Reason: identity.ForeignReply, Peer: c.request.From}
	if err := in.verifier.Record(in.root, c.request, why); err != nil {
		c.log().Error("foreign reply topic not recorded", "error", err)
	}
	return false
}

// ownsReply reports whether a topic is the caller's, by the transport's rule or by the
// configuration.
func (c *call) ownsReply(topic string) bool {
	if c.transport.OwnsReply(c.request.From, topic) {
		return true
	}
	if c.inbox.cfg.ReplyTopics == nil {
		return false
	}
	return slices.ContainsFunc(c.inbox.cfg.ReplyTopics(c.request.From), func(allowed string) bool {
		parent, wildcard := strings.CutSuffix(allowed, ">")
		return topic == allowed || wildcard && len(topic) > len(parent) && strings.HasPrefix(topic, parent)
	})
}

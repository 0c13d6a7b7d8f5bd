package callee

import (
	"sync/atomic"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/check"
)

const (
	// maxInlineBytes bounds the payloads of requests that run where they arrive: to check
	// a larger one takes a while by itself.
	maxInlineBytes = 16 << 10
	// slowInline is how long an inline skill may run. Requests behind it wait as long.
	slowInline = 20 * time.Millisecond
	// slowInlineFor is how long one that took longer runs on workers, like any other.
	slowInlineFor = 10 * time.Second
)

// An inlineSkill is a skill that has promised to be quick, see [rpc.Inline]. Its requests
// run on the goroutine of the subscription that they come by. One that is slow all the same
// holds up the requests behind it once: after that it runs on workers for a while.
type inlineSkill struct {
	until atomic.Int64 // when it may run inline again, in Unix nanoseconds
}

// inlineSkills are those among handlers.
func inlineSkills(handlers map[string]rpc.Handler) map[string]*inlineSkill {
	all := map[string]*inlineSkill{}
	for name, h := range handlers {
		if rpc.IsInline(h) {
			all[name] = &inlineSkill{}
		}
	}
	return all
}

// runsHere reports whether a request that has been accepted runs on the goroutine of its
// subscription, which nothing but the skill may hold up. So it passes here what would
// refuse it, with a record on the disk, or make it wait; and where it does not pass, a
// worker begins again from the front. One that passes has its slot.
func (c *call) runsHere() bool {
	in := c.inbox
	if c.inline == nil || len(c.request.Payload) > maxInlineBytes || c.start.UnixNano() < c.inline.until.Load() {
		return false
	}
	_, keyed := c.request.Headers.Get(envelope.HeaderIdempotencyKey)
	switch {
	case keyed && in.cfg.Idempotency != nil, // on the disk, or at other replicas
		in.cfg.Replays != nil && c.proven, // at other replicas
		c.capability.RateLimit != nil && c.capability.RateLimit.Shared,
		check.Recordable(in.cfg.Records) != nil,
		!c.allowedAtOnce(),
		c.checkDigest() != nil,
		!c.validAtOnce():
		return false
	}
	return in.requests.beginNow(c)
}

// allowedAtOnce reports whether the permissions let the request pass without a person.
func (c *call) allowedAtOnce() bool {
	rules := c.inbox.cfg.Checks.Authorizer
	return rules == nil || rules.Decide(c.request.From, c.capability.Name).Allowed
}

// validAtOnce reports whether the payload is valid. validateRequest does not look again.
func (c *call) validAtOnce() bool {
	c.valid = check.Payload(&c.ctx, check.Contract(c.capability, rpc.SideRequest), c.payload(), rpc.SideRequest, c.capability.Name) == nil
	return c.valid
}

// noteInline has a skill that was slow run on workers for a while.
func (c *call) noteInline() {
	if c.worked < slowInline {
		return
	}
	c.inline.until.Store(time.Now().Add(slowInlineFor).UnixNano())
	c.log().Warn("an inline skill was slow: requests behind it had to wait, and it is not run inline for a while",
		"skill", c.capability.Skill, "took", c.worked.Round(time.Millisecond).String(), "for", slowInlineFor.String())
}

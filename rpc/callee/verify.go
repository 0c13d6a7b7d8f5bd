package callee

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/rpc"
)

// verify checks who sends a request and that it comes for the first time. It
// returns false for a request that has been dropped.
func (c *call) verify() bool {
	var err error
	if c.proven, err = c.inbox.verifier.Verify(c.request); err == nil && c.proven {
		err = c.checkFirst()
	}
	return c.passed(err)
}

// verifySender is verify for a request that has no effect, so that replaying it is
// harmless.
func (c *call) verifySender() bool {
	_, err := c.inbox.verifier.Verify(c.request)
	return c.passed(err)
}

// passed returns true for a nil error, and otherwise logs and records why the message
// is dropped.
func (c *call) passed(why error) bool {
	if why == nil {
		return true
	}
	in := c.inbox
	c.logRefusal(slog.LevelWarn, "message dropped: it does not prove its sender", "reason", why.Error())
	if err := in.verifier.Record(in.root, c.request, why); err != nil {
		c.log().Error("refused proof not recorded", "error", err)
	}
	return false
}

// checkFirst refuses a proven request that was accepted before. Requests without a
// proof are not remembered: strangers could fill the memory.
func (c *call) checkFirst() error {
	skew := c.inbox.limits.Load().ClockSkew
	deadline := time.UnixMilli(c.request.Deadline).Add(skew)
	refused := func(why identity.Reason) error {
		return &identity.Error{Peer: c.request.From, KeyID: c.request.Auth.KeyID, Reason: why}
	}
	if c.request.Deadline == 0 {
		return refused(identity.NoDeadline)
	}
	if deadline.After(c.start.Add(rpc.MaxTimeout + 2*skew)) {
		// It would have to be remembered for too long.
		return fmt.Errorf("%w: its deadline is in %s, and no call may take longer than %s: compare the clock of this host with that of its sender, one of them is probably wrong",
			refused(identity.NoDeadline), deadline.Sub(c.start).Round(time.Second), rpc.MaxTimeout)
	}
	// A late request needs no memory: its deadline refuses every replay as well.
	if !deadline.After(c.start) {
		return nil // setDeadline refuses it, with an answer
	}
	if isDurable(c.request) { // somebody took it out of its queue
		return refused(identity.Replayed)
	}
	// Last, so that nothing is remembered of a request that is refused anyway.
	first, full := c.inbox.replay.take(c.request.From, c.request.MessageID, deadline, c.start)
	switch {
	case full:
		return refused(identity.TooMany)
	case !first:
		return refused(identity.Replayed)
	}
	return nil
}

// A ReplayMemory remembers the proven requests that the replicas of an agent have
// accepted. It is safe for concurrent use.
type ReplayMemory interface {
	// Take remembers a request until a time. first is false for one that is remembered
	// already.
	Take(ctx context.Context, from envelope.Address, messageID string, until time.Time) (first bool, err error)
}

// checkReplicas refuses a proven request that another replica has accepted. It asks the
// network, so it runs on a worker, after all that may refuse the request for less. Like
// every message that does not prove its sender, a replay gets no answer.
func (c *call) checkReplicas() *rpc.Error {
	in := c.inbox
	// A request of a queue may come again; see verifyQueued.
	if in.cfg.Replays == nil || !c.proven || c.delivery != nil {
		return nil
	}
	until := time.UnixMilli(c.request.Deadline).Add(in.limits.Load().ClockSkew)
	first, err := in.cfg.Replays.Take(&c.ctx, c.request.From, c.request.MessageID, until)
	switch {
	case err != nil:
		if late := c.interruptedUnrun("the deadline passed before the skill could begin"); late != nil {
			return late
		}
		c.logUnkept(err)
		return rpc.NewError(rpc.CodeInternal, err, "%s cannot tell now whether another replica has served this message", in.cfg.Self).Explain()
	case !first:
		c.dropped = true
		c.passed(&identity.Error{Peer: c.request.From, KeyID: c.request.Auth.KeyID, Reason: identity.Replayed})
		return rpc.NewError(rpc.CodeAuthFailed, nil, "the message was served before")
	}
	return nil
}

// isDurable reports whether the caller gave the request to a queue. The header is
// signed with the rest, so a request cannot be served by both ways.
func isDurable(e *envelope.Envelope) bool {
	v, _ := e.Headers.Get(envelope.HeaderDelivery)
	return v == envelope.DeliveryDurable
}

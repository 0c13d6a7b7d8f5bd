package caller

import (
	"context"
	"strconv"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
)

// A run is what is known of the skill's run behind a call. All but ran is about the
// last request.
type run struct {
	replied  bool          // there was a reply
	reported bool          // which says how long the skill ran
	took     time.Duration // so long
	replayed bool          // the reply repeats an earlier one
	ran      bool          // the skill is known to have run, for any request of the call
}

// maxDeliveries bounds what a callee can claim as the number of a delivery.
const maxDeliveries = 1 << 20

// readRun reads what a reply reports of the skill's run. The headers are the peer's
// word: values that make no sense are ignored.
func (c *call) readRun(h envelope.Headers) {
	c.run = run{replied: true, ran: c.run.ran}
	text, _ := h.Get(envelope.HeaderExecution)
	if us, err := strconv.ParseInt(text, 10, 64); err == nil && us >= 0 && us <= rpc.MaxTimeout.Microseconds() {
		c.run.reported, c.run.took = true, time.Duration(us)*time.Microsecond
	}
	replayed, _ := h.Get(envelope.HeaderReplayed)
	c.run.replayed = replayed == "true"
	if c.delivery == "" {
		return
	}
	// A queue repeats requests on its own; only the callee knows how often.
	text, _ = h.Get(envelope.HeaderAttempt)
	if n, err := strconv.Atoi(text); err == nil && n > 1 && n <= maxDeliveries {
		c.attempted = n
	}
}

// noteOutcome notes whether the skill has run, by the reply and what came of it.
// Peers of the reference system report no execution time: there the outcome tells.
func (r *run) noteOutcome(err *rpc.Error) {
	switch {
	case !r.replied || r.replayed:
	case r.reported, err == nil,
		err.Code == rpc.CodeHandlerError, err.Code == rpc.CodeBadSkillOutput, err.Side == rpc.SideResponse:
		r.ran = true
	}
}

// maxReplyMargin bounds the time that a callee has for reporting that it ran out of
// time.
const maxReplyMargin = 50 * time.Millisecond

// replyMargin is how much earlier than its caller a callee stops, of the time that a
// request has. Otherwise the caller would give up at the very moment at which the
// callee reports that the skill ran out of time, and never learn how long it ran.
func replyMargin(left time.Duration) time.Duration { return min(maxReplyMargin, max(left, 0)/20) }

// asTimeout makes the callee's report that it ran out of time, which the margin
// brings a little early, the timeout that it is at this end.
func (c *call) asTimeout(err *rpc.Error) *rpc.Error {
	if err == nil || err.Code != rpc.CodeDeadlineExceeded || time.Until(c.until) > maxReplyMargin {
		return err
	}
	return c.timedOut(context.DeadlineExceeded)
}

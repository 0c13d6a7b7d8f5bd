package callee

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/google/uuid"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/wire"
)

// errGoexit is the failure of a handler that ended its goroutine.
var errGoexit = errors.New("the skill ended its goroutine without an answer")

// runSkill runs the handler, from start, which is now.
func (c *call) runSkill(start time.Time) (json.RawMessage, *rpc.Error) {
	answer, err := c.handle(start)
	if err != nil {
		failed := c.skillError(err)
		c.endRun(start, failed)
		return nil, failed
	}
	c.endRun(start, nil)
	return answer, nil
}

// handle calls the handler. A panic of the handler is an error like any other.
func (c *call) handle(start time.Time) (answer json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the skill panicked: %v\n%s", p, debug.Stack())
		}
	}()
	key, _ := c.request.Headers.Get(envelope.HeaderIdempotencyKey)
	c.invocation = rpc.Invocation{
		From: c.request.From, Proven: c.proven, Capability: c.capability.Name, Payload: c.request.Payload,
		MessageID: c.request.MessageID, CorrelationID: c.request.CorrelationID,
		TenantID: c.request.TenantID, SessionID: c.session(), Traceparent: c.beginRun(), Tracestate: c.tracestate(),
		IdempotencyKey: key, Hops: wire.Hops(c.request.Headers), Deadline: c.deadline,
		Event: c.waitsForNothing(), Inline: c.inline != nil,
	}
	if p := newProgressPublisher(c); p != nil {
		c.invocation.Reporter = p
		defer p.close() // before the reply
	}
	c.ctx.invocation = &c.invocation
	c.began = true
	defer func() { c.worked = time.Since(start) }()
	return c.served.handlers[c.capability.Skill].Handle(&c.ctx, &c.invocation)
}

// skillError decides what the caller may learn of a handler's failure. Only a
// SkillError's message travels; all else goes to the log, under an incident id that
// the caller can quote.
func (c *call) skillError(err error) *rpc.Error {
	var public *rpc.SkillError
	if errors.As(err, &public) {
		return publicError(public, err)
	}
	if e := c.interrupted("the skill did not answer before the deadline"); e != nil {
		return e
	}
	c.incident = newIncident()
	return rpc.NewError(rpc.CodeHandlerError, err, "the skill failed (incident %s in the log of %s)", c.incident, c.inbox.cfg.Self)
}

// newIncident names a failure in the log: the random end of a UUID, short enough to
// be read out.
func newIncident() string { return uuid.NewString()[28:] }

// logFailure logs err where it is the skill's own failure, with what the caller does
// not learn, and returns it. The caller gets the incident's id in the details.
func (c *call) logFailure(err *rpc.Error) *rpc.Error {
	switch err.Code {
	case rpc.CodeHandlerError, rpc.CodeBadSkillOutput, rpc.CodeSchemaViolation, rpc.CodePayloadTooLarge:
	default: // the call has ended, or its record could not be written
		return err
	}
	if c.incident == "" {
		c.incident = newIncident()
	}
	if err.Details == nil {
		err.Details = json.RawMessage(`{"incident":"` + c.incident + `"}`)
	}
	why := err.Message
	if cause := err.Unwrap(); cause != nil {
		why = cause.Error()
	}
	c.log().Error("skill failed", "incident", c.incident, "code", err.Code.String(), "error", why)
	return err
}

package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/transport"
)

// An inboundCall is one request on its way through the callee's end.
type inboundCall struct {
	inbox      *Inbox
	transport  transport.Transport
	request    *envelope.Envelope
	replyTopic string // "" for an event
	start      time.Time
	delivery   transport.Delivery // nil for a request that no queue keeps

	next *inboundCall // in the queue of workers

	offer    *offer // what was served when the call came in
	function *capability.Capability
	ctx      callContext
	deadline time.Time

	invocation Invocation // what the handler gets

	absent   int           // looks in a row that found no caller; the watcher's own
	began    bool          // the skill was run
	worked   time.Duration // what the skill took
	replayed bool          // the answer is that of an earlier request
}

// findReplyTopic decides where the answer goes, and says why it cannot.
func (c *inboundCall) findReplyTopic(brokerReply string) (why string) {
	if c.request.Kind == envelope.Event {
		return ""
	}
	kind, topic, ok := strings.Cut(c.request.ReplyTo, "://")
	switch {
	case ok && kind == c.transport.Kind():
		c.replyTopic = topic
	case !ok && brokerReply != "":
		c.replyTopic = brokerReply
	case ok:
		return "its replyTo is on another transport than the request"
	default:
		return "a request without replyTo waits for nothing"
	}
	return ""
}

// admit makes the checks that are quick, in the order of the design, and
// registers the call as running.
func (c *inboundCall) admit() *Error {
	cfg := &c.inbox.cfg
	if err := c.addressed(); err != nil {
		return err
	}
	if hops(c.request.Headers) > cfg.MaxHops {
		return newError(CodeHopLimit, nil, "more than %d calls led to this one: a loop?", cfg.MaxHops)
	}
	var ok bool
	c.offer = c.inbox.offer.Load()
	if c.function, ok = c.offer.contract.Lookup(c.request.Capability); !ok {
		return newError(CodeNoCapability, nil, "%s declares no capability %q", cfg.Self, cut(c.request.Capability, 128))
	}
	if err := c.setDeadline(time.Now()); err != nil {
		return err
	}
	c.ctx.root, c.ctx.deadline = c.inbox.root, c.deadline
	if err := c.inbox.start(c); err != nil {
		c.ctx.end(nil)
		return err
	}
	return nil
}

// addressed checks that the request is for this agent and its tenant.
func (c *inboundCall) addressed() *Error {
	cfg := &c.inbox.cfg
	if !validTenant(c.request.TenantID) {
		return newError(CodeInvalidRequest, nil, "tenantId: must have at most %d bytes and no control character", maxTenantBytes)
	}
	if cfg.TenantID != "" && c.request.TenantID != cfg.TenantID {
		return newError(CodeTenantMismatch, nil, "%s does not serve this tenant", cfg.Self)
	}
	if err := c.checkVersion(); err != nil {
		return err
	}
	if c.request.To != cfg.Self {
		return newError(CodeMisaddressed, nil, "this is %s, and the request is for %s", cfg.Self, c.request.To)
	}
	return nil
}

// maxTenantBytes bounds a tenant's name.
const maxTenantBytes = 1024

// validTenant reports whether a name can stand in a record. Requests under others are
// refused: they would be served without one.
func validTenant(name string) bool {
	for i := range len(name) {
		if name[i] < 0x20 || name[i] == 0x7f {
			return false
		}
	}
	return len(name) <= maxTenantBytes
}

// recordedTenant is the tenant of a message that may be refused for it.
func recordedTenant(name string) string {
	if !validTenant(name) {
		return ""
	}
	return name
}

// setDeadline holds the callee to the caller's deadline, and a caller that
// sets none to the capability's own.
func (c *inboundCall) setDeadline(now time.Time) *Error {
	if c.request.Deadline == 0 {
		c.deadline = now.Add(timeout(0, c.function.Timeout))
		return nil
	}
	c.deadline = time.UnixMilli(c.request.Deadline).Add(c.inbox.cfg.ClockSkew)
	if !c.deadline.After(now) {
		return newError(CodeDeadlineExceeded, context.DeadlineExceeded, "the request arrived after its deadline")
	}
	latest := now.Add(MaxTimeout)
	if c.delivery != nil { // its deadline says until when the answer is of use
		latest = now.Add(timeout(0, c.function.Timeout))
	}
	if c.deadline.After(latest) {
		c.deadline = latest
	}
	return nil
}

// serveCounted is serve for a request that admit has counted among the running.
func (c *inboundCall) serveCounted() {
	defer c.inbox.done.Done()
	c.serve()
}

// serve takes a request from its permissions to its reply.
func (c *inboundCall) serve() {
	defer c.ctx.end(nil)
	data, err := c.run()
	// Before the reply: whoever gets it may call again at once.
	c.inbox.forget(c)
	c.finish(data, err)
}

// finish replies to a request, once, and tells the access log.
func (c *inboundCall) finish(data json.RawMessage, err *Error) {
	switch {
	case c.delivery != nil:
		c.finishDelivery(data, err)
	case err == nil:
		err = c.reply(okReply(data))
	case err.Code == CodeCancelled:
		// Nobody waits for an answer.
	default:
		_ = c.reply(errorReply(c.refuse(err))) // err is the outcome already
	}
	c.record(err)
}

func (c *inboundCall) run() (json.RawMessage, *Error) {
	if err := unrecorded(c.inbox.cfg.Access); err != nil {
		return nil, err
	}
	if err := c.authorize(); err != nil {
		return nil, err
	}
	if err := c.checkDigest(); err != nil {
		return nil, err
	}
	return c.once(c.work)
}

// work passes the limits and runs the skill.
func (c *inboundCall) work() (json.RawMessage, *Error) {
	if err := c.limit(); err != nil {
		return nil, err
	}
	release, err := c.occupy()
	if err != nil {
		return nil, err
	}
	defer release()
	return c.answer()
}

// answer validates the request, runs the skill and validates what it says.
func (c *inboundCall) answer() (json.RawMessage, *Error) {
	if c.request.Payload == nil {
		c.request.Payload = json.RawMessage("null")
	}
	if err := c.validate(SideRequest, c.request.Payload); err != nil {
		return nil, err
	}
	if c.ctx.Err() != nil { // it took that long to get here: nobody waits any more
		if err := c.interrupted("the deadline passed before the skill could begin"); err != nil {
			return nil, err
		}
	}
	data, err := c.handle()
	if err != nil {
		return nil, c.skillError(err)
	}
	if n, most := len(data), c.inbox.cfg.MaxPayloadBytes; n > most {
		return nil, newError(CodePayloadTooLarge, nil, "the skill answered %d bytes, and %d are allowed", n, most)
	}
	if err := c.validate(SideResponse, data); err != nil {
		if err.Code == CodeInvalidPayload {
			return nil, newError(CodeBadSkillOutput, err, "the skill's answer is not JSON")
		}
		return nil, err
	}
	return data, nil
}

// validate checks one side; a violation is durable before it is returned.
func (c *inboundCall) validate(side Side, payload []byte) *Error {
	err := validate(contractOf(c.function, side), payload, side, c.function.Name)
	if err == nil || err.Code != CodeSchemaViolation {
		return err
	}
	aerr := audit(&c.ctx, c.inbox.cfg.Auditor, SchemaViolation{
		TenantID: c.request.TenantID, Capability: c.function.Name, Peer: c.request.From,
		Side: side, Violations: err.Violations, Payload: payload,
		CorrelationID: c.request.CorrelationID, SessionID: c.session(),
	})
	if aerr != nil {
		return aerr
	}
	return err
}

func (c *inboundCall) session() string {
	s, _ := c.request.Headers.Get(envelope.HeaderSession)
	return s
}

// handle runs the skill. A panic of it is an error like any other.
func (c *inboundCall) handle() (data json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the skill panicked: %v\n%s", p, debug.Stack())
		}
	}()
	trace, _ := c.request.Headers.Get(envelope.HeaderTraceparent)
	key, _ := c.request.Headers.Get(envelope.HeaderIdempotencyKey)
	c.invocation = Invocation{
		From: c.request.From, Capability: c.function.Name, Payload: c.request.Payload,
		MessageID: c.request.MessageID, CorrelationID: c.request.CorrelationID,
		TenantID: c.request.TenantID, SessionID: c.session(), Traceparent: trace,
		IdempotencyKey: key, Hops: hops(c.request.Headers), Deadline: c.deadline,
		Event: c.request.Kind == envelope.Event, progress: newProgressTeller(c),
	}
	c.ctx.invocation = &c.invocation
	defer c.invocation.progress.close() // before the reply
	c.began = true
	start := time.Now()
	defer func() { c.worked = time.Since(start) }()
	return c.offer.handlers[c.function.Skill].Handle(&c.ctx, &c.invocation)
}

// skillError decides what the caller may know of a handler's failure. Its own
// words reach only the log.
func (c *inboundCall) skillError(err error) *Error {
	var public *SkillError
	if errors.As(err, &public) {
		if public.Err != nil {
			c.logFailure("", public)
		}
		code := public.Code
		if code != CodeBadSkillOutput && code != CodeDeadlineExceeded {
			code = CodeHandlerError
		}
		e := newError(code, err, "%s", cut(public.Message, maxRemoteText))
		e.Retryable = public.Retryable
		return e
	}
	if e := c.interrupted("the skill did not answer before the deadline"); e != nil {
		return e
	}
	incident := fmt.Sprintf("%08x", rand.Uint32())
	c.logFailure(incident, err)
	return newError(CodeHandlerError, err, "the skill failed (incident %s in the log of %s)", incident, c.inbox.cfg.Self)
}

func (c *inboundCall) logFailure(incident string, err error) {
	c.inbox.cfg.Logger.Error("skill failed", "capability", c.request.Capability, "from", c.request.From,
		"correlationId", c.request.CorrelationID, "incident", incident, "error", err.Error())
}

// refuse marks err as this agent's and logs it.
func (c *inboundCall) refuse(err *Error) *Error {
	err.DetectedBy = c.inbox.cfg.Self
	c.inbox.cfg.Logger.Info("request refused", "from", c.request.From, "capability", cut(c.request.Capability, 128),
		"correlationId", c.request.CorrelationID, "code", err.Code.String(), "reason", err.Message)
	return err
}

// reply publishes the answer to a request; an event has none. An answer that the
// transport does not carry is replaced by the error that is returned.
func (c *inboundCall) reply(r reply) (instead *Error) {
	if c.replyTopic == "" {
		return nil
	}
	data, err := c.encodeReply(r)
	if err == nil && len(data) > c.transport.MaxMessageBytes() {
		instead = c.refuse(newError(CodePayloadTooLarge, nil,
			"the reply has %d bytes, and the transport carries %d", len(data), c.transport.MaxMessageBytes()))
		data, err = c.encodeReply(errorReply(instead))
	}
	if err == nil {
		err = c.transport.Publish(c.inbox.answering, transport.Message{Topic: c.replyTopic, Data: data})
	}
	if err != nil {
		c.inbox.cfg.Logger.Error("reply not sent", "to", c.request.From, "correlationId", c.request.CorrelationID, "error", err)
	}
	return instead
}

func (c *inboundCall) encodeReply(r reply) ([]byte, error) {
	var headers [3]envelope.Header
	e := envelope.Envelope{
		Kind: envelope.Response, MessageID: c.inbox.ids.one(), CorrelationID: c.request.CorrelationID,
		CausedBy: c.request.MessageID, From: c.inbox.cfg.Self, To: c.request.From,
		Capability: c.request.Capability, TenantID: c.request.TenantID, Headers: headers[:0], Payload: r.value,
	}
	e.WrapPayload(r.before, r.after)
	if trace, ok := c.request.Headers.Get(envelope.HeaderTraceparent); ok {
		e.Headers = append(e.Headers, envelope.Header{Key: envelope.HeaderTraceparent, Value: trace})
	}
	if c.began {
		e.Headers = append(e.Headers, envelope.Header{Key: envelope.HeaderExecution, Value: strconv.FormatInt(c.worked.Microseconds(), 10)})
	}
	if c.replayed {
		e.Headers = append(e.Headers, envelope.Header{Key: envelope.HeaderReplayed, Value: "true"})
	}
	return seal(c.inbox.cfg.Identity, &e)
}

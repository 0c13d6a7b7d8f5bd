package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/transport"
)

// RequestAgent makes one call and waits for its outcome. The result is never
// nil. The error is nil exactly when the status is ok, and otherwise the result's
// own [*Error].
//
// Nothing of the call reaches the broker before every check of this end has
// passed. The call ends at the earliest of its timeout, the context's deadline
// and the reply; a caller that stops waiting cancels the callee's skill.
func (c *Client) RequestAgent(ctx context.Context, r Request) (*Result, error) {
	call := newOutboundCall(c, r, c.newIDs())
	call.parent = InvocationFrom(ctx)
	result := &Result{CorrelationID: call.ids.correlation}
	var err *Error
	result.Response, err = call.run(ctx)
	result.Latency = time.Since(call.start)
	result.ExecutionTime, result.Replayed = call.executed, call.replayed
	if call.function != nil {
		result.CostEstimate = call.function.Cost
	}
	if err != nil {
		_, _ = result.fail(err, c.cfg.Self)
		call.record(result)
		return result, err
	}
	result.Status, result.Queued = StatusOK, call.queued
	call.record(result)
	return result, nil
}

// ids are fresh for every call: two calls of one turn never collide.
type ids struct{ message, correlation string }

func (c *Client) newIDs() ids {
	message, correlation := c.ids.two()
	return ids{message: message, correlation: correlation}
}

// An outboundCall is one call on its way through the caller's end.
type outboundCall struct {
	client  *Client
	request Request
	ids     ids
	start   time.Time
	parent  *Invocation // the invocation that makes this nested call, or nil

	peer     Peer
	line     line
	function *capability.Capability // nil when the peer's contract is not known
	digest   string                 // of the peer's own capability, where the gate knows it
	trace    string                 // the traceparent, once there is one
	deadline time.Time              // of the call
	until    time.Time              // of this attempt, not after deadline

	attempted int    // attempts made
	failures  []Code // of those that another followed

	approved time.Time     // when a person let it go on, if one had to
	executed time.Duration // what the last reply says that the skill took
	replayed bool          // the last reply repeats an earlier one
	queued   bool          // the answer is to be awaited
	delivery string        // envelope.DeliveryDurable once the request goes to a queue
}

func newOutboundCall(c *Client, r Request, ids ids) *outboundCall {
	return &outboundCall{client: c, request: r, ids: ids, start: time.Now()}
}

// run is the path of a call, in order: resolve, permissions, gate, payload, and
// then, attempt by attempt, limits, reserve, publish, await.
func (c *outboundCall) run(ctx context.Context) (json.RawMessage, *Error) {
	if err := c.resolve(); err != nil {
		return nil, err
	}
	if err := unrecorded(c.client.cfg.Access); err != nil {
		return nil, err
	}
	if err := c.authorize(ctx); err != nil {
		return nil, err
	}
	if err := c.admit(ctx, ""); err != nil {
		return nil, err
	}
	if err := c.checkPayload(ctx); err != nil {
		return nil, err
	}
	c.setDeadline(ctx)
	queue, err := c.queue()
	if err != nil {
		return nil, err
	}
	if queue != nil {
		return c.enqueue(ctx, queue)
	}
	return c.attempts(ctx)
}

// exchange reserves a slot, publishes the request and waits for the reply.
func (c *outboundCall) exchange(ctx context.Context) (*envelope.Envelope, *Error) {
	table := c.client.pending
	pending, err := table.reserve(binding{
		peer: c.peer.Address, transport: c.peer.Transport, topic: c.peer.Topic,
		correlationID: c.ids.correlation, messageID: c.ids.message, tenantID: c.tenant(),
		watch: newWatch(&c.request),
	})
	if err != nil {
		return nil, err
	}
	if err := c.publish(ctx, envelope.Request, c.line.inbox.Topic(c.ids.correlation)); err != nil {
		if table.remove(pending) {
			table.release(pending)
		}
		return nil, err
	}
	reply, err := c.await(ctx, pending)
	table.release(pending)
	return reply, err
}

// resolve finds the peer, the capability and the transport.
func (c *outboundCall) resolve() *Error {
	if err := c.request.check(); err != nil {
		return err
	}
	var ok bool
	if c.peer, ok = c.client.cfg.Peers.Peer(c.request.To); !ok {
		return newError(CodeNoPeer, nil, "no peer registered for %q", c.request.To)
	}
	if c.peer.Contract != nil {
		if c.function, ok = c.peer.Contract.Lookup(c.request.Capability); !ok {
			return newError(CodeNoCapability, nil, "%s declares no capability %q", c.peer.Address, cut(c.request.Capability, 128))
		}
	}
	if c.line, ok = c.client.lines[c.peer.Transport]; !ok {
		return newError(CodeNoTransport, nil, "%s is reached by %s, which this process does not speak", c.peer.Address, c.peer.Transport)
	}
	if hops := c.hops(); hops > c.client.cfg.MaxHops {
		return newError(CodeHopLimit, nil, "%d calls led to this one: a loop?", hops-1)
	}
	return nil
}

// hops counts this call and those that led to it.
func (c *outboundCall) hops() int {
	if c.parent == nil {
		return 1
	}
	return c.parent.Hops + 1
}

// checkPayload validates the payload; a violation is durable before it is returned.
func (c *outboundCall) checkPayload(ctx context.Context) *Error {
	if len(c.request.Payload) == 0 {
		c.request.Payload = json.RawMessage("null")
	}
	if n, most := len(c.request.Payload), c.client.cfg.MaxPayloadBytes; n > most {
		return newError(CodePayloadTooLarge, nil, "the payload has %d bytes, and %d are allowed", n, most)
	}
	err := validate(contractOf(c.function, SideRequest), c.request.Payload, SideRequest, c.request.Capability)
	if err == nil || err.Code != CodeSchemaViolation {
		return err
	}
	if aerr := audit(ctx, c.client.cfg.Auditor, c.violation(err, c.request.Payload)); aerr != nil {
		return aerr
	}
	return err
}

func (c *outboundCall) violation(err *Error, payload []byte) SchemaViolation {
	return SchemaViolation{
		TenantID: c.tenant(), Capability: c.request.Capability, Peer: c.peer.Address,
		Side: err.Side, Violations: err.Violations, Payload: payload,
		CorrelationID: c.ids.correlation, SessionID: c.session(),
	}
}

func (c *outboundCall) tenant() string {
	if c.parent != nil && c.parent.TenantID != "" {
		return c.parent.TenantID
	}
	return c.client.cfg.TenantID
}

func (c *outboundCall) session() string {
	if c.request.SessionID == "" && c.parent != nil {
		return c.parent.SessionID
	}
	return c.request.SessionID
}

func (c *outboundCall) setDeadline(ctx context.Context) {
	declared := time.Duration(0)
	if c.function != nil {
		declared = c.function.Timeout
	}
	from := c.start
	if c.request.Timeout == 0 && !c.approved.IsZero() {
		from = c.approved
	}
	c.deadline = from.Add(timeout(c.request.Timeout, declared))
	if d, ok := ctx.Deadline(); ok && d.Before(c.deadline) {
		c.deadline = d
	}
	c.until = c.deadline
}

// encode makes the message. replyTopic is "" where no reply is sent.
func (c *outboundCall) encode(kind envelope.Kind, replyTopic string) ([]byte, *Error) {
	var headers [8]envelope.Header
	e := envelope.Envelope{
		Kind: kind, MessageID: c.ids.message, CorrelationID: c.ids.correlation,
		From: c.client.cfg.Self, To: c.peer.Address, Capability: c.request.Capability,
		Deadline: ceilMilli(c.until), TenantID: c.tenant(),
		Headers: c.headers(headers[:0], kind), Payload: c.request.Payload,
	}
	if c.parent != nil {
		e.CausedBy = c.parent.MessageID
	}
	if replyTopic != "" {
		e.ReplyTo = c.peer.Transport + "://" + replyTopic
	}
	data, err := seal(c.client.cfg.Identity, &e)
	if err != nil {
		return nil, sealError(err, c.peer.Address)
	}
	most := c.line.transport.MaxMessageBytes()
	if c.delivery != "" {
		most -= transport.QueueOverheadBytes
	}
	if len(data) > most {
		return nil, newError(CodePayloadTooLarge, nil, "the message has %d bytes, and the %s transport carries %d",
			len(data), c.peer.Transport, most)
	}
	return data, nil
}

// publish hands the request to the broker. replyTopic is "" for an event.
func (c *outboundCall) publish(ctx context.Context, kind envelope.Kind, replyTopic string) *Error {
	data, err := c.encode(kind, replyTopic)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return c.gaveUp(ctx)
	}
	if err := c.line.transport.Publish(ctx, transport.Message{Topic: c.peer.Topic, Reply: replyTopic, Data: data}); err != nil {
		if ctx.Err() != nil {
			return c.gaveUp(ctx)
		}
		return transportError(err, c.peer.Address)
	}
	return nil
}

// ceilMilli rounds up: a call of 1 ms must not arrive expired.
func ceilMilli(t time.Time) int64 { return t.Add(time.Millisecond - time.Nanosecond).UnixMilli() }

// traceparent is the same for every attempt.
func (c *outboundCall) traceparent() string {
	if c.trace == "" {
		parent := ""
		if c.parent != nil {
			parent = c.parent.Traceparent
		}
		c.trace = childTrace(parent)
	}
	return c.trace
}

// headers appends the request's to h.
func (c *outboundCall) headers(h envelope.Headers, kind envelope.Kind) envelope.Headers {
	digest := c.digest
	if kind == envelope.Event {
		digest = "" // nobody would hear that it is stale
	}
	progress := ""
	if c.request.wantsProgress() && kind == envelope.Request {
		progress = progressAsked
	}
	h = append(h,
		envelope.Header{Key: envelope.HeaderTraceparent, Value: c.traceparent()},
		envelope.Header{Key: envelope.HeaderHops, Value: strconv.Itoa(c.hops())})
	for _, optional := range [...]envelope.Header{
		{Key: envelope.HeaderFleetVersion, Value: c.client.cfg.FleetVersion},
		{Key: envelope.HeaderSession, Value: c.session()},
		{Key: envelope.HeaderIdempotencyKey, Value: c.request.IdempotencyKey},
		{Key: envelope.HeaderSchemaDigest, Value: digest},
		{Key: envelope.HeaderDelivery, Value: c.delivery},
		{Key: envelope.HeaderProgress, Value: progress},
	} {
		if optional.Value != "" {
			h = append(h, optional)
		}
	}
	return h
}

// await waits for the one outcome. When this end gives up first, the callee is
// told to stop.
func (c *outboundCall) await(ctx context.Context, pending *pendingCall) (*envelope.Envelope, *Error) {
	pending.timer.Reset(time.Until(c.until))
	idle := newIdleTimer(c.request.IdleTimeout)
	defer idle.stop()
	var gaveUp *Error
	for gaveUp == nil {
		select {
		case e := <-pending.watch.channel():
			c.tell(e)
			idle.reset()
		case o := <-pending.outcome:
			c.tellRest(pending.watch)
			return o.reply, o.err
		case <-pending.timer.C:
			gaveUp = newError(CodeTimeout, context.DeadlineExceeded,
				"agent-rpc timed out after %dms (correlationId=%s)", c.until.Sub(c.start).Milliseconds(), c.ids.correlation)
		case <-idle.channel():
			gaveUp = newError(CodeTimeout, context.DeadlineExceeded,
				"agent-rpc timed out: no progress for %dms (correlationId=%s)", c.request.IdleTimeout.Milliseconds(), c.ids.correlation)
		case <-ctx.Done():
			gaveUp = c.gaveUp(ctx)
		}
	}
	if !c.client.pending.remove(pending) {
		o := <-pending.outcome // it was settled at the same moment
		return o.reply, o.err
	}
	c.cancelCallee(ctx)
	if gaveUp.Code == CodeTimeout && pending.unproven {
		return nil, newError(CodeAuthFailed, gaveUp, "%s answered, and did not prove that it was %s", c.peer.Topic, c.peer.Address)
	}
	return nil, gaveUp
}

func (c *outboundCall) gaveUp(ctx context.Context) *Error {
	cause := context.Cause(ctx)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return newError(CodeTimeout, cause,
			"agent-rpc timed out after %dms (correlationId=%s)", time.Since(c.start).Milliseconds(), c.ids.correlation)
	}
	return newError(CodeCancelled, cause, "the caller cancelled the call")
}

// cancelCallee asks the callee to stop working on the call. It is a courtesy:
// the callee's own deadline holds without it.
func (c *outboundCall) cancelCallee(ctx context.Context) {
	e := envelope.Envelope{
		Kind: envelope.Event, MessageID: c.client.ids.one(), CorrelationID: c.ids.correlation, CausedBy: c.ids.message,
		From: c.client.cfg.Self, To: c.peer.Address, Capability: c.request.Capability, TenantID: c.tenant(),
		Headers: envelope.Headers{{Key: envelope.HeaderControl, Value: envelope.ControlCancel}},
	}
	data, err := seal(c.client.cfg.Identity, &e)
	if err == nil {
		err = c.line.transport.Publish(context.WithoutCancel(ctx), transport.Message{Topic: controlTopic(c.peer.Topic), Data: data})
	}
	if err != nil {
		c.client.cfg.Logger.Warn("cancel not sent", "correlationId", c.ids.correlation, "error", err)
	}
}

// readWork reads what a reply says about the skill's run. It is the peer's word,
// and what makes no sense is passed over.
func (c *outboundCall) readWork(h envelope.Headers) {
	text, _ := h.Get(envelope.HeaderExecution)
	us, err := strconv.ParseInt(text, 10, 64)
	if err != nil || us < 0 || us > MaxTimeout.Microseconds() {
		us = 0
	}
	c.executed = time.Duration(us) * time.Microsecond
	replayed, _ := h.Get(envelope.HeaderReplayed)
	c.replayed = replayed == "true"
}

// accept turns a reply into the response or the error that it carries.
func (c *outboundCall) accept(ctx context.Context, reply *envelope.Envelope) (json.RawMessage, *Error) {
	c.readWork(reply.Headers)
	contract := contractOf(c.function, SideResponse)
	if data, ok := bareAnswer(reply.Payload); ok && validate(contract, data, SideResponse, c.request.Capability) == nil {
		return data, nil // that it is valid says too that it is one value
	}
	data, err := parseReply(reply.Payload)
	if err != nil {
		err.DetectedBy = c.peer.Address
		return nil, err
	}
	err = validate(contract, data, SideResponse, c.request.Capability)
	if err == nil {
		return data, nil
	}
	if err.Code == CodeSchemaViolation {
		if aerr := audit(ctx, c.client.cfg.Auditor, c.violation(err, data)); aerr != nil {
			return nil, aerr
		}
	}
	return data, err // the raw answer stays with the result, for debugging
}

// contractOf is the contract of one side of f; nil is loose JSON.
func contractOf(f *capability.Capability, side Side) *capability.Contract {
	switch {
	case f == nil:
		return nil
	case side == SideRequest:
		return f.Input
	}
	return f.Output
}

// validate checks one payload. Without a contract it must be JSON, no more.
func validate(contract *capability.Contract, payload []byte, side Side, name string) *Error {
	if contract == nil {
		if err := ijson.Check(payload, envelopeDepth); err != nil {
			return newError(CodeInvalidPayload, err, "the %s is not JSON: %s", side, err)
		}
		return nil
	}
	if contract.Validator == nil {
		return newError(CodeInternal, nil, "the contract of %q was loaded for inspection only: nothing can validate its %s", name, side)
	}
	report := contract.Validator.Check(payload)
	if report.Verdict == schema.Invalid && side == SideRequest && string(payload) == "null" {
		report = checkNoArguments(contract, report)
	}
	switch report.Verdict {
	case schema.Valid:
		return nil
	case schema.Malformed:
		return newError(CodeInvalidPayload, report.Syntax, "the %s is not JSON: %s", side, report.Syntax)
	}
	err := newError(CodeSchemaViolation, nil, "capability %q %s failed schema validation: %s", name, side, summary(report.Violations))
	err.Side, err.Violations = side, report.Violations
	return err
}

// checkNoArguments judges a call without arguments: for a schema of objects it
// counts as {}, for the check only. What travels is the null itself.
func checkNoArguments(contract *capability.Contract, null schema.Report) schema.Report {
	if contract.Schema == nil || !slices.Contains(contract.Schema.Root().Resolve().Types(), schema.TypeObject) {
		return null
	}
	return contract.Validator.Check([]byte("{}"))
}

// summary is the first violations in one line.
func summary(violations []schema.Violation) string {
	const most = 3
	s := ""
	for i, v := range violations {
		if i == most {
			return s + "; and " + strconv.Itoa(len(violations)-most) + " more"
		}
		if i > 0 {
			s += "; "
		}
		if v.Path != "" {
			s += v.Path + " "
		}
		s += v.Message
	}
	return s
}

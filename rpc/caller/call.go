package caller

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/check"
	"github.com/agentd/agentd/rpc/internal/trace"
	"github.com/agentd/agentd/rpc/internal/wire"
	"github.com/agentd/agentd/rpc/span"
)

// RequestAgent makes one call and waits for its outcome. The result is never
// nil. The error is nil exactly when the status is ok, and otherwise the result's
// own [*rpc.Error].
//
// The call ends at the earliest of its timeout, the context's deadline and the
// reply. A caller that stops waiting cancels the callee's skill.
func (c *Client) RequestAgent(ctx context.Context, r rpc.Request) (*rpc.Result, error) {
	r.To = envelope.AddressFor(string(r.To))
	call := c.newCall(r)
	call.parent = rpc.InvocationFrom(ctx)
	response, err := call.do(ctx)
	result := call.result(response, err)
	call.record(result)
	call.giveTopic()
	call.recycle()
	if err != nil {
		return result, err
	}
	return result, nil
}

// do is the path of a call, from top to bottom. To add a check, add it to this list
// and put it into a file of its own.
//
// The order matters. What costs least and tells most comes first: a call to nobody
// needs no permission, and a forbidden one is not validated. A person is asked only
// about a call that could be made, so after the payload's check; the gate asks the
// peer, so it comes last.
func (c *call) do(ctx context.Context) (json.RawMessage, *rpc.Error) {
	for _, check := range [...]func(*call, context.Context) *rpc.Error{
		(*call).resolve,         // INVALID_REQUEST, TENANT_MISMATCH, NO_PEER, NO_CAPABILITY, NO_TRANSPORT, HOP_LIMIT
		(*call).recordable,      // AUDIT_FAILED: no call without a record
		(*call).permit,          // DENIED
		(*call).validateRequest, // PAYLOAD_TOO_LARGE, INVALID_PAYLOAD, SCHEMA_VIOLATION, VALIDATION_EXCEEDED
		(*call).approve,         // DENIED, by a person
		(*call).setDeadline,     // the capability's own time starts after the approval
		(*call).passGate,        // SCHEMA_DRIFT
	} {
		if err := check(c, ctx); err != nil {
			return nil, err
		}
	}
	queue, err := c.durableQueue() // nil, unless the capability is durable or the call asynchronous
	switch {
	case err != nil:
		return nil, err
	case queue != nil:
		// The broker keeps the request and repeats it; retrying here as well would
		// multiply the attempts.
		data, err := c.enqueue(ctx, queue)
		// Not sent again: the refusal is stored as the answer to this call. The gate looks
		// again all the same, for the next one.
		_, err = c.heedStale(ctx, err, false)
		return data, err
	case c.request.Mode == rpc.ModeAsync:
		return nil, c.detach(ctx)
	}
	return c.retry(ctx) // calls attempt until one succeeds
}

// maxResends is how often an attempt sends its request again. While a peer is
// deployed anew some of its replicas serve another contract, and each message may meet
// another replica: with one odd replica among three, one call in eighty meets it four
// times.
const maxResends = 3

// The broker hands requests to a replica that is shutting down until it has heard that
// the replica listens no more. Who meets such replicas more often than maxResends waits
// for that, from firstDrainPause, twice as long each time, to lastDrainPause.
const (
	firstDrainPause = 5 * time.Millisecond
	lastDrainPause  = 80 * time.Millisecond
)

// attempt makes one attempt. Two refusals are about one replica and leave the skill
// unrun, so that the request is sent once more at once, whatever the retry policy: the
// replica serves another contract, and the gate still sees one under which the call can
// be served; or it is shutting down.
func (c *call) attempt(ctx context.Context) (json.RawMessage, *rpc.Error) {
	var draining *rpc.Error
	wait := firstDrainPause
	for sent := 0; ; sent++ {
		data, err := c.send(ctx)
		resend, err := c.heedStale(ctx, err, sent >= maxResends)
		switch {
		case err == nil:
		case wire.IsDraining(err):
			draining, resend = err, sent < maxResends || wait <= lastDrainPause && c.pause(ctx, wait)
			if sent >= maxResends {
				wait *= 2
			}
		case draining != nil && err.Code == rpc.CodeNoResponders:
			err = draining // it was the last replica, and has said why there is none
		}
		if !resend {
			return data, err
		}
		c.resent++
		c.noteFailure(err)
		// A new message id: the callee would reject a repeated one as a replay. The
		// correlation id stays, and so does the reply topic.
		c.ids.message = c.client.ids.One()
	}
}

// send sends one request and returns the answer. The limits count every request, of
// every attempt.
func (c *call) send(ctx context.Context) (data json.RawMessage, err *rpc.Error) {
	c.run = run{ran: c.run.ran}
	start := time.Now() // once: to read the clock costs as much as one of these checks
	if err := c.limitRate(ctx, start); err != nil {
		return nil, err
	}
	pass, err := c.passBreaker(start)
	if err != nil {
		return nil, err
	}
	// The breaker must get the outcome of every attempt that it let pass, or a
	// half-open one stays half open.
	var reply *envelope.Message
	if c.client.cfg.Checks.Breakers != nil {
		defer func() { c.closeBreaker(pass, err, reply != nil, start) }()
	}
	if c.request.Mode == rpc.ModeFireAndForget {
		return nil, c.publish(ctx, envelope.Event, nil)
	}
	if reply, err = c.roundTrip(ctx); err != nil {
		return nil, err
	}
	data, err = c.validateReply(ctx, &reply.Envelope)
	c.client.replies.put(reply) // what came of it keeps no more than strings and payloads
	c.run.noteOutcome(err)
	return data, c.asTimeout(err)
}

// roundTrip reserves a slot, publishes the request and awaits the reply. The
// transport hands replies to [Client.receive] (receive.go), which has checked the
// sender by the time await returns.
func (c *call) roundTrip(ctx context.Context) (*envelope.Message, *rpc.Error) {
	// The slot comes first: the reply may arrive before publish returns.
	slot, err := c.reserve()
	if err != nil {
		return nil, err
	}
	// Receive finds the slot by the token of the reply topic.
	if err := c.publish(ctx, envelope.Request, c.replyTopic()); err != nil {
		c.client.pending.cancel(slot)
		return nil, err
	}
	reply, err := c.await(ctx, slot)
	c.answered = err == nil
	return reply, err
}

// A call is one call on its way through the caller's end.
type call struct {
	client  *Client
	request rpc.Request
	ids     ids
	start   time.Time
	parent  *rpc.Invocation // the invocation that makes this nested call, or nil

	agentd bool // it is answered by the peer's agentd, not by a skill

	// What the checks have found out, in their order.

	peer       rpc.Peer
	transport  replyingTransport
	capability *capability.Capability // nil when the peer's contract is unknown
	ask        *policy.Decision       // the permission that demands an approval, or nil
	clearance  Clearance              // what the gate said
	trace      string                 // the traceparent, once there is one
	sending    string                 // that of the queue's part of the call, or ""
	deadline   time.Time              // of the call
	until      time.Time              // of this attempt; never after deadline

	// What the attempts have found out.
	attempted int          // attempts made
	resent    int          // requests that attempts sent once more
	failures  []rpc.Code   // of the requests that another one followed
	failed    []span.Event // the same, of a call with a span
	replies   *replyTopic  // where the answers go, once a request that asks for one is sent
	answered  bool         // the last request

	approved  time.Time     // when a person let the call go on
	run       run           // what the replies report of the skill
	queued    bool          // the answer is awaited later
	garbled   bool          // bytes that are no envelope came where the reply should
	published chan struct{} // closed with the first published request, if somebody waits for that
	delivery  string        // envelope.DeliveryDurable once the request goes to a queue
}

// ids are fresh for every call, so two calls of one turn never collide. The message
// id is fresh for every attempt too.
type ids struct{ message, correlation string }

// newCall stamps the start of the call: every timeout and latency counts from here.
func (c *Client) newCall(r rpc.Request) *call {
	now := time.Now()
	message, correlation := c.ids.TwoAt(now)
	one, _ := c.spare.Get().(*call)
	if one == nil {
		one = &call{}
	}
	one.client, one.request, one.ids, one.start = c, r, ids{message: message, correlation: correlation}, now
	return one
}

// recycle lets a later call use the memory of one that has ended: a call is a good part of
// the bytes that its caller allocates. Whoever learns of a call gets copies, but the queue
// that keeps a request.
func (c *call) recycle() {
	if c.delivery != "" {
		return
	}
	client := c.client
	*c = call{}
	client.spare.Put(c)
}

// result is what RequestAgent returns.
func (c *call) result(response json.RawMessage, err *rpc.Error) *rpc.Result {
	r := &rpc.Result{
		Status: rpc.StatusOK, CorrelationID: c.ids.correlation, TraceID: trace.ID(c.traceparent()), Latency: time.Since(c.start),
		ExecutionTime: c.run.took, Replayed: c.run.replayed, Queued: c.queued && err == nil, Response: response,
		Unproven: c.clearance.Unproven,
	}
	if c.capability != nil && c.run.ran {
		r.CostEstimate = c.capability.Cost
	}
	if err != nil {
		// An error from the peer names the peer; what has no name yet was found at
		// this end.
		if err.DetectedBy == "" {
			err.DetectedBy = c.client.cfg.Self
		}
		r.Status, r.Error, r.SchemaSide = err.Code.Status(), err, err.Side
		r.Violations, r.ViolationsOmitted = err.Violations, err.ViolationsOmitted
	}
	return r
}

// session is the skill's own, or that of the call that this one is nested in.
func (c *call) session() string {
	if c.request.SessionID == "" && c.parent != nil {
		return c.parent.SessionID
	}
	return check.RecordedSession(c.request.SessionID) // a call with another is refused
}

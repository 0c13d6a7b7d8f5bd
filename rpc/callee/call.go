package callee

import (
	"container/list"
	"encoding/json"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/check"
	"github.com/agentd/agentd/rpc/internal/wire"
	"github.com/agentd/agentd/transport"
)

// receive takes one message of the requests topic. It is the path of a request, from
// top to bottom, together with accept, serve and process. To add a check, add it to
// accept if it must not be answered late and costs next to nothing, else to process,
// and put it into a file of its own.
//
// A message that does not prove its sender is dropped without an answer: the sender
// may not own the topic that it wants the answer to go to.
func (in *Inbox) receive(t transport.Transport, m transport.Message) {
	c := in.decode(t, m)
	if c == nil || !c.verify() || !c.findReplyTopic(m) {
		return
	}
	if err := c.accept(); err != nil {
		c.finish(nil, err)
		return
	}
	if c.runsHere() { // an inline skill
		c.serve()
		c.noteInline()
		return
	}
	in.workers.start(c)
}

// accept makes the quick checks and registers the call. What runs and waits is bounded
// here, before anything that costs, so that one too many is answered at once.
func (c *call) accept() *rpc.Error {
	for _, check := range [...]func(*call) *rpc.Error{
		(*call).checkNames,     // INVALID_REQUEST
		(*call).checkTenant,    // TENANT_MISMATCH
		(*call).checkVersion,   // VERSION_SKEW
		(*call).checkAddressee, // MISADDRESSED
		(*call).checkHops,      // HOP_LIMIT
		(*call).resolve,        // NO_CAPABILITY
		(*call).checkSize,      // PAYLOAD_TOO_LARGE
		(*call).setDeadline,    // DEADLINE_EXCEEDED
		(*call).register,       // BUSY; last, because it must be undone
	} {
		if err := check(c); err != nil {
			return err
		}
	}
	return nil
}

// serve takes an accepted request to its end, on a worker or inline. It ends the call even
// when the handler ends the goroutine, as runtime.Goexit does.
func (c *call) serve() {
	// Runs last: Shutdown must not close the transports before the reply is out.
	defer c.inbox.requests.serving.Done()
	defer c.ctx.end(nil)
	var answer json.RawMessage
	var err *rpc.Error
	returned := false
	defer func() {
		if !returned {
			err = c.logFailure(c.skillError(errGoexit))
		}
		// Before the reply: the caller may call again as soon as it has it.
		c.inbox.unregister(c)
		c.finish(answer, err)
	}()
	answer, err = c.process()
	returned = true
}

// process checks whether the request may be served and answers it.
func (c *call) process() (json.RawMessage, *rpc.Error) {
	for _, check := range [...]func(*call) *rpc.Error{
		(*call).recordable,    // AUDIT_FAILED: no call without a record
		(*call).permit,        // DENIED
		(*call).checkDigest,   // SCHEMA_STALE
		(*call).checkReplicas, // no answer to a replay; after the checks that cost nothing
	} {
		if err := check(c); err != nil {
			return nil, err
		}
	}
	// See runOnce for why it comes between the permissions and the limits.
	return c.runOnce((*call).run)
}

// admit passes the limits and a person's approval. run does so where nothing before it
// has: see admitUnbegun.
func (c *call) admit() *rpc.Error {
	if c.admitted {
		return nil
	}
	if err := c.limitRate(); err != nil { // RATE_LIMITED
		return err
	}
	if err := c.approve(); err != nil { // DENIED, by a person
		return err
	}
	c.admitted = true
	return nil
}

// run admits a request and runs the skill between the checks of its input and its
// output. An answer known from before skips all of it.
func (c *call) run() (json.RawMessage, *rpc.Error) {
	if err := c.admit(); err != nil {
		return nil, err
	}
	if err := c.awaitTurn(); err != nil { // DEADLINE_EXCEEDED, CANCELLED, BUSY
		return nil, err
	}
	if err := c.validateRequest(); err != nil { // SCHEMA_VIOLATION, side request
		return nil, err
	}
	start := time.Now()
	if err := c.checkInterrupted(start); err != nil { // DEADLINE_EXCEEDED, CANCELLED
		return nil, err
	}
	if err := c.beginAttempt(); err != nil { // of a request that a queue keeps
		return nil, err
	}
	answer, err := c.runSkill(start) // HANDLER_ERROR and its like
	if err == nil {
		err = c.validateAnswer(answer) // SCHEMA_VIOLATION, side response
	}
	if err == nil {
		err = check.Unasked(c.capability, c.request.Payload, answer) // INPUT_REQUIRED
	}
	if err != nil {
		return nil, c.logFailure(err)
	}
	return answer, nil
}

// finish sends the outcome to the caller or the queue, and to the access log.
func (c *call) finish(answer json.RawMessage, err *rpc.Error) {
	switch {
	case c.dropped: // logged and recorded as a refused proof, or served elsewhere
		return
	case c.delivery != nil:
		c.finishDelivery(answer, err)
	case err == nil:
		// An answer too large for the transport turns the outcome into an error.
		err = c.reply(wire.Answer(answer))
	case err.Code == rpc.CodeCancelled:
		// The caller has stopped waiting.
	default:
		_ = c.reply(wire.Failure(c.refuse(err))) // err is the outcome already
	}
	c.record(err)
}

// A call is one request on its way through the callee's end.
type call struct {
	inbox      *Inbox
	transport  transport.Transport
	request    *envelope.Envelope
	size       int    // of its message, which stays in memory with the payload
	replyTopic string // "" for an event
	trace      string // the traceparent, also of nested calls
	start      time.Time
	proven     bool               // the request proves its sender
	limited    bool               // it was asked whether the trace is admitted
	delivery   transport.Delivery // nil for a request that no queue keeps

	next *call // in the queue of workers

	// Its place among the requests of its capability. Guarded by requests.mu, but that
	// queue and turn do not change once they are set.

	queue *capabilityQueue
	line  *line         // in queue
	turn  chan struct{} // closed when it may run or has lost its place; nil if it need not wait
	place *list.Element // in line.waiting, while it waits
	lost  *rpc.Error    // why it has lost its place
	slot  bool          // it runs
	// leaving: it waits no longer and gets no slot.
	leaving bool

	asking   bool // it waits for a person
	admitted bool // it has passed the limits and a person's approval

	// What the checks have found out.

	permitted  bool             // by the permissions, if only after an approval
	valid      bool             // the payload has been validated
	ask        *policy.Decision // the permission that demands an approval, or nil
	served     *servedContract  // when the call came in
	capability *capability.Capability
	inline     *inlineSkill // nil for a skill that has not promised to be quick
	ctx        callContext
	deadline   time.Time

	// The handler gets a pointer to it: one allocation less for each request.
	invocation rpc.Invocation

	// What became of it.
	misses   int           // look-ups in a row that found no caller; the liveness check's own
	began    bool          // the skill was run
	incident string        // of its failure in the log, or ""
	worked   time.Duration // how long it ran
	replayed bool          // the answer is that of an earlier request
	dropped  bool          // it is a replay, or served elsewhere, and gets no answer
	unbegun  bool          // the queue has not noted that its last attempt begins

	unrecorded int64 // malformed messages without a record, for the record of this one
}

// recordable refuses requests while no access record of them can be kept.
func (c *call) recordable() *rpc.Error { return check.Recordable(c.inbox.cfg.Records) }

// session is the session of the caller's skill, or "".
func (c *call) session() string {
	s, _ := c.request.Headers.Get(envelope.HeaderSession)
	return check.RecordedSession(s) // a request with another is refused
}

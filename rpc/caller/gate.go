package caller

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/trace"
	"github.com/agentd/agentd/rpc/internal/wire"
)

// A Gate decides before a call whether the contract that this agent was built
// against agrees with the one that the peer serves now. It is safe for concurrent
// use.
type Gate interface {
	// Check returns a clearance when the call may go on. It is on the path of every
	// call: once it knows a peer it must cost next to nothing, and it waits neither
	// longer than ctx nor beyond the probe's deadline.
	//
	// An error ends the call. That of ctx or of the deadline says nothing about the
	// peer; [ErrGateClosed] and an [*UnrecordedError] have codes of their own; any
	// other is CodeSchemaDrift, with the details of a [DetailedError].
	Check(ctx context.Context, p Probe) (Clearance, error)
}

// A Clearance lets a call go on.
type Clearance struct {
	// Digest names the peer's contract of the capability, in the peer's own words. The
	// request carries it, and a peer that serves another contract refuses the request
	// unrun. "" when it is not known.
	Digest string
	// Also names further contracts of the capability that the call may be served
	// under, separated by spaces: while a peer is deployed anew its replicas differ.
	Also string
	// Unproven is why the call goes on although nothing was proven; "" if it was.
	Unproven string
}

// ErrGateClosed is the error of a [Gate] that is shutting down.
var ErrGateClosed = errors.New("the drift gate is closed")

// An UnrecordedError is the error of a [Gate] that could not keep the record of what
// it has found.
type UnrecordedError struct {
	// Found is what should have been recorded, and Err why it could not.
	Found, Err error
}

func (e *UnrecordedError) Error() string {
	return e.Found.Error() + "; and the audit record of it could not be written: " + e.Err.Error()
}

// Unwrap returns both errors.
func (e *UnrecordedError) Unwrap() []error { return []error{e.Found, e.Err} }

// A DetailedError is an error with a JSON object for the details of an [rpc.Error].
type DetailedError interface {
	error
	// Details contains no payload value.
	Details() json.RawMessage
}

// A Probe is one call at the gate, or a question about a peer that belongs to no
// call; see [Client.Probe].
type Probe struct {
	// Peer is the agent that is called.
	Peer rpc.Peer
	// Capability is what the caller was built against.
	Capability *capability.Capability
	// Stale is set when the peer refused the call because its own contract has this
	// digest: what the gate remembers of the peer is out of date.
	Stale string
	// Final is set beside Stale when the call is not sent again. The gate then says
	// what is wrong with the contract that refused it, if it knows.
	Final bool
	// Deadline is when the call ends; zero leaves it to the context.
	Deadline time.Time

	client *Client
	// Of the call; "" for a question that belongs to none. A gate may keep a probe for longer
	// than there is the call.
	correlation, session, tenant, traceparent string
}

// Published asks the peer for its published capabilities, as [Client.Published] does.
func (p Probe) Published(ctx context.Context) ([]byte, error) {
	data, err := p.client.published(ctx, p.Peer)
	if err != nil {
		return nil, err
	}
	return data, nil
}

// Detached returns the question without the call, for a goroutine that outlives it.
func (p Probe) Detached() Probe {
	p.correlation, p.session, p.tenant, p.traceparent = "", "", "", ""
	return p
}

// CallIDs name a call in records and logs. Every field may be "".
type CallIDs struct{ CorrelationID, SessionID, TenantID, TraceID string }

// IDs returns those of the probed call.
func (p Probe) IDs() CallIDs {
	return CallIDs{CorrelationID: p.correlation, SessionID: p.session, TenantID: p.tenant, TraceID: trace.ID(p.traceparent)}
}

// Probe returns a question about a peer that belongs to no call, and whether there
// is such a peer. Its Capability is for the caller to set.
func (c *Client) Probe(to envelope.Address) (Probe, bool) {
	peer, ok := c.cfg.Peers.Peer(to)
	return Probe{Peer: peer, client: c}, ok
}

// passGate lets the call go on if the contracts of both ends agree.
func (c *call) passGate(ctx context.Context) *rpc.Error { return c.checkGate(ctx, "", false) }

// heedStale turns a refusal for a stale contract into what the gate says about the
// peer's own. final tells it that the call is not sent again. resend reports whether
// it should be.
func (c *call) heedStale(ctx context.Context, err *rpc.Error, final bool) (resend bool, _ *rpc.Error) {
	if err == nil || c.client.cfg.Checks.Gate == nil {
		return false, err
	}
	digest := wire.StaleDigest(err)
	if digest == "" {
		return false, err
	}
	if found := c.checkGate(ctx, digest, final); found != nil {
		return false, found
	}
	return !final, err
}

// checkGate asks the gate. stale is the digest with which the peer has just refused
// the call, or "".
func (c *call) checkGate(ctx context.Context, stale string, final bool) *rpc.Error {
	gate := c.client.cfg.Checks.Gate
	if gate == nil || c.capability == nil {
		return nil
	}
	clearance, err := gate.Check(ctx, Probe{
		Peer: c.peer, Capability: c.capability, Stale: stale, Final: final, Deadline: c.deadline, client: c.client,
		correlation: c.ids.correlation, session: c.session(), tenant: c.tenant(), traceparent: c.traceparent(),
	})
	if err == nil {
		c.clearance = clearance
		return nil
	}
	return c.gateError(ctx, err)
}

// gateError translates an error of the gate into that of the call.
func (c *call) gateError(ctx context.Context, err error) *rpc.Error {
	var own *rpc.Error
	var unrecorded *UnrecordedError
	var detailed DetailedError
	found := errors.As(err, &detailed) // about the peer, whatever it wraps
	switch {
	case ctx.Err() != nil: // the caller gave up; that says nothing about the peer
		return c.gaveUp(ctx)
	case errors.As(err, &unrecorded):
		return rpc.NewError(rpc.CodeAuditFailed, err, "%s", err)
	case !found && errors.Is(err, context.DeadlineExceeded):
		return rpc.NewError(rpc.CodeTimeout, err, "agent-rpc timed out after %dms, before %s had said what it serves (correlationId=%s)",
			time.Since(c.start).Milliseconds(), c.peer.Address, c.ids.correlation)
	case errors.Is(err, ErrGateClosed):
		return rpc.NewError(rpc.CodeAbandoned, err, "this agent is shutting down")
	case !found && errors.As(err, &own): // this end could not ask
		return own
	}
	e := rpc.NewError(rpc.CodeSchemaDrift, err, "%s", err)
	if found {
		e.Details = detailed.Details()
	}
	return e
}

// Published asks a peer for what it serves now, within the deadline of ctx or 30 s.
// It returns the JSON of the published form, unread. The error is nil or an
// [*rpc.Error]; one that the peer itself answered has it as DetectedBy.
func (c *Client) Published(ctx context.Context, to envelope.Address) ([]byte, error) {
	peer, ok := c.cfg.Peers.Peer(to)
	if !ok {
		return nil, noPeer(c.cfg.Peers, to)
	}
	data, err := c.published(ctx, peer)
	if err != nil {
		return nil, err
	}
	return data, nil
}

// published asks agentd itself on a topic of its own, past permissions and gate:
// the gate needs the answer to decide.
func (c *Client) published(ctx context.Context, peer rpc.Peer) (json.RawMessage, *rpc.Error) {
	peer.Topic = wire.CapabilitiesTopic(peer.Topic)
	return c.callAgentd(ctx, peer, wire.CapabilitiesName, json.RawMessage("null"))
}

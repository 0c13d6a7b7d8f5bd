package rpc

import (
	"time"

	"github.com/agentd/agentd/envelope"
)

// A CallRecord is one call as one end saw it. It holds no payload.
type CallRecord struct {
	// Start is when this end began with it.
	Start time.Time
	// Role is this end.
	Role Role
	// Peer is the agent at the other end, as claimed.
	Peer envelope.Address
	// Capability is the name of the function, cut when it is none of ours.
	Capability string
	// Mode is sync, async or fire-and-forget.
	Mode Mode
	// Status and Code are the outcome; Code is 0 for StatusOK.
	Status Status
	Code   Code
	// DetectedBy is the agent whose agentd refused the call, "" for StatusOK.
	DetectedBy envelope.Address
	// Attempts counts the tries, those that a limit stopped among them; 0 for a
	// call that was refused before.
	Attempts int
	// Retried are the codes of the attempts that another one followed.
	Retried []Code
	// Latency is what this end waited, or worked.
	Latency time.Duration
	// TraceID is 32 hex digits, or "".
	TraceID string
	// CorrelationID is the same at both ends.
	CorrelationID string
	// TenantID and SessionID are the call's, or "".
	TenantID, SessionID string
	// Cost is what the capability declares. It must not be changed.
	Cost map[string]float64
}

// An AccessLog hears of every call. It is safe for concurrent use.
type AccessLog interface {
	// RecordCall returns at once, whatever becomes of the record: a call does
	// not wait for it.
	RecordCall(CallRecord)
	// Refuses says why calls must not be made or served, since no record could be
	// kept of them; nil is that they may. It is asked on the path of every call. Calls
	// that are refused for it are recorded all the same, as far as that goes.
	Refuses() error
}

// unrecorded refuses a call of which there would be no record.
func unrecorded(a AccessLog) *Error {
	if a == nil {
		return nil
	}
	if err := a.Refuses(); err != nil {
		return newError(CodeAuditFailed, err, "the record of the call could not be written")
	}
	return nil
}

// maxRecordedName bounds names that no file of ours holds.
const maxRecordedName = 128

// record tells the access log how the call ended.
func (c *outboundCall) record(r *Result) {
	if c.client.cfg.Access == nil {
		return
	}
	mode := c.request.Mode
	if mode == "" {
		mode = ModeSync
	}
	out := CallRecord{
		Start: c.start, Role: RoleCaller, Peer: envelope.Address(cut(string(c.request.To), maxRecordedName)),
		Capability: cut(c.request.Capability, maxRecordedName), Mode: Mode(cut(string(mode), 32)),
		Status: r.Status, Attempts: c.attempted, Retried: c.failures, Latency: r.Latency,
		TraceID: traceID(c.traceparent()), CorrelationID: r.CorrelationID, TenantID: c.tenant(), SessionID: c.session(),
	}
	if r.Error != nil {
		out.Code, out.DetectedBy = r.Error.Code, r.Error.DetectedBy
	}
	if c.function != nil {
		out.Cost = c.function.Cost
	}
	c.client.cfg.Access.RecordCall(out)
}

// record tells the access log how the request ended; a nil err is a success.
func (c *inboundCall) record(err *Error) {
	if c.inbox.cfg.Access == nil {
		return
	}
	out := CallRecord{
		Start: c.start, Role: RoleCallee, Peer: c.request.From, Capability: cut(c.request.Capability, maxRecordedName),
		Mode: ModeSync, Status: StatusOK, Latency: time.Since(c.start), Attempts: 1,
		CorrelationID: c.request.CorrelationID, TenantID: recordedTenant(c.request.TenantID), SessionID: c.session(),
	}
	if c.request.Kind == envelope.Event {
		out.Mode = ModeFireAndForget
	}
	if trace, ok := c.request.Headers.Get(envelope.HeaderTraceparent); ok {
		out.TraceID = traceID(trace)
	}
	if err != nil {
		out.Status, out.Code, out.DetectedBy = err.Code.Status(), err.Code, c.inbox.cfg.Self
	}
	if c.function != nil {
		out.Cost = c.function.Cost
	}
	c.inbox.cfg.Access.RecordCall(out)
}

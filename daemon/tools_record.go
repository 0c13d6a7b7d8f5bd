package daemon

import (
	"context"
	"encoding/json"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/rpc"
)

// A toolCall is one call of a tool, for the access log.
type toolCall struct {
	call    registry.Call
	served  *rpc.Invocation // what the tool is part of; nil for none
	digest  envelope.PayloadDigest
	code    registry.Code // "" for success
	start   time.Time
	latency time.Duration
}

// A toolBody is the body of a record of kind tool_call.
type toolBody struct {
	Capability string `json:"capabilityName"`
	Tool       string `json:"toolName"`
	// Served, Peer and the ids are those of the call that the tool is part of.
	Served        string           `json:"servedCapability,omitempty"`
	Peer          envelope.Address `json:"peerId,omitempty"`
	CorrelationID string           `json:"correlationId,omitempty"`
	SessionID     string           `json:"sessionId,omitempty"`
	TraceID       string           `json:"traceId,omitempty"`
	Status        rpc.Status       `json:"status"`
	Code          registry.Code    `json:"code,omitempty"`
	// ArgumentsSHA256 names the arguments without repeating them.
	ArgumentsSHA256 string  `json:"argumentsSha256"`
	StartMs         int64   `json:"startMs"`
	LatencyMs       float64 `json:"latencyMs"`
}

func newToolBody(t *toolCall) toolBody {
	body := toolBody{
		Capability: t.call.Capability, Tool: t.call.Tool, Status: rpc.StatusOK, Code: t.code,
		ArgumentsSHA256: t.digest.String(), StartMs: t.start.UnixMilli(), LatencyMs: milliseconds(t.latency),
	}
	if t.code != "" {
		body.Status = rpc.StatusError
	}
	if inv := t.served; inv != nil {
		body.Served, body.Peer, body.CorrelationID = inv.Capability, inv.From, inv.CorrelationID
		body.SessionID, body.TraceID = inv.SessionID, inv.TraceID()
	}
	return body
}

// milliseconds is d in ms, to the microsecond.
func milliseconds(d time.Duration) float64 {
	return float64(d.Microseconds()) / float64(time.Millisecond/time.Microsecond)
}

// tenant is that of the call that the tool is part of.
func (t *toolCall) tenant() string {
	if t.served == nil {
		return ""
	}
	return t.served.TenantID
}

// recordTools puts a record into the access log for each call of a tool. Like calls of
// agents, tools are not called while the log takes no records.
func (d *Daemon) recordTools(next registry.Handle) registry.Handle {
	return func(ctx context.Context, c registry.Call) *mcp.CallToolResult {
		ctx, endSpan := d.traceTool(ctx, c)
		if d.access == nil {
			result := next(ctx, c)
			endSpan(registry.FailureCode(result))
			return result
		}
		t := toolCall{call: c, served: rpc.InvocationFrom(ctx), digest: envelope.DigestPayload(c.Arguments), start: time.Now()}
		t.call.Arguments = nil // which must not wait for the disk
		result := d.refuseUnrecorded()
		if result == nil {
			result = next(ctx, c)
		}
		t.code, t.latency = registry.FailureCode(result), time.Since(t.start)
		endSpan(t.code)
		d.access.recordTool(t)
		return result
	}
}

// refuseUnrecorded is the answer to all calls of tools while no record of them could be
// kept, or nil.
func (d *Daemon) refuseUnrecorded() *mcp.CallToolResult {
	if d.access.Refuses() == nil {
		return nil
	}
	return registry.Failure(&registry.Error{Code: registry.Unavailable, Message: "the agent's audit log takes no records at the moment", Retryable: true})
}

// An accessRecord is a record that waits for the disk: of a call, or of a tool.
type accessRecord struct {
	rpc.CallRecord
	tool *toolCall // nil for a call
}

// record is what the audit log gets. Its body is at the end of buffer.
func (r *accessRecord) record(buffer []byte, costs *costTexts) (_ auditchain.Record, _ []byte, err error) {
	out := auditchain.Record{Kind: auditchain.KindRPCCall, Tenant: r.TenantID}
	start := len(buffer)
	if r.tool == nil {
		buffer = appendCallBody(buffer, &r.CallRecord, costs)
	} else {
		out.Kind, out.Tenant = auditchain.KindToolCall, r.tool.tenant()
		var body []byte
		body, err = json.Marshal(newToolBody(r.tool))
		buffer = append(buffer, body...)
	}
	out.Body = buffer[start:]
	return out, buffer, err
}

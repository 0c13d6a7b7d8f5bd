package history

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/rpc"
)

// A Source is the access log of an agent. [auditchain.Reader] is one.
type Source interface {
	Query(ctx context.Context, filter auditchain.Filter) iter.Seq2[auditchain.Entry, error]
}

// A Resolver is the capability history of one agent.
type Resolver struct{ log Source }

// New returns the capability over a log. It may be registered without one, to be listed.
func New(log Source) *Resolver { return &Resolver{log} }

var _ registry.Resolver = (*Resolver)(nil)

// Key implements [registry.Resolver].
func (*Resolver) Key() string { return "history" }

const (
	listCalls    = "list_calls"
	defaultCalls = 20
	maxCalls     = 100
	// maxRead bounds the records that one call looks at, for filters that few match.
	maxRead = 10_000
)

const description = "Lists this agent's own calls, newest first: those that it has made, those that it has served, and the tools that it has used. " +
	"There are no payloads, only what was called, when, and how it ended. Pass nextBefore of an answer as before to go on."

// Tools implements [registry.Resolver].
func (*Resolver) Tools() []registry.Tool {
	return []registry.Tool{{Key: listCalls, Name: "List calls", Description: description}}
}

// ConfigSchema implements [registry.Resolver].
func (*Resolver) ConfigSchema() json.RawMessage { return nil }

// input returns the schema of the arguments.
func input() json.RawMessage {
	return fmt.Appendf(nil, `{"type": "object", "additionalProperties": false, "properties": {
	"role": {"enum": ["caller", "callee", "tool"], "description": "calls made, calls served, or tools used"},
	"peer": {"type": "string", "maxLength": 256, "description": "the agent at the other end, such as agent://librarian"},
	"capability": {"type": "string", "maxLength": 128},
	"status": {"enum": ["ok", "error", "timeout", "abandoned", "busy", "schema-violation"]},
	"since": {"type": "string", "format": "date-time"},
	"until": {"type": "string", "format": "date-time", "description": "exclusive"},
	"before": {"type": "integer", "minimum": 1, "description": "only records with a smaller number"},
	"limit": {"type": "integer", "minimum": 1, "maximum": %d, "default": %d}
}}`, maxCalls, defaultCalls)
}

const output = `{"type": "object", "required": ["calls"], "properties": {
	"calls": {"type": "array", "items": {"type": "object", "required": ["number", "time", "role", "capability", "status"], "properties": {
		"number": {"type": "integer"}, "time": {"type": "string", "format": "date-time"},
		"role": {"type": "string"}, "peer": {"type": "string"}, "capability": {"type": "string"}, "tool": {"type": "string"},
		"status": {"type": "string"}, "code": {"type": "string"}, "latencyMs": {"type": "number"},
		"correlationId": {"type": "string"}, "traceId": {"type": "string"}, "sessionId": {"type": "string"}
	}}},
	"nextBefore": {"type": "integer", "description": "present where there may be more"}
}}`

// arguments are those of list_calls.
type arguments struct {
	Role, Peer, Capability, Status string
	Since, Until                   time.Time
	Before                         int64
	Limit                          int
}

// A call is one entry of the answer.
type call struct {
	Number      int64     `json:"number"`
	Time        time.Time `json:"time"`
	Role        string    `json:"role"`
	Peer        string    `json:"peer,omitempty"`
	Capability  string    `json:"capability"`
	Tool        string    `json:"tool,omitempty"`
	Status      string    `json:"status"`
	Code        string    `json:"code,omitempty"`
	LatencyMs   float64   `json:"latencyMs"`
	Correlation string    `json:"correlationId,omitempty"`
	Trace       string    `json:"traceId,omitempty"`
	Session     string    `json:"sessionId,omitempty"`
}

// An answer is what list_calls returns.
type answer struct {
	Calls      []call `json:"calls"`
	NextBefore int64  `json:"nextBefore,omitempty"`
}

// Resolve implements [registry.Resolver].
func (r *Resolver) Resolve(_ registry.Context, config registry.Config) (*registry.Server, error) {
	if r.log == nil {
		return nil, registry.Skip("the agent has no access log")
	}
	s := registry.NewServer("history", "1", config.Tools)
	return s, s.Add(registry.ToolSpec{
		Key: listCalls, Title: "List calls", Description: description, ReadOnly: true,
		Input: input(), Output: json.RawMessage(output),
	}, r.list)
}

// list answers one call of the tool.
func (r *Resolver) list(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	var a arguments
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, err
	}
	a.Limit = cmp.Or(a.Limit, defaultCalls)
	out := answer{Calls: []call{}}
	read := 0
	for e, err := range r.log.Query(ctx, a.filter(ctx)) {
		if err != nil {
			return nil, err
		}
		c, ok := callOf(&e)
		read++
		if ok && a.matches(&c) {
			out.Calls = append(out.Calls, c)
		}
		if len(out.Calls) == a.Limit || read == maxRead {
			out.NextBefore = e.Seq
			break
		}
	}
	return json.Marshal(out)
}

// filter is what the log itself can choose by. The tenant is not the caller's to choose.
func (a *arguments) filter(ctx context.Context) auditchain.Filter {
	f := auditchain.Filter{
		Tenant: auditchain.DefaultTenant, Peer: a.Peer, Capability: a.Capability, Since: a.Since, Until: a.Until,
		After: a.Before, Order: auditchain.NewestFirst,
	}
	if inv := rpc.InvocationFrom(ctx); inv != nil && inv.TenantID != "" {
		f.Tenant = inv.TenantID
	}
	switch a.Role {
	case "tool":
		f.Kinds = []auditchain.Kind{auditchain.KindToolCall}
	case "":
		f.Kinds = []auditchain.Kind{auditchain.KindRPCCall, auditchain.KindToolCall}
	default:
		f.Kinds = []auditchain.Kind{auditchain.KindRPCCall}
	}
	return f
}

// matches applies the rest.
func (a *arguments) matches(c *call) bool {
	return (a.Role == "" || a.Role == c.Role) && (a.Status == "" || a.Status == c.Status)
}

// callOf reads a record. One that was redacted is no call any more.
func callOf(e *auditchain.Entry) (call, bool) {
	var body struct {
		Role, ToolName, Status, Code, TraceID string
		LatencyMs                             float64
		StartMs                               int64
	}
	if e.Erased() || json.Unmarshal(e.Body, &body) != nil {
		return call{}, false
	}
	c := call{
		Number: e.Seq, Time: time.UnixMilli(body.StartMs).UTC(), Role: body.Role, Peer: e.Peer, Capability: e.Capability, Tool: body.ToolName,
		Status: body.Status, Code: body.Code, LatencyMs: body.LatencyMs, Correlation: e.Correlation, Trace: body.TraceID, Session: e.Session,
	}
	if e.Kind == auditchain.KindToolCall {
		c.Role = "tool"
	}
	return c, slices.Contains([]string{"caller", "callee", "tool"}, c.Role)
}

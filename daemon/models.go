package daemon

import (
	"time"

	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/span"
)

// modelUsed counts what a request to a language model used for a call, and adds a span to the
// skill's run. All of it is the skill's word. A span of which only the end is known begins where
// the skill says, and what was asked or answered is in none.
func (d *Daemon) modelUsed(inv *rpc.Invocation, u *rpc.ModelUsage) {
	d.models.Observe(inv.Capability, u)
	if d.tracer == nil || !span.Recorded(d.tracer, inv.Traceparent) {
		return
	}
	end := time.Now()
	s := &span.Span{
		Parent: inv.Traceparent, Traceparent: d.tracer.Begin(inv.Traceparent), State: inv.Tracestate, Kind: span.Client,
		Name: u.Operation + " " + u.Model, Account: inv.Capability, Start: end.Add(-u.Duration), End: end,
	}
	s.Add(span.GenAIOperation, u.Operation)
	s.Add(span.GenAIProvider, u.Provider)
	s.Add(span.GenAIRequestModel, u.Model)
	s.AddNumber(span.GenAIInputTokens, u.InputTokens)
	s.AddNumber(span.GenAIOutputTokens, u.OutputTokens)
	d.tracer.End(s)
}

package daemon

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/daemon/tracing"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/otlp"
	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/span"
)

// openTraces begins to trace, where the environment asks for it. Stop ends it.
func (d *Daemon) openTraces() {
	if d.cfg.Traces == nil {
		return
	}
	cfg := *d.cfg.Traces
	cfg.Resource = tracing.Resource(cfg.Resource, d.Member().ID, d.cfg.Fleet.Name, d.cfg.Version)
	d.tracer = tracing.New(cfg, d.telemetryTeller("traces", cfg.To.Where()), d.tellLimited)
}

// tellLimited tells that a peer has more traces recorded than it may, and when that is over.
func (d *Daemon) tellLimited(l tracing.Limited) {
	who := cmp.Or(l.Peer, "peers without a proof")
	subject := "traces of " + who
	if l.Over {
		d.conditions.End(health.Telemetry, subject)
		return
	}
	d.conditions.Begin(health.Condition{
		Kind: health.Telemetry, Subject: subject, Code: "limited", Advisory: true,
		Effect: "some traces that " + who + " begin are not recorded here",
		Cause:  fmt.Sprintf("their sampled flag asks for more than %d a second", d.cfg.Traces.PeerLimit),
		Remedy: "sample less where they begin, or set AGENTD_TRACES_PEER_LIMIT",
	})
	d.log.Warn("traces of a peer are not recorded", "peer", who, "refused", l.Refused)
}

// tracerOrNil is what takes spans: nil, and not an interface with nothing in it, where traces
// are off.
func (d *Daemon) tracerOrNil() span.Tracer {
	if d.tracer == nil {
		return nil
	}
	return d.tracer
}

// closeTraces sends the spans that are left, if the collector takes them in time.
func (d *Daemon) closeTraces(ctx context.Context) {
	if d.tracer != nil {
		d.tracer.Close(ctx)
	}
}

// lossInterval is the least time between two lines about what was lost.
const lossInterval = time.Minute

// telemetryTeller returns what tells of a signal's collector: a condition while it is away,
// with which the agent stays ready, and a line about what was lost.
func (d *Daemon) telemetryTeller(signal, endpoint string) func(otlp.State) {
	var away bool
	losses := otlp.Losses(lossInterval)
	return func(s otlp.State) { // from one goroutine
		switch {
		case s.Away && !away:
			d.conditions.Begin(health.Condition{
				Kind: health.Telemetry, Subject: signal, Code: "away", Advisory: true,
				Effect: signal + " do not reach their collector", Cause: fmt.Sprintf("%s: %s", endpoint, s.Cause),
				Remedy: "they are sent again by themselves while there is room for them; see OTEL_EXPORTER_OTLP_ENDPOINT, _PROTOCOL and _HEADERS",
			})
		case !s.Away && away:
			d.conditions.End(health.Telemetry, signal)
		}
		away = s.Away
		if n := losses(s); n > 0 {
			d.log.Warn(signal+" were lost", "lost", n, "endpoint", endpoint, "cause", s.Cause)
		}
	}
}

// skillKind is how a skill is run, for its spans.
func (d *Daemon) skillKind(name string) string {
	if d.cfg.Handlers[name] != nil {
		return "go"
	}
	for _, s := range d.Member().Agent.Skills {
		if s.Name == name {
			return kindOfSkill(s)
		}
	}
	return ""
}

func kindOfSkill(s fleet.Skill) string {
	switch {
	case s.MCP != nil:
		return "mcp"
	case s.HTTP != nil:
		return "http"
	case s.Action != nil:
		return "action"
	case s.Worker != nil:
		return "worker"
	}
	return "process"
}

// traceTool gives the call of a tool a span below the skill's run, or a trace of its own
// where it is a part of no call. What the tool calls is below that span.
func (d *Daemon) traceTool(ctx context.Context, c registry.Call) (_ context.Context, end func(registry.Code)) {
	if d.tracer == nil {
		return ctx, func(registry.Code) {}
	}
	start, parent, state := time.Now(), "", ""
	inv := rpc.InvocationFrom(ctx)
	if inv != nil {
		parent, state = inv.Traceparent, inv.Tracestate
	}
	own := d.tracer.Begin(parent)
	if inv != nil && own != parent {
		nested := *inv
		nested.Traceparent = own
		ctx = rpc.WithInvocation(ctx, &nested)
	}
	return ctx, func(code registry.Code) {
		if !span.Recorded(d.tracer, own) {
			return
		}
		s := &span.Span{
			Parent: parent, Traceparent: own, State: state, Kind: span.Internal, Name: span.ExecuteTool + " " + c.Tool,
			Start: start, End: time.Now(), Failure: string(code),
		}
		if inv != nil {
			s.Account = inv.Capability
		}
		s.Add(span.GenAIOperation, span.ExecuteTool)
		s.Add(span.GenAITool, c.Tool)
		s.Add(span.GenAIToolType, "extension") // it runs at the agent's side
		s.Add(span.ToolSet, c.Capability)
		d.tracer.End(s)
	}
}

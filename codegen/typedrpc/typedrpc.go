package typedrpc

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/agentd/agentd/codegen/typed"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
)

// A Requester makes calls. A Client of package rpc/caller is one.
type Requester interface {
	RequestAgent(ctx context.Context, r rpc.Request) (*rpc.Result, error)
}

// Caller makes the calls of generated clients through r. Errors are [*rpc.Error].
func Caller(r Requester) typed.Caller {
	return typed.CallerFunc(func(ctx context.Context, c typed.Call) (json.RawMessage, error) {
		result, err := r.RequestAgent(ctx, rpc.Request{
			To: envelope.Address(c.To), Capability: c.Capability, Payload: c.Payload,
			Timeout: c.Timeout, IdempotencyKey: c.IdempotencyKey, TenantID: c.TenantID, Traceparent: c.Traceparent,
		})
		if c.Outcome != nil && result != nil {
			*c.Outcome = typed.Outcome{
				CorrelationID: result.CorrelationID, TraceID: result.TraceID, Latency: result.Latency,
				ExecutionTime: result.ExecutionTime, CostEstimate: result.CostEstimate,
				Replayed: result.Replayed, Queued: result.Queued, Unproven: result.Unproven,
			}
		}
		if err != nil {
			return nil, err
		}
		return result.Response, nil
	})
}

// Handlers returns the skills of m by skill name, as the Handlers of an rpc/callee
// Config. Where capabilities share a skill, its handler chooses by the capability
// that was called.
func Handlers(m *typed.Mux) map[string]rpc.Handler {
	bySkill := map[string]skill{}
	for _, s := range m.Skills() {
		if bySkill[s.Name] == nil {
			bySkill[s.Name] = skill{}
		}
		bySkill[s.Name][s.Capability] = s.Run
	}
	handlers := make(map[string]rpc.Handler, len(bySkill))
	for name, s := range bySkill {
		handlers[name] = s
	}
	return handlers
}

// A skill is the code of the capabilities that share it, keyed by capability.
type skill map[string]typed.HandlerFunc

// Handle runs the capability of inv.
func (s skill) Handle(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
	run := s[inv.Capability]
	if run == nil {
		return nil, fmt.Errorf("typedrpc: nothing is registered for %q", inv.Capability)
	}
	return run(ctx, inv.Payload)
}

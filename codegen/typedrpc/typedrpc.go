package typedrpc

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/agentd/agentd/codegen/typed"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
)

// A Requester makes calls; an [caller.Client] is one.
type Requester interface {
	RequestAgent(ctx context.Context, r rpc.Request) (*rpc.Result, error)
}

// Caller makes the calls of generated clients through r. Errors are [*rpc.Error].
func Caller(r Requester) typed.Caller {
	return typed.CallerFunc(func(ctx context.Context, c typed.Call) (json.RawMessage, error) {
		result, err := r.RequestAgent(ctx, rpc.Request{
			To: envelope.Address(c.To), Capability: c.Capability, Payload: c.Payload,
			Timeout: c.Timeout, IdempotencyKey: c.IdempotencyKey,
		})
		if err != nil {
			return nil, err
		}
		return result.Response, nil
	})
}

// Handlers are the skills of m for an [rpc.InboxConfig], by skill name. Where
// capabilities share a skill, its handler picks by the capability that was
// called.
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

// A skill is the code of the capabilities that share it, by capability.
type skill map[string]typed.HandlerFunc

// Handle runs the capability of inv.
func (s skill) Handle(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
	run := s[inv.Capability]
	if run == nil {
		return nil, fmt.Errorf("typedrpc: nothing is registered for %q", inv.Capability)
	}
	return run(ctx, inv.Payload)
}

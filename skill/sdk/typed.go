package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/agentd/agentd/codegen/typed"
)

// Caller makes the calls of generated clients with [RequestAgent]: the
// environment comes from each call's context. An outcome other than [StatusOK]
// is a [*CallError].
func Caller() typed.Caller {
	return typed.CallerFunc(func(ctx context.Context, c typed.Call) (json.RawMessage, error) {
		result, err := RequestAgent(ctx, Request{
			To: c.To, Capability: c.Capability, Payload: c.Payload,
			Timeout: c.Timeout, IdempotencyKey: c.IdempotencyKey, TenantID: c.TenantID, Traceparent: c.Traceparent,
		})
		if err != nil {
			return nil, err
		}
		if c.Outcome != nil {
			*c.Outcome = typed.Outcome{
				CorrelationID: result.CorrelationID, TraceID: result.TraceID, Latency: ms(result.LatencyMs),
				ExecutionTime: ms(result.ExecutionTimeMs), CostEstimate: result.CostEstimate,
				Replayed: result.Replayed, Queued: result.Queued, Unproven: result.UnprovenReason,
			}
		}
		return result.Response, result.Err()
	})
}

func ms(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }

// Serve is [Main] for generated servers: it runs the skill of m that serves the
// capability that was called. One program may serve them all, and one worker does.
func Serve(m *typed.Mux, opts ...Option) {
	var capabilities []string
	for _, s := range m.Skills() {
		capabilities = append(capabilities, s.Capability)
	}
	mainOf(served(m), capabilities, opts)
}

// served is the function that Main runs for m. That its type cannot hold
// a payload is reported to the caller.
func served(m *typed.Mux) func(context.Context, json.RawMessage) (json.RawMessage, error) {
	return func(ctx context.Context, payload json.RawMessage) (json.RawMessage, error) {
		name := EnvironmentFrom(ctx).Capability
		for _, s := range m.Skills() {
			if s.Capability != name {
				continue
			}
			answer, err := s.Run(ctx, payload)
			if misfit := new(typed.RequestError); errors.As(err, &misfit) {
				err = &PublicError{Message: misfit.Error(), Cause: err}
			}
			return answer, err
		}
		return nil, fmt.Errorf("nothing is registered for the capability %q (%s)", name, EnvCapability)
	}
}

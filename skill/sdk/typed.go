package sdk

import (
	"context"
	"encoding/json"

	"github.com/agentd/agentd/codegen/typed"
)

// Caller makes the calls of generated clients with [RequestAgent]: the
// environment comes from each call's context. An outcome other than [StatusOK]
// is a [*CallError].
func Caller() typed.Caller {
	return typed.CallerFunc(func(ctx context.Context, c typed.Call) (json.RawMessage, error) {
		result, err := RequestAgent(ctx, Request{
			To: c.To, Capability: c.Capability, Payload: c.Payload,
			Timeout: c.Timeout, IdempotencyKey: c.IdempotencyKey,
		})
		if err != nil {
			return nil, err
		}
		return result.Response, result.Err()
	})
}

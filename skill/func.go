package skill

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/agentd/agentd/codegen/typed"
	"github.com/agentd/agentd/rpc"
)

// Func is a Go function as a skill: the payload is decoded into In, and Out is
// encoded as the answer. A payload that is null or absent leaves In at its zero
// value, as far as In takes null or {}. The capability's schemas have been or will be checked
// by the caller of the handler; Func only converts. fn is called concurrently.
func Func[In, Out any](fn func(ctx context.Context, in In) (Out, error)) rpc.Handler {
	return rpc.HandlerFunc(func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		var in In
		decode := func(payload []byte) error { return json.Unmarshal(payload, &in) }
		if err := typed.Arguments(inv.Payload, decode); err != nil {
			return nil, fmt.Errorf("skill: the payload of %s does not fit %T: %w", inv.Capability, in, err)
		}
		out, err := fn(ctx, in)
		if err != nil {
			return nil, err
		}
		data, err := json.Marshal(out)
		if err != nil {
			return nil, fmt.Errorf("skill: the answer of %s: %w", inv.Capability, err)
		}
		return data, nil
	})
}

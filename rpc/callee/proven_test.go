package callee_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/rpctest"
)

// A skill learns whether the request has proven its caller.
func TestSkillsKnowWhetherTheirCallerIsProven(t *testing.T) {
	proofs, _ := rpctest.Proven(t)
	for want, options := range map[bool][]rpctest.Option{true: {proofs}, false: nil} {
		var got *rpc.Invocation
		w := rpctest.NewWorld(t, rpc.HandlerFunc(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
			seen := *inv
			got = &seen
			return json.RawMessage(rpctest.ValidAnswer), nil
		}), options...)
		rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusOK, 0)
		if got == nil || got.Proven != want || got.From != rpctest.Concierge {
			t.Errorf("proofs %v: %+v", want, got)
		}
	}
}

package rpc_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/rpctest"
)

func TestProgressRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		value string
		want  rpc.Code
	}{
		"no JSON":        {`{"a":`, rpc.CodeInvalidPayload},
		"nothing":        {``, rpc.CodeInvalidPayload},
		"too large":      {`"` + strings.Repeat("x", rpc.MaxProgressBytes) + `"`, rpc.CodePayloadTooLarge},
		"as large as is": {`"` + strings.Repeat("x", rpc.MaxProgressBytes-2) + `"`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			told := make(chan error, 1)
			h := rpc.HandlerFunc(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
				told <- inv.Progress(json.RawMessage(test.value))
				return json.RawMessage(rpctest.ValidAnswer), nil
			})
			w := rpctest.NewWorld(t, h, rpctest.WithProgress(t))
			r, heard := rpctest.Listening(rpctest.Request())
			rpctest.WantStatus(t, w.Call(t, r), rpc.StatusOK, 0)
			if err := rpctest.Wait(t, told); rpc.CodeOf(err) != test.want || (err == nil) != (len(*heard) == 1) {
				t.Errorf("told %v, heard %d", err, len(*heard))
			}
		})
	}
	if err := rpc.Progress(t.Context(), json.RawMessage("1")); rpc.CodeOf(err) != rpc.CodeInvalidRequest {
		t.Errorf("outside a call: %v", err)
	}
}

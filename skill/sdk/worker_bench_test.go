package sdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"testing"

	"github.com/agentd/agentd/skill/sdk"
)

// BenchmarkRunWorker is what a worker does for a call, without the pipes.
func BenchmarkRunWorker(b *testing.B) {
	const invoke = `{"jsonrpc":"2.0","id":3,"method":"invoke","params":{"capability":"go","caller":"agent://caller","correlationId":"0198aa5e-0000-7000-8000-000000000000","messageId":"0198aa5e-0000-7000-8000-000000000001","traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","token":"ABCDEFGHIJKLMNOPQRSTUVWXYZ","hops":1,"deadlineMs":4102444800000,"payload":{"n":1}}}` + "\n"
	b.ReportAllocs()
	calls := bytes.NewReader(bytes.Repeat([]byte(invoke), b.N))
	b.ResetTimer()
	sdk.RunWorker(b.Context(), calls, io.Discard, io.Discard, func(_ context.Context, in json.RawMessage) (json.RawMessage, error) { return in, nil }, sdk.Concurrent(64))
}

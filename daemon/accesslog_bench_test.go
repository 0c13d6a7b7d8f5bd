package daemon

import (
	"crypto/rand"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
)

// BenchmarkAccessLog is what the records of calls cost, one end of each call: from the
// outcome to the commit, in batches as a busy agent writes them.
func BenchmarkAccessLog(b *testing.B) {
	log, err := auditchain.Open(b.Context(), filepath.Join(b.TempDir(), "audit.db"), auditchain.Options{Name: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = log.Close() })
	a := auditor{log: log, health: &health.Monitor{}}
	batch := make([]accessRecord, 512)
	for i := range batch {
		batch[i].CallRecord = rpc.CallRecord{
			Start: time.UnixMilli(1790000000000), Role: rpc.RoleCaller, Peer: "agent://callee", Capability: "answer-question", Mode: rpc.ModeSync,
			Status: rpc.StatusOK, Attempts: 1, Latency: 1234567, ExecutionTime: 345678, Payload: envelope.DigestPayload([]byte(`{"n":1}`)),
			TraceID: fmt.Sprintf("%x", random(16)), CorrelationID: fmt.Sprintf("%x-%x", random(8), random(8)),
		}
	}
	var memory batchMemory
	b.ReportAllocs()
	for n := 0; n < b.N; n += len(batch) {
		some := batch[:min(len(batch), b.N-n)]
		if written, err := a.appendCalls(b.Context(), some, &memory); written != len(some) || err != nil {
			b.Fatal(written, err)
		}
	}
}

func random(n int) []byte {
	b := make([]byte, n)
	rand.Read(b)
	return b
}

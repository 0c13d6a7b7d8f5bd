package record_test

import (
	"testing"

	"github.com/agentd/agentd/auditchain/internal/record"
)

// BenchmarkPrepare prepares the record of a call.
func BenchmarkPrepare(b *testing.B) {
	r := record.Record{Kind: record.KindRPCCall, Body: []byte(`{"attempts":1,"capabilityName":"review","correlationId":"019a3f7e-0000-7000-8000-000000000000","executionTimeMs":0.012,"latencyMs":1.234,"mode":"sync","payloadSha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","peerId":"agent://callee","role":"caller","startMs":1790000000000,"status":"ok","traceId":"0af7651916cd43dd8448eb211c80319c"}`)}
	var pr record.Preparer
	var p record.Prepared
	b.ReportAllocs()
	for b.Loop() {
		if err := pr.Prepare(&p, &r); err != nil {
			b.Fatal(err)
		}
	}
}

package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/internal/audittest"
)

// BenchmarkCheckLookups measures the comparison of packs with what finds them, as a verification
// makes it of a log that is erased from meanwhile. The time for a pack is the same however many
// there are.
func BenchmarkCheckLookups(b *testing.B) {
	for _, packs := range []int{1000, 4000} {
		b.Run(fmt.Sprintf("packs-%d", packs), func(b *testing.B) {
			now := time.UnixMilli(audittest.ClockStart)
			l := audittest.Open(b, auditchain.Options{Now: func() time.Time { return now }})
			records := make([]auditchain.Record, 20)
			for pack := range packs {
				for i := range records {
					records[i] = auditchain.Record{Kind: auditchain.KindRPCCall, Body: fmt.Appendf(nil,
						`{"capabilityName":"c-%d","correlationId":%q,"peerId":"agent://p-%d"}`, i%10, audittest.Correlation(pack*20+i), i)}
				}
				now = now.Add(time.Millisecond)
				if _, err := l.AppendAll(b.Context(), records); err != nil {
					b.Fatal(err)
				}
			}
			db := openReader(b, l.Path())
			for b.Loop() {
				if pack, err := db.CheckLookups(b.Context()); pack != 0 || err != nil {
					b.Fatal(pack, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*packs), "ns/pack")
		})
	}
}

package daemon_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/agentd/agentd/rpc"
)

// BenchmarkRules compares a call between two agents under permissions, limits,
// a concurrency bound and the access log of both ends with the same call without.
// In a flood the one caller is faster than the disk: the writers of the log take
// their share of the processors, and what they cannot keep up with is lost and counted.
func BenchmarkRules(b *testing.B) {
	const (
		noLog       = "security: {auditLog: false}\n"
		permissions = "permissions: {allow: ['RequestAgent:agent://callee/*'], deny: ['RequestAgent:**/admin']}\n"
		keys        = "    callers: ['agent://caller']\n    rateLimit: {requests: 1000000000}\n    concurrency: 100\n    cost: {compute: 0.1}\n"
	)
	for _, bench := range []struct {
		name, caller, callee, capability string
	}{
		{"without", noLog, noLog, ""},
		{"rules", permissions + noLog, noLog, keys},
		{"rules-and-access-log", permissions, "", keys},
	} {
		b.Run(bench.name, func(b *testing.B) {
			all := files()
			all["caller/agent.yaml"] += bench.caller
			all["callee/agent.yaml"] += bench.callee
			all["callee/capabilities.yaml"] = "version: 1\nagent: agent://callee\ntransports: [{kind: memory, topics: {requests: agents.callee.requests}}]\n" +
				"capabilities:\n  - name: go\n    inputSchema: {type: object, properties: {n: {type: integer}}, required: [n]}\n" + bench.capability
			cfg := load(b, all)
			cfg.Handlers = handle(echo)
			cfg.Logger = slog.New(slog.DiscardHandler)
			f := startFleet(b, cfg)
			defer stop(b, f)
			c := client(b, f, "caller")
			r := rpc.Request{To: "agent://callee", Capability: "go", Payload: json.RawMessage(`{"n":1}`)}
			ctx := context.Background()
			b.Run("flood", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := c.RequestAgent(ctx, r); err != nil {
						b.Fatal(err)
					}
				}
			})
			// As fast as the disk can follow: what a call itself waits.
			b.Run("paced", func(b *testing.B) {
				const pace = 500 * time.Microsecond
				var took []time.Duration
				for b.Loop() {
					start := time.Now()
					if _, err := c.RequestAgent(ctx, r); err != nil {
						b.Fatal(err)
					}
					took = append(took, time.Since(start))
					for time.Since(start) < pace {
						runtime.Gosched() // a processor that sleeps takes long to wake
					}
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2]), "p50-ns")
			})
		})
	}
}

package daemon_test

import (
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/sqlitetest"
	"github.com/agentd/agentd/rpc"
)

// While another program holds the audit log, calls are refused or go on, as the files
// say, and the operator is told which. Either way every call has its record afterwards.
func TestAuditLogThatTakesNoRecords(t *testing.T) {
	for mode, refuses := range map[string]bool{"closed": true, "open": false} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			all := files()
			all["callee/agent.yaml"] += "audit: {onFailure: " + mode + "}\n"
			cfg, logged := logTo(withGo(load(t, all)))
			f := startFleet(t, cfg)
			callee, _ := f.Daemon("callee")
			unlock := sqlitetest.Lock(t, callee.AuditDB())
			calls, refused := 0, 0
			trouble := func() (c health.Condition, found bool) {
				for _, c := range callee.Status().Conditions {
					if c.Kind == health.AuditLog {
						return c, true
					}
				}
				return c, false
			}
			for was := false; ; calls++ {
				r, err := goCall(t, f)
				if err != nil {
					refused++
					if rpc.CodeOf(err) != rpc.CodeAuditFailed || !r.Error.Retryable || !strings.Contains(r.Error.Message, "another program holds its audit log") {
						t.Fatalf("%+v", r.Error)
					}
				}
				if was { // this call was made in trouble
					calls++
					break
				}
				_, was = trouble()
				time.Sleep(time.Millisecond) // the queue of records must not overflow
			}
			c, _ := trouble()
			s := callee.Status()
			if c.Code != "busy" || c.Advisory == refuses || s.Ready == refuses || len(s.Warnings) > 0 == refuses || refused > 0 != refuses {
				t.Errorf("%d calls, %d refused, status %+v", calls, refused, s)
			}
			// The log is the agent's, so that every capability is concerned.
			_, err := client(t, f, "caller").RequestAgent(t.Context(), rpc.Request{To: "agent://callee", Capability: "cat", Payload: []byte(`{}`)})
			if (rpc.CodeOf(err) == rpc.CodeAuditFailed) != refuses {
				t.Errorf("a call of another capability: %v", err)
			}
			calls++
			if err := unlock(); err != nil {
				t.Fatal(err)
			}
			eventually.Holds(t, "records are taken again", func() bool { _, still := trouble(); return !still })
			stop(t, f)
			if got := len(ofKind(t, cfg, "callee", auditchain.KindRPCCall)); got != calls {
				t.Errorf("%d records of %d calls", got, calls)
			}
			recovered := 0
			for _, body := range ofKind(t, cfg, "callee", auditchain.KindLifecycle) {
				if body["event"] == "recovered" && body["code"] == "busy" && body["from"] != nil {
					recovered++
				}
				if body["event"] == "gap" {
					t.Errorf("%v", body)
				}
			}
			if recovered != 1 || strings.Count(logged(), "condition=audit-log") != 2 {
				t.Errorf("%d records of the recovery, logged %s", recovered, logged())
			}
		})
	}
}

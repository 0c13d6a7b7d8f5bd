package daemon

import (
	"testing"
	"time"

	"github.com/agentd/agentd/rpc"
)

// counting is an access log that counts.
type counting struct{ n int }

func (c *counting) RecordCall(rpc.CallRecord) { c.n++ }
func (c *counting) Refuses() error            { return nil }

// Only what the agent has served itself counts, under names that it offers; the
// counts outlive a change of what it offers. The access log hears of everything.
func TestCallStats(t *testing.T) {
	var next counting
	s := callStats{next: &next}
	s.setCapabilities([]string{"a", "b"})
	call := func(role rpc.Role, capability string, code rpc.Code) {
		s.RecordCall(rpc.CallRecord{Role: role, Capability: capability, Code: code, Latency: time.Second})
	}
	call(rpc.RoleCallee, "a", 0)
	call(rpc.RoleCallee, "a", rpc.CodeBusy)
	call(rpc.RoleCallee, "b", 0)
	call(rpc.RoleCaller, "a", 0)
	call(rpc.RoleCallee, "a", rpc.CodeNoCapability)
	call(rpc.RoleCallee, "made up", 0)
	if got, want := s.capability("a"), (callCounts{requests: 2, errors: 1, busy: 2 * time.Second, lastError: "EAGENTRPC_BUSY"}); got != want {
		t.Errorf("a: %+v, want %+v", got, want)
	}
	s.setCapabilities([]string{"a", "c"})
	call(rpc.RoleCallee, "a", 0)
	call(rpc.RoleCallee, "b", 0)
	if all := s.total(); all.requests != 3 || all.errors != 1 || s.capability("b") != (callCounts{}) || s.capability("c") != (callCounts{}) {
		t.Errorf("together %+v", all)
	}
	if next.n != 8 {
		t.Errorf("the access log heard of %d calls", next.n)
	}
}

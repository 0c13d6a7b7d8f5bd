package daemon

import (
	"slices"
	"testing"
	"time"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/daemon/metrics"
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
	s := callStats{next: &next, calls: metrics.NewCalls()}
	s.calls.Know(metrics.Known{Served: []string{"a", "b"}})
	call := func(role rpc.Role, capability string, code rpc.Code) {
		s.RecordCall(rpc.CallRecord{Role: role, Capability: capability, Code: code, Latency: time.Second})
	}
	call(rpc.RoleCallee, "a", 0)
	call(rpc.RoleCallee, "a", rpc.CodeBusy)
	call(rpc.RoleCallee, "b", 0)
	call(rpc.RoleCaller, "a", 0)
	call(rpc.RoleCallee, "a", rpc.CodeNoCapability)
	call(rpc.RoleCallee, "made up", 0)
	if got, want := s.calls.Served("a"), (metrics.Served{Requests: 2, Errors: 1, Busy: 2 * time.Second, LastError: "EAGENTRPC_BUSY"}); got != want {
		t.Errorf("a: %+v, want %+v", got, want)
	}
	s.calls.Know(metrics.Known{Served: []string{"a", "c"}})
	call(rpc.RoleCallee, "a", 0)
	call(rpc.RoleCallee, "b", 0)
	if all := s.calls.Total(); all.Requests != 3 || all.Errors != 1 || s.calls.Served("b") != (metrics.Served{}) || s.calls.Served("c") != (metrics.Served{}) {
		t.Errorf("together %+v", all)
	}
	if next.n != 8 {
		t.Errorf("the access log heard of %d calls", next.n)
	}
}

// Calls count for the tenant that they name, if the agent serves that one. Requests that
// may not name it are not its own.
func TestCallStatsOfTenants(t *testing.T) {
	s := callStats{calls: metrics.NewCalls()}
	s.calls.Know(metrics.Known{Served: []string{"a"}})
	s.setTenants([]string{"default", "acme"})
	for _, call := range []struct {
		tenant string
		code   rpc.Code
	}{{"", 0}, {"acme", 0}, {"acme", rpc.CodeBusy}, {"acme", rpc.CodeTenantMismatch}, {"evil", rpc.CodeTenantMismatch}} {
		s.RecordCall(rpc.CallRecord{Role: rpc.RoleCallee, Capability: "a", TenantID: call.tenant, Code: call.code})
	}
	want := []control.TenantLoad{{Tenant: "acme", Requests: 2, Errors: 1}, {Tenant: "default", Requests: 1}}
	if got := s.tenants(); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	s.setTenants([]string{"acme"})
	if got := s.tenants(); !slices.Equal(got, want[:1]) {
		t.Errorf("after a reload: %+v", got)
	}
}

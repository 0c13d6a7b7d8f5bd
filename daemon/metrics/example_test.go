package metrics_test

import (
	"fmt"
	"time"

	"github.com/agentd/agentd/daemon/metrics"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
)

// Calls are counted by the names that the agent's files have.
func ExampleCalls() {
	calls := metrics.NewCalls()
	calls.Know(metrics.Known{
		Served: []string{"review"},
		Caller: func(a envelope.Address) bool { return a == "agent://planner" },
	})
	for _, capability := range []string{"review", "review", "made-up"} {
		r := rpc.CallRecord{Role: rpc.RoleCallee, Peer: "agent://planner", Capability: capability, Status: rpc.StatusOK, Latency: time.Millisecond}
		if capability == "made-up" {
			r.Code, r.Status = rpc.CodeNoCapability, rpc.StatusError
		}
		calls.Observe(&r)
	}
	fmt.Println(calls.Served("review").Requests, calls.Served("made-up").Requests)
	// Output: 2 0
}

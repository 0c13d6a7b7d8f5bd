package main

import (
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/rpc"
)

// More calls at once than an agent serves by default (limits.maxInFlight is 256) wait for
// their turn, also where each takes a process: all are served.
//
// It is not parallel to others: it takes all of the machine, and they have timeouts.
func TestBurstOfProcesses(t *testing.T) {
	calls := 1000
	if raceEnabled {
		calls = 300 // a process takes ten times as long to start
	}
	o := openOffice(t, "", nil)
	var all sync.WaitGroup
	for range calls {
		all.Go(func() {
			result, err := o.desk.RequestAgent(t.Context(), rpc.Request{
				To: "agent://clerk", Capability: "file", Payload: json.RawMessage(`{"n":1}`), Timeout: 2 * time.Minute, // machines may be busy
			})
			if err != nil || result.Status != rpc.StatusOK || string(result.Response) != `{"n":1}` {
				t.Errorf("%+v, %v", result, err)
			}
		})
	}
	all.Wait()
	// A call is counted after its reply.
	eventually.Holds(t, "the clerk has counted them", func() bool {
		status, err := o.clerk.Status(t.Context())
		return err == nil && status.Requests == calls && status.Errors == 0 && status.Dropped == 0
	})
	o.stop(t)
}

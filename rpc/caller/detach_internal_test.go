package caller

import (
	"testing"

	"github.com/agentd/agentd/rpc"
)

// Kept answers are bounded in bytes too, and those that were fetched make room.
func TestKeptAnswersAreBounded(t *testing.T) {
	table := newDetachedCalls(10)
	defer table.close()
	end := func(d *detachedCall, size int) {
		table.finish(d, &rpc.Result{Status: rpc.StatusOK, Response: make([]byte, size)})
		table.running.Done()
	}
	large, err := table.reserve("large", "")
	if err != nil {
		t.Fatal(err)
	}
	end(large, maxKeptBytes)
	if _, err := table.reserve("next", ""); err == nil || err.Code != rpc.CodeBusy {
		t.Errorf("beyond the bound: %v", err)
	}
	table.noteFetched(large)
	next, err := table.reserve("next", "")
	if err != nil || table.find("large") != nil || table.bytes != 0 {
		t.Fatalf("%v, %d bytes", err, table.bytes)
	}
	end(next, 1)
	table.remove(next)
	if table.find("next") != nil || table.bytes != 0 {
		t.Errorf("%d bytes of nothing", table.bytes)
	}
}

// A client that is closed begins no call whose answer nobody could fetch.
func TestNoDetachedCallAfterClose(t *testing.T) {
	table := newDetachedCalls(10)
	table.close()
	if _, err := table.reserve("late", ""); err == nil || err.Code != rpc.CodeAbandoned {
		t.Errorf("got %v", err)
	}
}

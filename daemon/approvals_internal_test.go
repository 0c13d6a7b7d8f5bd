package daemon

import (
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
)

// A caller that asks over and over takes the room of nobody else, and the calls of one end
// take none of the other's.
func TestRoomForCallsThatWait(t *testing.T) {
	a := newApprovals("agent://callee", auditor{}, time.Minute, nil, slog.New(slog.DiscardHandler))
	ids := 0
	proven := false
	add := func(role rpc.Role, peer envelope.Address) bool {
		ids++
		return a.add(&waitingCall{id: strconv.Itoa(ids), request: rpc.ApprovalRequest{Role: role, Peer: peer, Proven: proven}})
	}
	fill := func(role rpc.Role, peer envelope.Address) (n int) {
		for n <= maxApprovals && add(role, peer) {
			n++
		}
		return n
	}
	for _, peer := range []envelope.Address{"agent://a", "agent://b", "agent://c"} {
		if n := fill(rpc.RoleCallee, peer); n != maxApprovalsPerPeer {
			t.Errorf("%d calls of %s wait", n, peer)
		}
	}
	a.remove("1")
	if !add(rpc.RoleCallee, "agent://a") || add(rpc.RoleCallee, "agent://a") {
		t.Error("a call that has left makes room for one")
	}
	// All of these may be a stranger's, in the names of others.
	if proven = true; fill(rpc.RoleCallee, "agent://a") != maxApprovals-3*maxApprovalsPerPeer {
		t.Error("who proves that it is agent://a has no room of its own")
	}
	if add(rpc.RoleCallee, "agent://e") {
		t.Error("more than maxApprovals wait")
	}
	if n := fill(rpc.RoleCaller, "agent://a"); n != maxApprovals {
		t.Errorf("%d of the agent's own calls wait", n)
	}
}

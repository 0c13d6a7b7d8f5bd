package caller_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
	"github.com/agentd/agentd/rpc/internal/wire"
	"github.com/agentd/agentd/transport"
)

// A replica that is going away refuses what it has not begun. The request is sent to
// another one at once, whatever the contract says about retries; any other refusal as
// busy is not.
func TestDrainingReplica(t *testing.T) {
	busy := rpc.NewError(rpc.CodeBusy, nil, "later")
	for _, test := range []struct {
		name    string
		refusal *rpc.Error
		times   int64 // that it is refused
		code    rpc.Code
		sent    int
	}{
		{"one of several", wire.Draining(rpctest.Reviewer), 1, 0, 2},
		{"three of several", wire.Draining(rpctest.Reviewer), 3, 0, 4},
		{"six, until the broker knows", wire.Draining(rpctest.Reviewer), 6, 0, 7},
		{"all", wire.Draining(rpctest.Reviewer), 99, rpc.CodeBusy, 9},
		{"busy otherwise", busy, 9, rpc.CodeBusy, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			calls := &rpctest.Calls{}
			w := rpctest.NewWorld(t, rpctest.Silent(), func(cc *caller.Config, _ *callee.Config) { cc.Records.Access = calls })
			var left atomic.Int64
			left.Store(test.times)
			w.TakeOver(t, func(request *envelope.Envelope, send func(*envelope.Envelope)) {
				reply := rpctest.Reply(request)
				if left.Add(-1) >= 0 {
					reply.Payload = wire.Failure(test.refusal).Bytes()
				}
				send(reply)
			})
			seen := w.Tap(t)
			res := w.Call(t, rpctest.Request())
			if test.code == 0 {
				rpctest.WantStatus(t, res, rpc.StatusOK, 0)
			} else {
				rpctest.WantStatus(t, res, rpc.StatusBusy, test.code)
			}
			messages := map[string]bool{}
			for range test.sent {
				messages[rpctest.Wait(t, seen).MessageID] = true
			}
			if r := calls.All()[0]; len(messages) != test.sent || len(seen) != 0 || r.Attempts != test.sent || len(r.Retried) != test.sent-1 {
				t.Errorf("%d requests, and %d more; the record has %d attempts, retried %v", len(messages), len(seen), r.Attempts, r.Retried)
			}
		})
	}
}

// The last replica that goes away has said so: the call ends with that, which says more
// than that nobody is there any more.
func TestDrainingLastReplica(t *testing.T) {
	w := rpctest.NewWorld(t, rpctest.Silent())
	var asked atomic.Int64
	w.TakeOver(t, func(request *envelope.Envelope, send func(*envelope.Envelope)) {
		if asked.Add(1) == 1 {
			reply := rpctest.Reply(request)
			reply.Payload = wire.Failure(wire.Draining(rpctest.Reviewer)).Bytes()
			send(reply)
			return
		}
		_, topic, _ := strings.Cut(request.ReplyTo, "://")
		if err := w.CalleeConn.Publish(context.Background(), transport.Message{Topic: topic, Err: transport.NoResponders}); err != nil {
			t.Error(err)
		}
	})
	res := w.Call(t, rpctest.Request())
	rpctest.WantStatus(t, res, rpc.StatusBusy, rpc.CodeBusy)
	var details struct{ Draining bool }
	if json.Unmarshal(res.Error.Details, &details) != nil || !details.Draining || !res.Error.Retryable {
		t.Errorf("%+v", res.Error)
	}
}

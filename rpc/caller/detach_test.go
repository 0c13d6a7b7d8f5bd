package caller_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/memory"
)

// foreign makes the callee an agent of another system; without a contract where
// unknown is set.
func foreign(unknown bool) rpctest.Option {
	return func(cc *caller.Config, _ *callee.Config) {
		peer := cc.Peers.(rpc.Peers)[rpctest.Reviewer]
		peer.Foreign = true
		if unknown {
			peer.Contract = nil
		}
		cc.Peers = rpc.Peers{rpctest.Reviewer: peer}
	}
}

func asyncRequest() rpc.Request {
	r := rpctest.Request()
	r.Mode = rpc.ModeAsync
	return r
}

// An asynchronous call to an agent of the reference system returns once its request
// is published. The answer, which that agent sends like any other, is kept and can be
// awaited more than once.
func TestAsyncToForeignPeer(t *testing.T) {
	for _, unknown := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			calls := &rpctest.Calls{}
			w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), foreign(unknown), func(cc *caller.Config, _ *callee.Config) { cc.Records.Access = calls })
			requests := make(chan *envelope.Envelope, 1)
			w.TakeOver(t, func(request *envelope.Envelope, send func(*envelope.Envelope)) {
				requests <- request
				go func() { // the bus waits for its handlers
					time.Sleep(time.Minute)
					send(rpctest.Reply(request))
				}()
			})
			res := w.Call(t, asyncRequest())
			rpctest.WantStatus(t, res, rpc.StatusOK, 0)
			if !res.Queued || res.Response != nil || res.Latency != 0 || res.CostEstimate != nil {
				t.Errorf("%+v", res)
			}
			request := <-requests
			if mode, _ := request.Headers.Get(envelope.HeaderMode); request.Kind != envelope.Request || request.ReplyTo == "" || mode != "async" {
				t.Errorf("request %+v", request)
			}
			impatient, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			early, err := w.Client.Await(impatient, res.CorrelationID)
			rpctest.WantStatus(t, early, rpc.StatusTimeout, rpc.CodeTimeout)
			if !errors.Is(err, early.Error) {
				t.Errorf("%v", err)
			}
			for range 2 {
				later, err := w.Client.Await(t.Context(), res.CorrelationID)
				if err != nil || later.Status != rpc.StatusOK || string(later.Response) != rpctest.ValidAnswer || later.CorrelationID != res.CorrelationID || later.TraceID != res.TraceID {
					t.Errorf("%+v, %v", later, err)
				}
			}
			if all := calls.All(); len(all) != 1 || all[0].Mode != rpc.ModeAsync || all[0].Attempts != 1 {
				t.Errorf("records %+v", all)
			}
			time.Sleep(time.Hour)
			if again := w.Call(t, asyncRequest()); !again.Queued { // makes room
				t.Errorf("%+v", again)
			}
			gone, _ := w.Client.Await(t.Context(), res.CorrelationID)
			rpctest.WantStatus(t, gone, rpc.StatusError, rpc.CodeInvalidRequest)
			time.Sleep(2 * time.Minute) // for the second answer
		})
	}
}

// What the answer is worth is told by Await; what is wrong with the request, at once.
func TestAsyncToForeignPeerFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), foreign(false))
		var payload atomic.Value
		w.TakeOver(t, func(request *envelope.Envelope, send func(*envelope.Envelope)) {
			reply := rpctest.Reply(request)
			if answer := payload.Load().(string); answer != "" {
				reply.Payload = json.RawMessage(answer)
				send(reply)
			}
		})
		bad := asyncRequest()
		bad.Payload = json.RawMessage(`{}`)
		rpctest.WantStatus(t, w.Call(t, bad), rpc.StatusSchemaViolation, rpc.CodeSchemaViolation)
		for _, test := range []struct {
			payload string
			status  rpc.Status
			code    rpc.Code
		}{
			{`{"ok":true,"data":{}}`, rpc.StatusSchemaViolation, rpc.CodeSchemaViolation},
			{`{"ok":false,"error":"no such note"}`, rpc.StatusError, rpc.CodeHandlerError},
			{``, rpc.StatusTimeout, rpc.CodeTimeout},
		} {
			payload.Store(test.payload)
			r := asyncRequest()
			r.Timeout = time.Minute
			res := w.Call(t, r)
			rpctest.WantStatus(t, res, rpc.StatusOK, 0)
			later, err := w.Client.Await(t.Context(), res.CorrelationID)
			rpctest.WantStatus(t, later, test.status, test.code)
			if err == nil {
				t.Error("no error")
			}
		}
		if len(w.CallerViolations.All()) != 2 {
			t.Errorf("%d violations", len(w.CallerViolations.All()))
		}
	})
}

// Nobody is there: the caller learns it at once, or where the broker says so only
// after it has taken the request, from Await. The same call to an agent of the fleet
// is refused, since agentd would keep its request if the contract said so.
func TestAsyncToNobody(t *testing.T) {
	w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), foreign(true))
	w.StopInbox(t)
	res := w.Call(t, asyncRequest())
	if res.Status == rpc.StatusOK {
		res, _ = w.Client.Await(t.Context(), res.CorrelationID)
	}
	rpctest.WantStatus(t, res, rpc.StatusError, rpc.CodeNoResponders)
	member := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer))
	rpctest.WantStatus(t, member.Call(t, asyncRequest()), rpc.StatusError, rpc.CodeNeedsDurable)
}

// A foreign peer may have a queue: the broker is asked first, and not again for a
// while when it knows none.
func TestAsyncAsksForQueueFirst(t *testing.T) {
	for name, fails := range map[string]map[string]error{
		"a queue":            nil,
		"no queue":           {"Enqueue": fmt.Errorf("nowhere: %w", transport.ErrNoQueue)},
		"no notes":           {"Note": errors.New("no bucket")},
		"a queue that fails": {"Enqueue": errors.New("disk")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, asked := rpctest.NewQueue(), 0
				q.Fail = func(operation string) error {
					if operation == "Note" {
						asked++
					}
					return fails[operation]
				}
				w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), foreign(true), func(cc *caller.Config, _ *callee.Config) {
					cc.Queues = map[string]transport.CallQueue{memory.Kind: q}
				})
				seen := w.Tap(t)
				res := w.Call(t, asyncRequest())
				if name == "a queue that fails" {
					rpctest.WantStatus(t, res, rpc.StatusError, rpc.CodePublishFailed)
					return
				}
				w.Call(t, asyncRequest())
				synctest.Wait()
				direct, stored := len(seen), asked
				time.Sleep(2 * time.Minute)
				w.Call(t, asyncRequest())
				ids, _ := q.Requests(t)
				switch {
				case name == "a queue" && (direct != 0 || len(ids) != 3):
					t.Errorf("%d direct, %d queued", direct, len(ids))
				case name == "no queue" && (direct != 2 || stored != 1 || asked != 2):
					t.Errorf("%d direct, asked %d times, later %d", direct, stored, asked)
				case name == "no notes" && direct != 2:
					t.Errorf("%d direct", direct)
				}
				if name != "a queue" {
					later, err := w.Client.Await(t.Context(), res.CorrelationID)
					if err != nil || string(later.Response) != rpctest.ValidAnswer {
						t.Errorf("%+v, %v", later, err)
					}
				}
			})
		})
	}
}

// A call that runs in the background ends with its client, and as many as may be
// pending is as many as there may be: answers that were fetched make room.
func TestDetachedCallsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), foreign(true), func(cc *caller.Config, _ *callee.Config) { cc.Limits.MaxPending = 2 })
		first, second := w.Call(t, asyncRequest()), w.Call(t, asyncRequest())
		synctest.Wait()
		rpctest.WantStatus(t, w.Call(t, asyncRequest()), rpc.StatusBusy, rpc.CodeBusy)
		if _, err := w.Client.Await(t.Context(), second.CorrelationID); err != nil {
			t.Fatal(err)
		}
		third := w.Call(t, asyncRequest())
		rpctest.WantStatus(t, third, rpc.StatusOK, 0)
		if _, err := w.Client.Await(t.Context(), first.CorrelationID); err != nil {
			t.Errorf("an answer that nobody has fetched is gone: %v", err)
		}
		if gone, _ := w.Client.Await(t.Context(), second.CorrelationID); gone.Status == rpc.StatusOK {
			t.Error("the fetched answer did not make room")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), foreign(true))
		w.TakeOver(t, func(*envelope.Envelope, func(*envelope.Envelope)) {})
		res := w.Call(t, asyncRequest())
		if err := w.Client.Close(); err != nil {
			t.Fatal(err)
		}
		ended, _ := w.Client.Await(t.Context(), res.CorrelationID)
		rpctest.WantStatus(t, ended, rpc.StatusAbandoned, rpc.CodeAbandoned)
		late := w.Call(t, asyncRequest())
		rpctest.WantStatus(t, late, rpc.StatusAbandoned, rpc.CodeAbandoned)
	})
}

package caller_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
	"github.com/agentd/agentd/transport"
)

// A broker that knows a reply topic already has less work with the answer.
func TestReplyTopicsAreUsedAgain(t *testing.T) {
	w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer))
	f := &faultyCallee{replies: []string{succeeds}}
	f.serve(t, w)
	for range 3 {
		rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusOK, 0)
	}
	if first, last := f.requests[0], f.requests[2]; first.ReplyTo != last.ReplyTo || first.CorrelationID == last.CorrelationID {
		t.Errorf("calls one after the other have the reply topics %s and %s, and the correlation ids %s and %s",
			first.ReplyTo, last.ReplyTo, first.CorrelationID, last.CorrelationID)
	}
}

// Whoever has learned a reply topic can say there that the peer is not there. So no other
// peer ever gets it.
func TestReplyTopicsStayWithTheirPeer(t *testing.T) {
	const other = envelope.Address("agent://other")
	synctest.Test(t, func(t *testing.T) {
		w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), func(cc *caller.Config, _ *callee.Config) {
			peers := cc.Peers.(rpc.Peers)
			peer := peers[rpctest.Reviewer]
			peer.Address = other
			peers[other] = peer
		})
		f := &faultyCallee{replies: []string{succeeds}}
		f.serve(t, w)
		rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusOK, 0)
		request := rpctest.Request()
		request.To = other
		// The callee by hand answers as Reviewer, which is no answer of the other one.
		rpctest.WantStatus(t, w.Call(t, request), rpc.StatusTimeout, rpc.CodeTimeout)
		if first, second := f.requests[0], f.requests[1]; first.ReplyTo == second.ReplyTo {
			t.Errorf("the request to %s has the reply topic of one to %s", second.To, first.To)
		}
	})
}

// What comes late on the topic of a call must not reach another call.
func TestTopicsOfUnansweredCallsAreNotUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer))
		f := &faultyCallee{replies: []string{"", succeeds}}
		f.serve(t, w)
		rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusTimeout, rpc.CodeTimeout)
		rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusOK, 0)
		if first, second := f.requests[0], f.requests[1]; first.ReplyTo == second.ReplyTo {
			t.Errorf("two calls have the reply topic %s, and nobody has answered the first", first.ReplyTo)
		}
	})
}

// An answer that comes twice, the second time to the next call on its topic, is not that
// call's.
func TestAnswerToTheCallBeforeIsStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer))
		var before string
		forger(t, w, func(req, reply *envelope.Envelope) {
			if before != "" {
				reply.CorrelationID, reply.CausedBy = before, ""
			}
			before = req.CorrelationID
		})
		rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusOK, 0)
		synctest.Wait()
		stale := w.Client.Stale()
		if res := w.Call(t, rpctest.Request()); string(res.Response) != rpctest.ValidAnswer {
			t.Errorf("the answer to the call before counted: %s %v", res.Response, res.Error)
		}
		synctest.Wait()
		if n := w.Client.Stale() - stale; n != 1 {
			t.Errorf("%d stale replies, want that to the call before", n)
		}
	})
}

// The proven answer to a call, published again on the same topic, neither answers the next call
// there nor ends it: the proof covers the call that it is of.
func TestProvenAnswerToTheCallBeforeIsStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both, kept := rpctest.Proven(t)
		w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), both)
		w.StopInbox(t)
		keys, topics := rpctest.Keyring(t, rpctest.Reviewer, rpctest.Concierge), make(chan string, 2)
		var before *envelope.Envelope
		if _, err := w.CalleeConn.Subscribe(rpctest.Topic, "", func(m transport.Message) {
			topics <- m.Reply
			request, err := envelope.Decode(m.Data)
			if err != nil {
				t.Error(err)
				return
			}
			answer := rpctest.Reply(request)
			if before != nil {
				w.PublishSigned(t, m.Reply, before, keys)
			} else {
				answer.Payload = json.RawMessage(`{"ok":true,"data":{"verdict":"comment"}}`)
			}
			w.PublishSigned(t, m.Reply, answer, keys)
			before = answer
		}); err != nil {
			t.Fatal(err)
		}
		rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusOK, 0)
		res := w.Call(t, rpctest.Request())
		rpctest.WantStatus(t, res, rpc.StatusOK, 0)
		if string(res.Response) != rpctest.ValidAnswer {
			t.Errorf("the answer to the call before counted: %s", res.Response)
		}
		if first, second := <-topics, <-topics; first != second || w.Client.Stale() != 1 || kept.Proofs() != "" {
			t.Errorf("the topics %s and %s, %d stale replies, and the refusals %q", first, second, w.Client.Stale(), kept.Proofs())
		}
	})
}

package callee_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
	"github.com/agentd/agentd/transport"
)

// edited is e as JSON, with the given members set; a nil value removes one.
func edited(t *testing.T, e *envelope.Envelope, members map[string]any) []byte {
	t.Helper()
	data, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	for name, value := range members {
		if all[name] = value; value == nil {
			delete(all, name)
		}
	}
	data, err = json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A message that is no envelope of version 1 runs nothing. Its sender is told, if it
// says who it is and where it takes answers; it is recorded in any case.
func TestMalformedRequests(t *testing.T) {
	for name, test := range map[string]struct {
		members map[string]any
		raw     string // instead of a request with these members
		plain   bool   // the broker's reply topic is given instead of replyTo
		told    string // what the reply says; "" for no reply
		peer    envelope.Address
	}{
		"version 2":              {members: map[string]any{"version": 2}, told: "envelope version 2 is not supported: this agent takes version 1", peer: "agent://foreign"},
		"version 2, another way": {members: map[string]any{"version": 2, "to": nil, "target": []string{"a"}, "payload": nil}, told: "envelope version 2 is not supported", peer: "agent://foreign"},
		"no version":             {members: map[string]any{"version": nil}, told: "version: ", peer: "agent://foreign"},
		"an unknown key":         {members: map[string]any{"priority": 1}, told: `unknown key "priority"`, peer: "agent://foreign"},
		"no message id":          {members: map[string]any{"messageId": nil}, told: "messageId: ", peer: "agent://foreign"},
		"no capability":          {members: map[string]any{"capability": nil}, told: "capability: ", peer: "agent://foreign"},
		"a bad addressee":        {members: map[string]any{"to": "reviewer"}, told: "to: ", peer: "agent://foreign"},
		"headers of numbers":     {members: map[string]any{"headers": map[string]any{"n": 1}}, told: "headers: ", peer: "agent://foreign"},
		"by the broker's reply":  {members: map[string]any{"version": 2, "replyTo": nil}, plain: true, told: "envelope version 2", peer: "agent://foreign"},
		"nowhere to answer":      {members: map[string]any{"version": 2, "replyTo": nil}, peer: "agent://foreign"},
		"on another transport":   {members: map[string]any{"version": 2, "replyTo": "kafka://replies"}, peer: "agent://foreign"},
		"nobody to answer":       {members: map[string]any{"from": "somebody"}},
		"no correlation id":      {members: map[string]any{"version": 2, "correlationId": nil}, peer: "agent://foreign"},
		"an event":               {members: map[string]any{"version": 2, "kind": "event"}, peer: "agent://foreign"},
		"no JSON":                {raw: `{"version":1`},
		"no object":              {raw: `[1]`},
		"not even text":          {raw: "\x00\xff"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				counted, calls := &runs{skill: rpctest.Answers(rpctest.ValidAnswer)}, &rpctest.Calls{}
				w := rpctest.NewWorld(t, counted, func(_ *caller.Config, ic *callee.Config) { ic.Records.Access = calls })
				f := rpctest.NewForeignCaller(t, w)
				for _, on := range []string{rpctest.Topic, rpctest.Topic + ".capabilities"} {
					m := transport.Message{Topic: on, Data: []byte(test.raw)}
					if test.raw == "" {
						m.Data = edited(t, f.Request(), test.members)
					}
					if test.plain {
						m.Reply = f.Inbox.Topic("c-1")
					}
					if err := w.CallerConn.Publish(t.Context(), m); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
				if want := min(len(test.told), 1) * 2; len(f.Replies) != want || counted.Load() != 0 {
					t.Fatalf("%d replies, want %d; the skill ran %d times", len(f.Replies), want, counted.Load())
				}
				for range len(f.Replies) {
					reply := <-f.Replies
					_, err := parseReply(t, reply)
					if reply.To != "agent://foreign" || reply.CorrelationID != "c-1" || err.Code != "EAGENTRPC_INVALID_ENVELOPE" ||
						!strings.Contains(err.Message, test.told) || err.Retryable {
						t.Errorf("reply %+v: %+v", reply, err)
					}
					if strings.HasPrefix(test.told, "envelope version") && string(err.Details) != `{"supportedVersions":[1]}` {
						t.Errorf("details %s", err.Details)
					}
				}
				all := calls.All()
				if len(all) != 2 {
					t.Fatalf("%d records", len(all))
				}
				if r := all[0]; r.Code != rpc.CodeInvalidEnvelope || r.Peer != test.peer || r.DetectedBy != rpctest.Reviewer || len(r.TraceID) != 32 || r.Cost != nil {
					t.Errorf("record %+v", r)
				}
			})
		})
	}
}

// replyError is the error in a reply.
type replyError struct {
	Code, Message string
	Retryable     bool
	Details       json.RawMessage
}

func parseReply(t *testing.T, e *envelope.Envelope) (data json.RawMessage, err replyError) {
	t.Helper()
	var body struct {
		Data  json.RawMessage
		Error replyError
	}
	if err := json.Unmarshal(e.Payload, &body); err != nil {
		t.Fatal(err)
	}
	return body.Data, body.Error
}

// A malformed answer is not answered: two agents could do so for ever.
func TestMalformedResponsesAreIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := &rpctest.Calls{}
		w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), func(_ *caller.Config, ic *callee.Config) { ic.Records.Access = calls })
		f := rpctest.NewForeignCaller(t, w)
		data := edited(t, f.Request(), map[string]any{"version": 2, "kind": "response"})
		if err := w.CallerConn.Publish(t.Context(), transport.Message{Topic: rpctest.Topic, Data: data}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(f.Replies) != 0 || len(calls.All()) != 0 {
			t.Errorf("%d replies, %d records", len(f.Replies), len(calls.All()))
		}
	})
}

// Where senders must prove themselves, a message whose proof cannot be verified gets
// no answer: it could name a topic that is not its sender's. A flood of them leaves a
// few records, which count the others.
func TestMalformedRequestsProveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := &rpctest.Calls{}
		both, _ := rpctest.Proven(t)
		w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), both, func(_ *caller.Config, ic *callee.Config) { ic.Records.Access = calls })
		f := rpctest.NewForeignCaller(t, w)
		const flood = 50
		publish := func(i int) {
			e := f.Request()
			e.From = rpctest.Concierge
			data := edited(t, e, map[string]any{"version": 2, "messageId": fmt.Sprint("m-", i)})
			if err := w.CallerConn.Publish(t.Context(), transport.Message{Topic: rpctest.Topic, Data: data}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range flood {
			publish(i)
		}
		synctest.Wait()
		if n := len(calls.All()); len(f.Replies) != 0 || n == 0 || n > 10 {
			t.Errorf("%d replies, %d records", len(f.Replies), n)
		}
		time.Sleep(time.Minute)
		publish(flood)
		synctest.Wait()
		counted := int64(0)
		for _, r := range calls.All() {
			counted += 1 + r.Unrecorded
		}
		if counted != flood+1 {
			t.Errorf("records account for %d messages of %d", counted, flood+1)
		}
	})
}

// A request of the reference system in mode async may have nowhere to go with the
// answer: the skill runs, and is told that nobody waits.
func TestAsyncFromForeignCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := &rpctest.Calls{}
		ran := make(chan rpc.Invocation, 2)
		w := rpctest.NewWorld(t, invoked(ran), func(_ *caller.Config, ic *callee.Config) { ic.Records.Access = calls })
		f := rpctest.NewForeignCaller(t, w)
		e := f.Request()
		e.ReplyTo = ""
		w.Publish(t, rpctest.Topic, e)
		e = f.Request() // and one that gets its answer where it takes all of them
		e.MessageID, e.CorrelationID = "m-2", "c-2"
		w.Publish(t, rpctest.Topic, e)
		synctest.Wait()
		first, second := <-ran, <-ran
		if first.MessageID != "m-1" {
			first, second = second, first
		}
		if !first.Event || second.Event || len(f.Replies) != 1 {
			t.Errorf("without an answer: %v, %v; %d replies", first.Event, second.Event, len(f.Replies))
		}
		modes := map[string]rpc.Mode{}
		for _, r := range calls.All() {
			modes[r.CorrelationID] = r.Mode
		}
		if modes["c-1"] != rpc.ModeAsync || modes["c-2"] != rpc.ModeSync {
			t.Errorf("recorded modes %v", modes)
		}
	})
}

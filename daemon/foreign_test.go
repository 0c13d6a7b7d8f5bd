package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/rpc"
)

// A referenceAgent is an agent of the reference system as far as the wire shows it:
// it knows the envelope, subjects and nothing of agentd.
type referenceAgent struct {
	nc       *natsgo.Conn
	requests chan map[string]any
	answers  chan map[string]any // to requests of its own
}

const referenceSubject = "agents.reference.requests"

// newReferenceAgent answers every request with what answer returns, 50 ms later.
func newReferenceAgent(t *testing.T, url string, answer func(request map[string]any) any) *referenceAgent {
	t.Helper()
	nc, err := natsgo.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	r := &referenceAgent{nc: nc, requests: make(chan map[string]any, 10), answers: make(chan map[string]any, 10)}
	for subject, handle := range map[string]func(map[string]any){
		referenceSubject: func(request map[string]any) {
			r.requests <- request
			replyTo, ok := request["replyTo"].(string)
			if !ok {
				return
			}
			reply := r.envelope("response", fmt.Sprint(request["from"]), fmt.Sprint(request["capability"]))
			reply["correlationId"], reply["causedBy"], reply["payload"] = request["correlationId"], request["messageId"], answer(request)
			time.AfterFunc(50*time.Millisecond, func() { _ = r.publish(strings.TrimPrefix(replyTo, "nats://"), reply) }) // the test may have ended
		},
		"agents.reference.elsewhere.responses": func(reply map[string]any) { r.answers <- reply },
	} {
		if _, err := nc.Subscribe(subject, func(m *natsgo.Msg) {
			var e map[string]any
			if json.Unmarshal(m.Data, &e) == nil {
				handle(e)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *referenceAgent) envelope(kind, to, capability string) map[string]any {
	return map[string]any{
		"version": 1, "kind": kind, "messageId": natsgo.NewInbox(), "correlationId": "turn-1", "from": "agent://reference.elsewhere",
		"to": to, "capability": capability, "auth": map[string]any{"kind": "internal"},
	}
}

func (r *referenceAgent) publish(subject string, e map[string]any) error {
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return r.nc.Publish(subject, data)
}

// send publishes a request to the callee.
func (r *referenceAgent) send(t *testing.T, e map[string]any) {
	t.Helper()
	if err := r.publish("agents.callee.requests", e); err != nil {
		t.Fatal(err)
	}
}

func receive(t *testing.T, c <-chan map[string]any) map[string]any {
	t.Helper()
	select {
	case e := <-c:
		return e
	case <-time.After(20 * time.Second):
		t.Fatal("waited for too long")
		return nil
	}
}

// foreignFiles adds the reference agent to the peers, with a contract or without.
func foreignFiles(server string, pinned bool) map[string]string {
	all := natsFiles(server)
	peer := "  - agent: agent://reference.elsewhere\n    transports: [{kind: nats, servers: ['" + server + "'], subjects: {requests: " + referenceSubject + "}}]\n"
	if pinned {
		peer += "    capabilities: ./reference.yaml\n"
		all["reference.yaml"] = strings.NewReplacer("agent://callee", "agent://reference.elsewhere", "agents.callee.requests", referenceSubject).Replace(all["callee/capabilities.yaml"])
	}
	all["rpc-peers.yaml"] += peer
	return all
}

// An asynchronous call to an agent that knows no queues is answered like any other;
// the caller's agentd keeps the answer. A failure that is a text stays that text.
func TestAsyncCallsToReferenceAgents(t *testing.T) {
	t.Parallel()
	for _, pinned := range []bool{true, false} {
		server := natstest.Run(t, "")
		r := newReferenceAgent(t, server.URL(), func(request map[string]any) any {
			if p, ok := request["payload"].(map[string]any); ok && p["n"] == 0.0 {
				return map[string]any{"ok": false, "error": "no such note"}
			}
			return map[string]any{"ok": true, "data": map[string]any{"echo": request["payload"]}}
		})
		caller := startAgent(t, load(t, foreignFiles(server.URL(), pinned)), "caller")
		api := control.NewClient(caller.Socket())
		defer api.Close()
		for payload, want := range map[string]string{`{"n":1}`: `{"echo":{"n":1}}`, `{"n":0}`: "no such note"} {
			request := rpc.Request{To: "agent://reference.elsewhere", Capability: "go", Payload: json.RawMessage(payload), Mode: rpc.ModeAsync}
			queued, err := api.RequestAgent(t.Context(), request)
			if err != nil || queued.Status != rpc.StatusOK || !queued.Queued || queued.Response != nil {
				t.Fatalf("pinned %v: %+v, %v", pinned, queued, err)
			}
			e := receive(t, r.requests)
			if e["kind"] != "request" || e["correlationId"] != queued.CorrelationID || e["replyTo"] == nil {
				t.Errorf("request %v", e)
			}
			result, err := api.Await(t.Context(), queued.CorrelationID, 20*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(result.Response); result.Error != nil {
				if got = result.Error.Message; result.Error.Code != rpc.CodeHandlerError || result.Error.DetectedBy != "agent://reference.elsewhere" || got != want {
					t.Errorf("%+v", result.Error)
				}
			} else if got != want {
				t.Errorf("response %s, want %s", got, want)
			}
		}
	}
}

// Requests of a reference agent: asynchronous ones, with a place for the answer that
// all its calls share or with none, and those of another version of the envelope.
func TestRequestsOfReferenceAgents(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "")
	r := newReferenceAgent(t, server.URL(), nil)
	cfg := load(t, foreignFiles(server.URL(), false))
	ran := make(chan rpc.Invocation, 10)
	cfg.Handlers = handle(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		ran <- *inv
		return inv.Payload, nil
	})
	callee := startAgent(t, cfg, "callee")
	request := r.envelope("request", "agent://callee", "go")
	request["payload"], request["replyTo"] = map[string]any{"n": 1}, "nats://agents.reference.elsewhere.responses"
	r.send(t, request)
	if e := receive(t, r.answers); fmt.Sprint(e["payload"]) != "map[data:map[n:1] ok:true]" || e["correlationId"] != "turn-1" || e["causedBy"] != request["messageId"] {
		t.Errorf("answer %v", e)
	}
	if inv := <-ran; inv.Event || inv.TraceID() == "" {
		t.Errorf("invocation %+v", inv)
	}
	delete(request, "replyTo")
	request["messageId"], request["correlationId"] = "m-2", "turn-2"
	r.send(t, request)
	select {
	case inv := <-ran:
		if !inv.Event || inv.MessageID != "m-2" {
			t.Errorf("invocation %+v", inv)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("a request without a place for its answer is not served")
	}
	// Version 2, with and without a place to say so.
	request["version"], request["messageId"], request["correlationId"] = 2, "m-3", "turn-3"
	r.send(t, request)
	request["replyTo"], request["messageId"], request["correlationId"] = "nats://agents.reference.elsewhere.responses", "m-4", "turn-4"
	r.send(t, request)
	e := receive(t, r.answers)
	failure, _ := e["payload"].(map[string]any)["error"].(map[string]any)
	if e["correlationId"] != "turn-4" || failure["code"] != "EAGENTRPC_INVALID_ENVELOPE" || !strings.Contains(fmt.Sprint(failure["message"]), "envelope version 2 is not supported") {
		t.Errorf("answer %v", e)
	}
	eventually.Holds(t, "four records", func() bool { return len(callRecords(t, cfg, "callee")) == 4 })
	got := map[string]string{}
	for _, body := range callRecords(t, cfg, "callee") {
		if body["traceId"] == nil || body["peerId"] != "agent://reference.elsewhere" {
			t.Errorf("record %v", body)
		}
		got[fmt.Sprint(body["correlationId"])] = fmt.Sprint(body["mode"], " ", body["status"], " ", body["code"])
	}
	for id, want := range map[string]string{
		"turn-1": "sync ok <nil>", "turn-2": "async ok <nil>",
		"turn-3": "async error EAGENTRPC_INVALID_ENVELOPE", "turn-4": "sync error EAGENTRPC_INVALID_ENVELOPE",
	} {
		if got[id] != want {
			t.Errorf("the record of %s: %s, want %s", id, got[id], want)
		}
	}
	if err := callee.Ready(); err != nil {
		t.Error(err)
	}
}

// callRecords are the bodies of the calls in a running agent's log.
func callRecords(t *testing.T, cfg daemon.Config, agent string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for _, e := range records(t, cfg, agent) {
		var body map[string]any
		if err := json.Unmarshal(e.Body, &body); err != nil {
			t.Fatal(err)
		}
		if e.Kind == auditchain.KindRPCCall {
			all = append(all, body)
		}
	}
	return all
}

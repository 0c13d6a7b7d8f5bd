package rpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/transport"
)

func publish(t *testing.T, w *world, on string, e *envelope.Envelope) {
	t.Helper()
	data, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.callerConn.Publish(t.Context(), transport.Message{Topic: on, Data: data}); err != nil {
		t.Fatal(err)
	}
}

// A foreignCaller speaks the wire format by hand, as an agent of another
// implementation does.
type foreignCaller struct {
	w       *world
	inbox   transport.Inbox
	replies chan *envelope.Envelope
}

func newForeignCaller(t *testing.T, w *world) *foreignCaller {
	f := &foreignCaller{w: w, replies: make(chan *envelope.Envelope, 10)}
	var err error
	f.inbox, err = w.callerConn.OpenInbox(func(m transport.Message) {
		e, err := envelope.Decode(m.Data)
		if err != nil {
			t.Errorf("the reply is no envelope: %v", err)
			return
		}
		f.replies <- e
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *foreignCaller) request() *envelope.Envelope {
	return &envelope.Envelope{
		Kind: envelope.Request, MessageID: "m-1", CorrelationID: "c-1", From: "agent://foreign", To: calleeAddr,
		Capability: "review-pr", ReplyTo: "memory://" + f.inbox.Topic("c-1"), Payload: json.RawMessage(goodRequest),
		Deadline: time.Now().Add(time.Minute).UnixMilli(),
	}
}

func TestForeignCallerIsServed(t *testing.T) {
	w := newWorld(t, answers(goodAnswer))
	f := newForeignCaller(t, w)
	e := f.request()
	e.TenantID = "acme"
	publish(t, w, topic, e)
	reply := wait(t, f.replies)
	if reply.Kind != envelope.Response || reply.CorrelationID != "c-1" || reply.CausedBy != "m-1" || reply.From != calleeAddr ||
		reply.To != "agent://foreign" || reply.TenantID != "acme" || reply.MessageID == "m-1" ||
		string(reply.Payload) != `{"ok":true,"data":`+goodAnswer+`}` {
		t.Errorf("reply %+v %s", reply, reply.Payload)
	}
}

func TestCalleeRefuses(t *testing.T) {
	ran := make(chan string, 10)
	handler := rpc.HandlerFunc(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		ran <- inv.MessageID
		return json.RawMessage(goodAnswer), nil
	})
	w := newWorld(t, handler, func(_ *caller.Config, ic *callee.Config) { ic.TenantID = "acme" })
	f := newForeignCaller(t, w)
	for _, test := range []struct {
		name   string
		change func(*envelope.Envelope)
		code   string
	}{
		{"another tenant", func(e *envelope.Envelope) { e.TenantID = "other" }, "EAGENTRPC_TENANT_MISMATCH"},
		{"a tenant that no record can name", func(e *envelope.Envelope) { e.TenantID = "acme\n" }, "EAGENTRPC_INVALID_REQUEST"},
		{"a tenant that is too long", func(e *envelope.Envelope) { e.TenantID = strings.Repeat("a", 1025) }, "EAGENTRPC_INVALID_REQUEST"},
		{"no tenant", func(e *envelope.Envelope) { e.TenantID = "" }, "EAGENTRPC_TENANT_MISMATCH"},
		{"another agent's request", func(e *envelope.Envelope) { e.To = "agent://other" }, "EAGENTRPC_MISADDRESSED"},
		{"too many hops", func(e *envelope.Envelope) {
			e.Headers = envelope.Headers{{Key: envelope.HeaderHops, Value: "17"}}
		}, "EAGENTRPC_HOP_LIMIT"},
		{"undeclared capability", func(e *envelope.Envelope) { e.Capability = "merge" }, "EAGENTRPC_NO_CAPABILITY"},
		{"late", func(e *envelope.Envelope) { e.Deadline = time.Now().Add(-time.Second).UnixMilli() }, "EAGENTRPC_DEADLINE_EXCEEDED"},
		{"invalid payload", func(e *envelope.Envelope) { e.Payload = json.RawMessage(`[]`) }, "EAGENTRPC_SCHEMA_VIOLATION"},
		{"no payload", func(e *envelope.Envelope) { e.Payload = nil }, "EAGENTRPC_SCHEMA_VIOLATION"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := f.request()
			e.TenantID = "acme"
			test.change(e)
			publish(t, w, topic, e)
			reply := wait(t, f.replies)
			var body struct {
				OK    bool
				Error struct {
					Code, Message string
					DetectedBy    string
				}
			}
			if err := json.Unmarshal(reply.Payload, &body); err != nil {
				t.Fatal(err)
			}
			if body.OK || body.Error.Code != test.code || body.Error.Message == "" || body.Error.DetectedBy != string(calleeAddr) {
				t.Errorf("reply %s, want code %s", reply.Payload, test.code)
			}
		})
	}
	select {
	case id := <-ran:
		t.Errorf("the skill ran for %s", id)
	default:
	}
}

// Messages that cannot be answered are dropped, and the inbox lives on.
func TestCalleeIgnores(t *testing.T) {
	w := newWorld(t, answers(goodAnswer))
	f := newForeignCaller(t, w)
	noReply := f.request()
	noReply.ReplyTo = ""
	elsewhere := f.request()
	elsewhere.ReplyTo = "kafka://replies"
	response := f.request()
	response.Kind = envelope.Response
	for _, e := range []*envelope.Envelope{noReply, elsewhere, response} {
		publish(t, w, topic, e)
		publish(t, w, topic+".control", e)
	}
	for _, on := range []string{topic, topic + ".control"} {
		if err := w.callerConn.Publish(t.Context(), transport.Message{Topic: on, Data: []byte(`{"version":1`)}); err != nil {
			t.Fatal(err)
		}
	}
	wantStatus(t, w.call(t, t.Context(), request()), rpc.StatusOK, 0)
	select {
	case e := <-f.replies:
		t.Errorf("answered %+v", e)
	default:
	}
}

// What a skill says about its failure stays at home, unless it is meant for
// the caller.
func TestSkillFailures(t *testing.T) {
	const secret = "postgres://root:hunter2@db/ at /srv/skill.go:12"
	for _, test := range []struct {
		name      string
		handler   rpc.Handler
		code      rpc.Code
		says      string
		retryable bool
	}{
		{"an error", fails(errors.New(secret)), rpc.CodeHandlerError, "incident", false},
		{"a panic", rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) { panic(secret) }), rpc.CodeHandlerError, "incident", false},
		{"a public error", fails(&rpc.SkillError{Message: "no such pull request", Err: errors.New(secret)}), rpc.CodeHandlerError, "no such pull request", false},
		{"a public error, retryable", fails(&rpc.SkillError{Message: "try later", Retryable: true}), rpc.CodeHandlerError, "try later", true},
		{"a code it may not use", fails(&rpc.SkillError{Code: rpc.CodeDenied, Message: "no"}), rpc.CodeHandlerError, "no", false},
		{"garbage", answers(`{"verdict": ` + secret), rpc.CodeBadSkillOutput, "not JSON", false},
		{"no answer", answers(``), rpc.CodeBadSkillOutput, "not JSON", false},
		{"a huge answer", answers(`"` + strings.Repeat("x", 2<<20) + `"`), rpc.CodePayloadTooLarge, "1048576 are allowed", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, test.handler)
			res := w.call(t, t.Context(), request())
			wantStatus(t, res, rpc.StatusError, test.code)
			if res.Error.DetectedBy != calleeAddr || res.Error.Retryable != test.retryable || !strings.Contains(res.Error.Message, test.says) {
				t.Errorf("%v by %s, retryable %v; want %q", res.Error, res.Error.DetectedBy, res.Error.Retryable, test.says)
			}
			all, err := json.Marshal(res)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(all), "hunter2") || strings.Contains(string(all), ".go:") {
				t.Errorf("internals reached the caller: %s", all)
			}
			if test.says == "incident" {
				id := strings.Fields(res.Error.Message[strings.Index(res.Error.Message, "incident "):])[1]
				if err := w.inbox.Shutdown(t.Context()); err != nil { // the log is complete
					t.Fatal(err)
				}
				if log := w.calleeLog.String(); !strings.Contains(log, id) || !strings.Contains(log, "hunter2") {
					t.Errorf("incident %s is not in the callee's log: %s", id, log)
				}
			}
		})
	}
}

// forger answers requests by hand.
func forger(t *testing.T, w *world, answer func(req, reply *envelope.Envelope)) {
	t.Helper()
	if err := w.inbox.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := w.calleeConn.Subscribe(topic, "", func(m transport.Message) {
		req, err := envelope.Decode(m.Data)
		if err != nil {
			t.Errorf("request: %v", err)
			return
		}
		send := func(change func(req, reply *envelope.Envelope)) {
			reply := &envelope.Envelope{
				Kind: envelope.Response, MessageID: "r", CorrelationID: req.CorrelationID, CausedBy: req.MessageID,
				From: calleeAddr, To: req.From, Capability: req.Capability, Payload: json.RawMessage(`{"ok":true,"data":{"verdict":"comment"}}`),
			}
			change(req, reply)
			data, err := reply.Encode()
			if err != nil {
				t.Errorf("reply: %v", err)
				return
			}
			err = w.calleeConn.Publish(context.Background(), transport.Message{Topic: m.Reply, Data: data})
			if err != nil && !errors.Is(err, transport.Closed) { // the test may be over before the second
				t.Errorf("publish: %v", err)
			}
		}
		send(answer)
		// The true answer comes second: it must be the one that counts.
		send(func(_, reply *envelope.Envelope) {
			reply.Payload = json.RawMessage(`{"ok":true,"data":` + goodAnswer + `}`)
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestForgedRepliesSettleNothing(t *testing.T) {
	for name, forge := range map[string]func(req, reply *envelope.Envelope){
		"another sender":      func(_, reply *envelope.Envelope) { reply.From = "agent://mallory" },
		"another addressee":   func(_, reply *envelope.Envelope) { reply.To = "agent://other" },
		"another correlation": func(_, reply *envelope.Envelope) { reply.CorrelationID = "guess" },
		"another cause":       func(_, reply *envelope.Envelope) { reply.CausedBy = "guess" },
		"a request":           func(_, reply *envelope.Envelope) { reply.Kind = envelope.Request },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, answers(goodAnswer))
			forger(t, w, forge)
			res := w.call(t, t.Context(), request())
			if string(res.Response) != goodAnswer {
				t.Errorf("the forged reply counted: %s %v", res.Response, res.Error)
			}
			if w.client.Stale() != 1 {
				t.Errorf("%d stale replies", w.client.Stale())
			}
		})
	}
}

func TestRepeatedRepliesAreStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(goodAnswer))
		forger(t, w, func(_, reply *envelope.Envelope) {})
		res := w.call(t, t.Context(), request())
		if string(res.Response) != `{"verdict":"comment"}` {
			t.Errorf("response %s, want the first reply's", res.Response)
		}
		synctest.Wait()
		if w.client.Stale() != 1 {
			t.Errorf("%d stale replies, want the second one", w.client.Stale())
		}
	})
}

func TestForeignReplies(t *testing.T) {
	for _, test := range []struct {
		name, payload string
		status        rpc.Status
		code          rpc.Code
		says          string
	}{
		{"a known code", `{"ok":false,"error":{"code":"HANDLER_ERROR","message":"boom"}}`, rpc.StatusError, rpc.CodeHandlerError, "boom"},
		{"an unknown code", `{"ok":false,"error":{"code":"AGENT_ERROR","message":"boom","retryable":true}}`, rpc.StatusError, rpc.CodeRemote, "boom"},
		{"members in another order", ` { "data" : {"verdict":"approve"}, "trace":[1], "\u006fk" : true } `, rpc.StatusOK, 0, ""},
		{"busy", `{"ok":false,"error":{"code":"EAGENTRPC_BUSY","message":"later"}}`, rpc.StatusBusy, rpc.CodeBusy, "later"},
		{"no shape", `7`, rpc.StatusError, rpc.CodeInvalidEnvelope, "not an object"},
		{"no ok", `{"data":1}`, rpc.StatusError, rpc.CodeInvalidEnvelope, "`ok` is missing"},
		{"no error", `{"ok":false}`, rpc.StatusError, rpc.CodeInvalidEnvelope, "without a code"},
		{"ok without data", `{"ok":true}`, rpc.StatusSchemaViolation, rpc.CodeSchemaViolation, "expected type"},
		{"ok as text", `{"ok":"true","data":1}`, rpc.StatusError, rpc.CodeInvalidEnvelope, "without a code"},
		{"endless text", `{"ok":false,"error":{"code":"X","message":"` + strings.Repeat("x", 1<<16) + `"}}`, rpc.StatusError, rpc.CodeRemote, "…"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, answers(goodAnswer))
			forger(t, w, func(_, reply *envelope.Envelope) { reply.Payload = json.RawMessage(test.payload) })
			res := w.call(t, t.Context(), request())
			wantStatus(t, res, test.status, test.code)
			if res.Error != nil && (!strings.Contains(res.Error.Error(), test.says) || len(res.Error.Message) > 4096) {
				t.Errorf("error %.200v, want %q", res.Error, test.says)
			}
			if test.code == rpc.CodeRemote && strings.Contains(test.payload, "AGENT_ERROR") && (res.Error.RemoteCode != "AGENT_ERROR" || !res.Error.Retryable) {
				t.Errorf("remote code %q, retryable %v", res.Error.RemoteCode, res.Error.Retryable)
			}
		})
	}
}

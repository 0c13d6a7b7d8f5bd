package callee_test

import (
	"context"
	"encoding/json"
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

func TestForeignCallerIsServed(t *testing.T) {
	w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer))
	f := rpctest.NewForeignCaller(t, w)
	e := f.Request()
	e.TenantID = "acme"
	w.Publish(t, rpctest.Topic, e)
	reply := rpctest.Wait(t, f.Replies)
	if reply.Kind != envelope.Response || reply.CorrelationID != "c-1" || reply.CausedBy != "m-1" || reply.From != rpctest.Reviewer ||
		reply.To != "agent://foreign" || reply.TenantID != "acme" || reply.MessageID == "m-1" ||
		string(reply.Payload) != `{"ok":true,"data":`+rpctest.ValidAnswer+`}` {
		t.Errorf("reply %+v %s", reply, reply.Payload)
	}
}

func TestCalleeRefuses(t *testing.T) {
	ran := make(chan string, 10)
	handler := rpc.HandlerFunc(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		ran <- inv.MessageID
		return json.RawMessage(rpctest.ValidAnswer), nil
	})
	w := rpctest.NewWorld(t, handler, func(_ *caller.Config, ic *callee.Config) { ic.Checks.Tenants = rpctest.Tenant("acme") })
	f := rpctest.NewForeignCaller(t, w)
	for _, test := range []struct {
		name   string
		change func(*envelope.Envelope)
		code   string
	}{
		{"another tenant", func(e *envelope.Envelope) { e.TenantID = "other" }, "EAGENTRPC_TENANT_MISMATCH"},
		{"a tenant that no record can name", func(e *envelope.Envelope) { e.TenantID = "acme\n" }, "EAGENTRPC_INVALID_REQUEST"},
		{"a tenant that is a path", func(e *envelope.Envelope) { e.TenantID = "evil/../../x" }, "EAGENTRPC_INVALID_REQUEST"},
		{"a tenant that stands for none", func(e *envelope.Envelope) { e.TenantID = "default" }, "EAGENTRPC_INVALID_REQUEST"},
		{"a tenant that is too long", func(e *envelope.Envelope) { e.TenantID = strings.Repeat("a", 65) }, "EAGENTRPC_INVALID_REQUEST"},
		{"a session that no record can name", func(e *envelope.Envelope) {
			e.Headers = append(e.Headers, envelope.Header{Key: envelope.HeaderSession, Value: "s\x7f"})
		}, "EAGENTRPC_INVALID_REQUEST"},
		{"a session that is too long", func(e *envelope.Envelope) {
			e.Headers = append(e.Headers, envelope.Header{Key: envelope.HeaderSession, Value: strings.Repeat("s", 1025)})
		}, "EAGENTRPC_INVALID_REQUEST"},
		{"an id that no record can name", func(e *envelope.Envelope) { e.CorrelationID = "c\n" }, "EAGENTRPC_INVALID_REQUEST"},
		{"an id that is too long", func(e *envelope.Envelope) { e.CorrelationID = strings.Repeat("c", 1025) }, "EAGENTRPC_INVALID_REQUEST"},
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
			e := f.Request()
			e.TenantID = "acme"
			test.change(e)
			w.Publish(t, rpctest.Topic, e)
			reply := rpctest.Wait(t, f.Replies)
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
			if body.OK || body.Error.Code != test.code || body.Error.Message == "" || body.Error.DetectedBy != string(rpctest.Reviewer) {
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

// Messages that cannot be answered, and those that are no requests, run nothing, get
// no answer and do not stop the inbox.
func TestCalleeIgnores(t *testing.T) {
	for name, change := range map[string]func(*envelope.Envelope){
		"a reply topic on another transport": func(e *envelope.Envelope) { e.ReplyTo = "kafka://replies" },
		"a response":                         func(e *envelope.Envelope) { e.Kind = envelope.Response },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				counted := &runs{skill: rpctest.Answers(rpctest.ValidAnswer)}
				w := rpctest.NewWorld(t, counted)
				f := rpctest.NewForeignCaller(t, w)
				e := f.Request()
				change(e)
				for _, on := range []string{rpctest.Topic, rpctest.Topic + ".control", rpctest.Topic + ".capabilities"} {
					w.Publish(t, on, e)
					if err := w.CallerConn.Publish(t.Context(), transport.Message{Topic: on, Data: []byte(`{"version":1`)}); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
				if counted.Load() != 0 || len(f.Replies) != 0 {
					t.Errorf("the skill ran %d times, %d replies", counted.Load(), len(f.Replies))
				}
				rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusOK, 0)
			})
		})
	}
}

// A caller that checks nothing is stopped by the callee.
func TestRequestViolationFoundByCallee(t *testing.T) {
	ran := false
	w := rpctest.NewWorld(t, rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
		ran = true
		return json.RawMessage(rpctest.ValidAnswer), nil
	}), func(cc *caller.Config, _ *callee.Config) {
		cc.Peers = rpc.Peers{rpctest.Reviewer: {Address: rpctest.Reviewer, Transport: "memory", Topic: rpctest.Topic}}
	})
	r := rpctest.Request()
	r.Payload = json.RawMessage(`{"prUrl":7,"severity":"med"}`)
	res := w.Call(t, r)
	rpctest.WantStatus(t, res, rpc.StatusSchemaViolation, rpc.CodeSchemaViolation)
	if res.SchemaSide != rpc.SideRequest || res.Error.DetectedBy != rpctest.Reviewer || ran {
		t.Errorf("side %s, by %s, ran %v", res.SchemaSide, res.Error.DetectedBy, ran)
	}
	if recs := w.CalleeViolations.All(); len(recs) != 1 || recs[0].Peer != rpctest.Concierge {
		t.Errorf("callee's records %v", recs)
	}
}

func TestResponseViolationFoundByCallee(t *testing.T) {
	w := rpctest.NewWorld(t, rpctest.Answers(`{"verdict":"maybe"}`))
	res := w.Call(t, rpctest.Request())
	rpctest.WantStatus(t, res, rpc.StatusSchemaViolation, rpc.CodeSchemaViolation)
	if res.SchemaSide != rpc.SideResponse || res.Error.DetectedBy != rpctest.Reviewer || res.Response != nil {
		t.Errorf("side %s, by %s, response %s", res.SchemaSide, res.Error.DetectedBy, res.Response)
	}
	if len(res.Violations) != 1 || res.Violations[0].Path != "/verdict" {
		t.Errorf("violations %v", res.Violations)
	}
	if len(w.CalleeViolations.All()) != 1 || len(w.CallerViolations.All()) != 0 {
		t.Errorf("records: callee %v, caller %v", w.CalleeViolations.All(), w.CallerViolations.All())
	}
}

// Whoever has an answer may call again: the slot is free by then.
func TestAnswerFreesTheSlot(t *testing.T) {
	w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), func(_ *caller.Config, ic *callee.Config) { ic.Limits.MaxInFlight = 1 })
	for i := range 500 {
		if res := w.Call(t, rpctest.Request()); res.Status != rpc.StatusOK {
			t.Fatalf("call %d: %v", i, res.Error)
		}
	}
}

// Without a queue, what finds no slot is refused at once, and told when to come again.
func TestBusyCallee(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	w := rpctest.NewWorld(t, rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
		close(started)
		<-release
		return json.RawMessage(rpctest.ValidAnswer), nil
	}), func(_ *caller.Config, ic *callee.Config) { ic.Limits.MaxInFlight, ic.Limits.MaxQueued = 1, -1 })
	first := make(chan *rpc.Result)
	go func() { res, _ := w.Client.RequestAgent(context.Background(), rpctest.Request()); first <- res }()
	rpctest.Wait(t, started)
	res := w.Call(t, rpctest.Request())
	rpctest.WantStatus(t, res, rpc.StatusBusy, rpc.CodeBusy)
	if res.Error.DetectedBy != rpctest.Reviewer || res.Error.RetryAfter() != time.Second || !res.Error.Retryable {
		t.Errorf("refused by %s, retry after %s", res.Error.DetectedBy, res.Error.RetryAfter())
	}
	close(release)
	rpctest.Wait(t, first)
}

package caller_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
	"github.com/agentd/agentd/transport"
)

// forger answers requests by hand.
func forger(t *testing.T, w *rpctest.World, answer func(req, reply *envelope.Envelope)) {
	t.Helper()
	w.StopInbox(t)
	_, err := w.CalleeConn.Subscribe(rpctest.Topic, "", func(m transport.Message) {
		req, err := envelope.Decode(m.Data)
		if err != nil {
			t.Errorf("request: %v", err)
			return
		}
		send := func(change func(req, reply *envelope.Envelope)) {
			reply := &envelope.Envelope{
				Kind: envelope.Response, MessageID: "r", CorrelationID: req.CorrelationID, CausedBy: req.MessageID,
				From: rpctest.Reviewer, To: req.From, Capability: req.Capability, Payload: json.RawMessage(`{"ok":true,"data":{"verdict":"comment"}}`),
			}
			change(req, reply)
			data, err := reply.Encode()
			if err != nil {
				t.Errorf("reply: %v", err)
				return
			}
			err = w.CalleeConn.Publish(context.Background(), transport.Message{Topic: m.Reply, Data: data})
			if err != nil && !errors.Is(err, transport.Closed) { // the test may be over before the second
				t.Errorf("publish: %v", err)
			}
		}
		send(answer)
		// The true answer comes second: it must be the one that counts.
		send(func(_, reply *envelope.Envelope) {
			reply.Payload = json.RawMessage(`{"ok":true,"data":` + rpctest.ValidAnswer + `}`)
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
			w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer))
			forger(t, w, forge)
			res := w.Call(t, rpctest.Request())
			if string(res.Response) != rpctest.ValidAnswer {
				t.Errorf("the forged reply counted: %s %v", res.Response, res.Error)
			}
			if w.Client.Stale() != 1 {
				t.Errorf("%d stale replies", w.Client.Stale())
			}
		})
	}
}

func TestRepeatedRepliesAreStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer))
		forger(t, w, func(_, reply *envelope.Envelope) {})
		res := w.Call(t, rpctest.Request())
		if string(res.Response) != `{"verdict":"comment"}` {
			t.Errorf("response %s, want the first reply's", res.Response)
		}
		synctest.Wait()
		if w.Client.Stale() != 1 {
			t.Errorf("%d stale replies, want the second one", w.Client.Stale())
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
			w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer))
			forger(t, w, func(_, reply *envelope.Envelope) { reply.Payload = json.RawMessage(test.payload) })
			res := w.Call(t, rpctest.Request())
			rpctest.WantStatus(t, res, test.status, test.code)
			if res.Error != nil && (!strings.Contains(res.Error.Error(), test.says) || len(res.Error.Message) > 4096) {
				t.Errorf("error %.200v, want %q", res.Error, test.says)
			}
			if test.code == rpc.CodeRemote && strings.Contains(test.payload, "AGENT_ERROR") && (res.Error.RemoteCode != "AGENT_ERROR" || !res.Error.Retryable) {
				t.Errorf("remote code %q, retryable %v", res.Error.RemoteCode, res.Error.Retryable)
			}
		})
	}
}

// forgeReplies answers every request before the callee does, with what forge makes.
func forgeReplies(t *testing.T, w *rpctest.World, forge func(request, reply *envelope.Envelope) *identity.Keyring) {
	t.Helper()
	_, err := w.CalleeConn.Subscribe(rpctest.Topic, "", func(m transport.Message) {
		e, err := envelope.Decode(m.Data)
		if err != nil {
			t.Error(err)
			return
		}
		_, on, _ := strings.Cut(e.ReplyTo, "://")
		reply := &envelope.Envelope{
			Kind: envelope.Response, MessageID: "forged", CorrelationID: e.CorrelationID, CausedBy: e.MessageID, From: rpctest.Reviewer, To: rpctest.Concierge,
			Capability: e.Capability, TenantID: e.TenantID, Payload: json.RawMessage(`{"ok":true,"data":{"verdict":"comment"}}`),
			Auth: envelope.Auth{Kind: envelope.AuthInternal},
		}
		w.PublishSigned(t, on, reply, forge(e, reply))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Whoever learns a reply topic can publish on it, and neither answer the call
// nor end it.
func TestForgedReplyIsPassedOver(t *testing.T) {
	for name, forge := range map[string]func(request, reply *envelope.Envelope) *identity.Keyring{
		"without proof": func(_, _ *envelope.Envelope) *identity.Keyring { return nil },
		"made up": func(_, reply *envelope.Envelope) *identity.Keyring {
			reply.Auth = envelope.Auth{Kind: envelope.AuthHMAC, KeyID: "k", Signature: strings.Repeat("0", 64)}
			return nil
		},
		"the request sent back": func(request, reply *envelope.Envelope) *identity.Keyring {
			reply.Auth = request.Auth
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				both, kept := rpctest.Proven(t)
				slow := rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
					time.Sleep(time.Second) // the forger is first
					return json.RawMessage(rpctest.ValidAnswer), nil
				})
				w := rpctest.NewWorld(t, slow, both)
				forgeReplies(t, w, forge)
				res := w.Call(t, rpctest.Request())
				rpctest.WantStatus(t, res, rpc.StatusOK, 0)
				if string(res.Response) != rpctest.ValidAnswer {
					t.Errorf("the forger's answer was taken: %s", res.Response)
				}
				if !strings.HasPrefix(kept.Proofs(), "caller ") {
					t.Errorf("recorded %q", kept.Proofs())
				}
			})
		})
	}
}

// When the real reply never comes, the caller learns that somebody answered.
func TestOnlyForgedReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both, _ := rpctest.Proven(t)
		w := rpctest.NewWorld(t, rpctest.Silent(), both)
		forgeReplies(t, w, func(_, _ *envelope.Envelope) *identity.Keyring { return nil })
		rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusError, rpc.CodeAuthFailed)
	})
}

func TestReplyOfAnotherTenantIsPassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := rpctest.NewWorld(t, rpctest.Silent(), func(cc *caller.Config, _ *callee.Config) { cc.TenantID = "acme" })
		for _, tenant := range []string{"", "other"} {
			forgeReplies(t, w, func(_, reply *envelope.Envelope) *identity.Keyring { reply.TenantID = tenant; return nil })
		}
		rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusTimeout, rpc.CodeTimeout)
		if w.Client.Stale() < 2 {
			t.Errorf("%d replies were passed over", w.Client.Stale())
		}
	})
}

// What a reply reports of the skill's run is the peer's word: nonsense is ignored.
func TestExecutionReported(t *testing.T) {
	for text, want := range map[string]time.Duration{"1500": 1500 * time.Microsecond, "-1": 0, "x": 0, "": 0, "600000000": rpc.MaxTimeout, "600000001": 0} {
		w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer))
		w.TakeOver(t, func(request *envelope.Envelope, send func(*envelope.Envelope)) {
			reply := rpctest.Reply(request)
			reply.Headers = envelope.Headers{{Key: envelope.HeaderExecution, Value: text}, {Key: envelope.HeaderReplayed, Value: "true"}}
			send(reply)
		})
		if res := w.Call(t, rpctest.Request()); res.ExecutionTime != want || !res.Replayed {
			t.Errorf("%q is %s, replayed %v", text, res.ExecutionTime, res.Replayed)
		}
	}
}

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
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/rpctest"
	"github.com/agentd/agentd/transport"
)

// denyPresence answers everything that is sent to the callee, calls and questions, with
// "no responders", as anybody can who may publish to the caller's inbox.
func denyPresence(t *testing.T, w *rpctest.World) {
	t.Helper()
	for _, on := range []string{rpctest.Topic, rpctest.Topic + ".capabilities"} {
		_, err := w.CallerConn.Subscribe(on, "", func(m transport.Message) {
			e, err := envelope.Decode(m.Data)
			if err != nil {
				t.Error(err)
				return
			}
			_, topic, _ := strings.Cut(e.ReplyTo, "://")
			for range 3 {
				err := w.CallerConn.Publish(context.Background(), transport.Message{Topic: topic, Err: transport.NoResponders})
				if err != nil && !errors.Is(err, transport.Closed) { // the test may have ended
					t.Error(err)
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Nobody can end a call by saying that the peer is not there, if the peer can prove
// that it is.
func TestForgedAbsence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both, _ := rpctest.Proven(t)
		w := rpctest.NewWorld(t, rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
			time.Sleep(4 * time.Second)
			return json.RawMessage(rpctest.ValidAnswer), nil
		}), both)
		denyPresence(t, w)
		start := time.Now()
		rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusOK, 0)
		if took := time.Since(start); took != 4*time.Second {
			t.Errorf("it took %v", took)
		}
		if _, err := w.Client.Published(t.Context(), rpctest.Reviewer); err != nil {
			t.Errorf("what the peer publishes: %v", err)
		}
	})
}

// A peer that is not there, or cannot prove that it is, is given up soon; one without
// an identity at once.
func TestAbsence(t *testing.T) {
	both, _ := rpctest.Proven(t)
	for name, test := range map[string]struct {
		options []rpctest.Option
		after   time.Duration
	}{
		"with an identity":    {[]rpctest.Option{both}, 2 * time.Second},
		"without an identity": {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := rpctest.NewWorld(t, rpctest.Silent(), test.options...)
				w.StopInbox(t)
				start := time.Now()
				rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusError, rpc.CodeNoResponders)
				if took := time.Since(start); took != test.after {
					t.Errorf("given up after %v, want %v", took, test.after)
				}
				_, err := w.Client.Published(t.Context(), rpctest.Reviewer)
				if took := time.Since(start); rpc.CodeOf(err) != rpc.CodeNoResponders || took != 2*test.after {
					t.Errorf("the question: %v after %v", err, took)
				}
				// The slot of the call has no doubt left over for the next one.
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				denyPresence(t, w)
				if res := w.CallWith(ctx, t, rpctest.Request()); test.after > 0 && res.Error.Code != rpc.CodeTimeout {
					t.Errorf("a shorter call: %v", res.Error)
				}
			})
		})
	}
}

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
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
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
				ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
				defer cancel()
				denyPresence(t, w)
				if res := w.CallWith(ctx, t, rpctest.Request()); test.after > 0 && res.Error.Code != rpc.CodeTimeout {
					t.Errorf("a shorter call: %v", res.Error)
				}
			})
		})
	}
}

// A peer whose silence is fresh is given up sooner: a call does not wait in full for what
// the gate's question has just waited for. Whatever the peer proves ends that, and so
// does time.
func TestAbsenceThatIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both, _ := rpctest.Proven(t)
		g := &gatekeeper{check: func(ctx context.Context, p caller.Probe) (string, error) {
			ctx, cancel := context.WithTimeout(ctx, 2*time.Second) // as the drift gate does
			defer cancel()
			_, err := p.Published(ctx)
			if code := rpc.CodeOf(err); code != rpc.CodeNoResponders && code != rpc.CodeTimeout {
				t.Errorf("the question: %v", err)
			}
			return "", nil
		}}
		slow := rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
			time.Sleep(4 * time.Second)
			return json.RawMessage(rpctest.ValidAnswer), nil
		})
		var config callee.Config
		w := rpctest.NewWorld(t, slow, both, gated(g), func(_ *caller.Config, ic *callee.Config) { config = *ic })
		w.StopInbox(t)
		absent := func(what string, want time.Duration) {
			t.Helper()
			start := time.Now()
			rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusError, rpc.CodeNoResponders)
			if took := time.Since(start); took != want {
				t.Errorf("%s: given up after %v, want %v", what, took, want)
			}
		}
		absent("the first call, with the gate's question", 2500*time.Millisecond)
		g.check = func(context.Context, caller.Probe) (string, error) { return "", nil }
		absent("the next", 500*time.Millisecond)
		time.Sleep(15 * time.Second)
		absent("later", 2*time.Second)
		absent("after that", 500*time.Millisecond)

		// Back, it proves that it is there, and nobody's word ends a call.
		back, err := callee.New(config)
		if err == nil {
			err = back.Listen(w.CalleeConn, rpctest.Topic)
		}
		if err != nil {
			t.Fatal(err)
		}
		denyPresence(t, w)
		rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusOK, 0)
		if err := back.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		absent("after it was there", 2*time.Second)
	})
}

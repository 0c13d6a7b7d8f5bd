package callee_test

import (
	"testing"
	"testing/synctest"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc/internal/rpctest"
)

// Only an event with the cancel header, from the call's own caller and with its
// correlation id, cancels a call. Whatever else arrives on the control topic leaves
// the call alone.
func TestOnlyItsCallerCancelsACall(t *testing.T) {
	for name, change := range map[string]func(*envelope.Envelope){
		"no control header":      func(e *envelope.Envelope) { e.Headers = nil },
		"another control header": func(e *envelope.Envelope) { e.Headers[0].Value = "pause" },
		"a request":              func(e *envelope.Envelope) { e.Kind = envelope.Request },
		"a response":             func(e *envelope.Envelope) { e.Kind = envelope.Response },
		"another agent":          func(e *envelope.Envelope) { e.From = "agent://mallory" },
		"another correlation id": func(e *envelope.Envelope) { e.CorrelationID = "guessed" },
		"another request":        func(e *envelope.Envelope) { e.CausedBy = "m-9" },
		"no request":             func(e *envelope.Envelope) { e.CausedBy = "" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gate := rpctest.NewGate()
				w := rpctest.NewWorld(t, gate)
				f := rpctest.NewForeignCaller(t, w)
				w.Publish(t, rpctest.Topic, f.Request())
				synctest.Wait()
				e := rpctest.Cancel(f.Request())
				change(e)
				w.Publish(t, rpctest.Topic+".control", e)
				synctest.Wait()
				if n := w.Inbox.InFlight(); n != 1 {
					t.Fatal("the call was cancelled")
				}
				close(gate.Finish)
				if code := rpctest.ReplyCode(t, rpctest.Wait(t, f.Replies)); code != "" {
					t.Errorf("the call ended with %s", code)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		w := rpctest.NewWorld(t, rpctest.NewGate())
		f := rpctest.NewForeignCaller(t, w)
		w.Publish(t, rpctest.Topic, f.Request())
		synctest.Wait()
		w.Publish(t, rpctest.Topic+".control", rpctest.Cancel(f.Request()))
		synctest.Wait()
		if n := w.Inbox.InFlight(); n != 0 || len(f.Replies) != 0 {
			t.Errorf("%d calls run after their cancellation, %d replies: its caller waits for none", n, len(f.Replies))
		}
	})
}

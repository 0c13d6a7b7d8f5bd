package callee_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
	"github.com/agentd/agentd/transport"
)

// A watching transport reports callers as gone when it is told to.
type watching struct {
	transport.Transport
	gone  atomic.Bool
	asked atomic.Int32
	topic atomic.Value
}

func (w *watching) Listening(_ context.Context, topic string) bool {
	w.asked.Add(1)
	w.topic.Store(topic)
	return !w.gone.Load()
}

// A request whose caller two checks in a row do not find is cancelled. A caller that
// is away for one check, and one that cannot be watched, keep theirs.
func TestRequestsOfGoneCallersEnd(t *testing.T) {
	for _, test := range []struct {
		name   string
		header bool // the caller is an agentd
		away   func(*watching)
		ends   bool
		asked  int32
	}{
		{"there", true, func(*watching) { time.Sleep(20 * time.Second) }, false, 4},
		{"gone", true, func(w *watching) { w.gone.Store(true); time.Sleep(12 * time.Second) }, true, 2},
		{"away for a moment", true, func(w *watching) {
			w.gone.Store(true)
			time.Sleep(6 * time.Second)
			w.gone.Store(false)
			time.Sleep(5 * time.Second)
			w.gone.Store(true)
			time.Sleep(5 * time.Second)
		}, false, 3},
		{"not watched", false, func(w *watching) { w.gone.Store(true); time.Sleep(20 * time.Second) }, false, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ended := make(chan error, 1)
				w := rpctest.NewWorld(t, rpctest.Hangs(ended), rpctest.Both(rpctest.ContractWith(t, "    timeoutMs: 600000\n"), &rpctest.Refusals{}))
				watch := &watching{Transport: w.CalleeConn}
				if err := w.Inbox.Listen(watch, "watched"); err != nil {
					t.Fatal(err)
				}
				f := rpctest.NewForeignCaller(t, w)
				e := f.Request()
				if test.header {
					e.Headers = envelope.Headers{{Key: envelope.HeaderHops, Value: "1"}}
				}
				w.Publish(t, "watched", e)
				synctest.Wait()
				test.away(watch)
				synctest.Wait()
				if got := len(ended) == 1; got != test.ends {
					t.Fatalf("ended: %v", got)
				}
				if test.ends {
					if cause := <-ended; !errors.Is(cause, callee.ErrCallerGone) {
						t.Errorf("it ended because of %v", cause)
					}
					if len(f.Replies) != 0 {
						t.Error("it was answered")
					}
				}
				if got := watch.asked.Load(); got != test.asked {
					t.Errorf("asked %d times, want %d", got, test.asked)
				}
				if topic, _ := watch.topic.Load().(string); test.asked > 0 && f.Inbox.Topic("") != topic && !strings.HasPrefix(f.Inbox.Topic("c-1"), topic) {
					t.Errorf("asked for %s", topic)
				}
			})
		})
	}
}

// How often callers are checked can be set.
func TestCallerCheckInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		w := rpctest.NewWorld(t, rpctest.Hangs(ended), func(_ *caller.Config, ic *callee.Config) { ic.Limits.CallerCheck = 100 * time.Millisecond })
		watch := &watching{Transport: w.CalleeConn}
		watch.gone.Store(true)
		if err := w.Inbox.Listen(watch, "watched"); err != nil {
			t.Fatal(err)
		}
		e := rpctest.NewForeignCaller(t, w).Request()
		e.Headers = envelope.Headers{{Key: envelope.HeaderHops, Value: "1"}}
		w.Publish(t, "watched", e)
		start := time.Now()
		<-ended
		if took := time.Since(start); took < 200*time.Millisecond || took > 300*time.Millisecond {
			t.Errorf("it took %s, want two checks", took)
		}
	})
}

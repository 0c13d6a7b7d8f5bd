package callee_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
)

// goroutine is the number of the goroutine that asks.
func goroutine() string {
	b := make([]byte, 64)
	fields := bytes.Fields(b[:runtime.Stack(b, false)])
	return string(fields[1])
}

// inlineWorld is a world whose skill has promised to be quick. It returns what tells the
// goroutines of its runs.
func inlineWorld(t *testing.T, h rpc.HandlerFunc, options ...rpctest.Option) (*rpctest.World, <-chan string) {
	on := make(chan string, 100)
	return rpctest.NewWorld(t, rpc.Inline(rpc.HandlerFunc(func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		on <- goroutine()
		return h(ctx, inv)
	})), options...), on
}

func quick(context.Context, *rpc.Invocation) (json.RawMessage, error) {
	return json.RawMessage(rpctest.ValidAnswer), nil
}

// A quick skill runs where requests arrive: always on the same goroutine.
func TestInlineSkillsRunWhereRequestsArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // time stands still: no run is slow
		w, on := inlineWorld(t, quick)
		var first string
		for i := range 20 {
			rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusOK, 0)
			if at := <-on; i == 0 {
				first = at
			} else if at != first {
				t.Fatalf("run %d is on goroutine %s, the first was on %s", i, at, first)
			}
		}
	})
}

// One that is slow holds up the requests behind it once. The log names it.
func TestSlowInlineSkill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sleep atomic.Int64
		sleep.Store(int64(time.Second))
		w, on := inlineWorld(t, func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
			time.Sleep(time.Duration(sleep.Load()))
			return quick(ctx, inv)
		})
		both := func() time.Duration {
			start := time.Now()
			first, second := w.Start(t.Context(), rpctest.Request()), w.Start(t.Context(), rpctest.Request())
			<-first
			<-second
			return time.Since(start)
		}
		if took := both(); took != 2*time.Second {
			t.Errorf("the second request waited for the first: both took %v", took)
		}
		inline := <-on
		if took := both(); took != time.Second {
			t.Errorf("after that, two took %v", took)
		}
		if log := w.CalleeLog.String(); strings.Count(log, "an inline skill was slow") != 1 || !strings.Contains(log, "capability=review-pr") {
			t.Errorf("log:\n%s", log)
		}
		for len(on) > 0 {
			<-on
		}
		sleep.Store(0)
		time.Sleep(11 * time.Second)
		both()
		if again := <-on; again != inline {
			t.Errorf("once it may be quick again it runs on goroutine %s, not %s", again, inline)
		}
	})
}

// What an inline skill does to its goroutine ends its own call alone.
func TestInlineSkillsThatFail(t *testing.T) {
	for name, fail := range map[string]func(){"panic": func() { panic("no") }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			var runs atomic.Int32
			w, _ := inlineWorld(t, func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
				if runs.Add(1) == 1 {
					fail()
				}
				return quick(ctx, inv)
			})
			rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusError, rpc.CodeHandlerError)
			rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusOK, 0)
			w.StopInbox(t)
		})
	}
}

// An inline skill makes no calls: its own agent could not serve them.
func TestInlineSkillsMakeNoCalls(t *testing.T) {
	var w *rpctest.World
	w, _ = inlineWorld(t, func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		if !inv.Inline {
			t.Error("the skill is not told that it is inline")
		}
		_, err := w.Client.RequestAgent(ctx, rpctest.Request())
		var refused *rpc.Error
		if !errors.As(err, &refused) || refused.Code != rpc.CodeInvalidRequest || !strings.Contains(refused.Message, "inline") {
			t.Errorf("a nested call ends with %v", err)
		}
		return quick(ctx, inv)
	})
	rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusOK, 0)
}

// A request that is refused with a record, or that has to wait, leaves the goroutine where
// requests arrive to others.
func TestInlineRequestsThatWaitRunElsewhere(t *testing.T) {
	store := &heldStore{begun: make(chan struct{}), release: make(chan struct{})}
	w, _ := inlineWorld(t, quick, func(_ *caller.Config, ic *callee.Config) { ic.Idempotency = store })
	keyed := rpctest.Request()
	keyed.IdempotencyKey = "k"
	waiting := w.Start(t.Context(), keyed)
	<-store.begun // the store hangs
	rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusOK, 0)
	close(store.release)
	rpctest.WantStatus(t, <-waiting, rpc.StatusOK, 0)
}

// A heldStore remembers nothing, and begins nothing before it is released.
type heldStore struct {
	callee.IdempotencyStore
	begun, release chan struct{}
}

func (s *heldStore) Begin(context.Context, callee.KeyedRequest, [32]byte, bool) (callee.Prior, error) {
	close(s.begun)
	<-s.release
	return callee.Prior{}, nil
}

func (s *heldStore) Finish(context.Context, callee.KeyedRequest, json.RawMessage) error { return nil }

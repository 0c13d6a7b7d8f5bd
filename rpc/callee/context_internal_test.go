package callee

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/internal/alloctest"
	"github.com/agentd/agentd/rpc"
)

var errWhy = errors.New("why")

func newCallContext(t *testing.T, d time.Duration) (*callContext, context.CancelCauseFunc) {
	t.Helper()
	root, stop := context.WithCancelCause(t.Context())
	c := &callContext{root: root, deadline: time.Now().Add(d)}
	t.Cleanup(func() { c.end(nil); stop(nil) })
	return c, stop
}

// What ends a callContext shows in the same way, whether somebody has asked to
// be woken before or only looks afterwards.
func TestCallContextEnds(t *testing.T) {
	for _, c := range []struct {
		name  string
		end   func(*callContext, context.CancelCauseFunc)
		err   error
		cause error
	}{
		{"cancelled", func(c *callContext, _ context.CancelCauseFunc) { c.end(errWhy) }, context.Canceled, errWhy},
		{"cancelled twice", func(c *callContext, _ context.CancelCauseFunc) { c.end(errWhy); c.end(ErrShutdown) }, context.Canceled, errWhy},
		{"cancelled without a cause", func(c *callContext, _ context.CancelCauseFunc) { c.end(nil) }, context.Canceled, context.Canceled},
		{"inbox stopped", func(_ *callContext, stop context.CancelCauseFunc) { stop(ErrShutdown) }, context.Canceled, ErrShutdown},
		{"deadline", func(*callContext, context.CancelCauseFunc) { time.Sleep(2 * time.Second) }, context.DeadlineExceeded, context.DeadlineExceeded},
		{"deadline, then cancelled", func(c *callContext, _ context.CancelCauseFunc) {
			time.Sleep(2 * time.Second)
			_ = c.Err()
			c.end(errWhy)
		}, context.DeadlineExceeded, context.DeadlineExceeded},
	} {
		for _, watched := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := newCallContext(t, time.Second)
				if watched {
					select {
					case <-ctx.Done():
						t.Errorf("%s: done from the start", c.name)
					default:
					}
				}
				if err := ctx.Err(); err != nil {
					t.Errorf("%s: Err is %v from the start", c.name, err)
				}
				c.end(ctx, stop)
				synctest.Wait()
				<-ctx.Done()
				if err := ctx.Err(); err != c.err { // the very one, says context.Context
					t.Errorf("%s, watched %t: Err = %v, want %v", c.name, watched, err, c.err)
				}
				if cause := context.Cause(ctx); !errors.Is(cause, c.cause) {
					t.Errorf("%s, watched %t: Cause = %v, want %v", c.name, watched, cause, c.cause)
				}
			})
		}
	}
}

// Children, timers and callbacks see the end, and its reason.
func TestCallContextChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, _ := newCallContext(t, time.Minute)
		before := runtime.NumGoroutine()
		child, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		early, cancelEarly := context.WithTimeout(ctx, time.Second)
		defer cancelEarly()
		called := make(chan struct{})
		context.AfterFunc(ctx, func() { close(called) })
		unwanted := context.AfterFunc(ctx, func() { t.Error("a stopped callback ran") })
		if !unwanted() {
			t.Error("the callback could not be stopped")
		}
		if n := runtime.NumGoroutine(); n != before {
			t.Errorf("%d goroutines watch the context", n-before)
		}
		if d, ok := child.Deadline(); !ok || !d.Equal(ctx.deadline) {
			t.Errorf("the child ends at %v, %t, want its parent's %v", d, ok, ctx.deadline)
		}
		<-early.Done()
		if ctx.Err() != nil || child.Err() != nil {
			t.Error("a child's own deadline ended its parent")
		}
		ctx.end(errWhy)
		<-child.Done()
		<-called
		if context.Cause(child) != errWhy || child.Err() != context.Canceled {
			t.Errorf("the child ended with %v, %v", child.Err(), context.Cause(child))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, _ := newCallContext(t, time.Second)
		child, cancel := context.WithCancel(ctx)
		defer cancel()
		<-child.Done()
		if child.Err() != context.DeadlineExceeded {
			t.Errorf("after its parent's deadline the child's Err is %v", child.Err())
		}
	})
}

func TestCallContextValues(t *testing.T) {
	type key struct{}
	root, stop := context.WithCancelCause(context.WithValue(t.Context(), key{}, "v"))
	defer stop(nil)
	inv := &rpc.Invocation{Capability: "x"}
	c := &callContext{root: root, deadline: time.Now().Add(time.Hour)}
	defer c.end(nil)
	if rpc.InvocationFrom(c) != nil {
		t.Error("an invocation before the handler runs")
	}
	c.invocation = inv
	child, cancel := context.WithCancel(c)
	defer cancel()
	if rpc.InvocationFrom(c) != inv || rpc.InvocationFrom(child) != inv || child.Value(key{}) != "v" || c.Value("none") != nil {
		t.Error("values are lost")
	}
}

// A request whose handler needs no context costs none.
func TestCallContextIsLazy(t *testing.T) {
	root := t.Context()
	n := alloctest.Least(100, func() {
		c := callContext{root: root, deadline: time.Now().Add(time.Hour)}
		if c.Err() != nil {
			t.Error("ended")
		}
		c.end(nil)
	})
	if n > 1 {
		t.Errorf("%v allocations", n)
	}
}

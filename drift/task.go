package drift

import (
	"context"
	"sync"
	"time"
)

// A task is work that one goroutine of the gate does and any number of calls wait
// for. It has bounds of its own: a call that gives up waiting neither ends it nor
// leaves a trace in what it finds out.
type task struct {
	begun time.Time
	asks  bool // it asks the peer; otherwise it compares contracts
	// forTool is the capability for whose call it was begun.
	forTool string
	// first is closed when the first of several answers is known, or the task has
	// ended; done only then.
	first, done chan struct{}

	// What is only for those who wait, and not kept. Set before done is closed.

	err       error              // why nothing was found out
	transient map[string]verdict // undecided for want of time, by revision
}

func newTask(forTool string) *task {
	return &task{begun: time.Now(), forTool: forTool, first: make(chan struct{}), done: make(chan struct{})}
}

// firstKnown closes first early.
func (f *task) firstKnown() {
	select {
	case <-f.first:
	default:
		close(f.first)
	}
}

// wait waits until the task has ended, or for calls of another capability until its
// first answer; patience bounds the wait, counted from its begin. The error
// is that of ctx.
func (f *task) wait(ctx context.Context, tool string, patience time.Duration) error {
	over := f.done
	if tool != f.forTool {
		over = f.first
	}
	if patience == whole {
		select {
		case <-over:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	timer := time.NewTimer(time.Until(f.begun.Add(patience)))
	defer timer.Stop()
	select {
	case <-over:
		return nil
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// over reports whether the task has ended.
func (f *task) over() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// whole is the patience of a call that cannot go on without the task.
const whole time.Duration = -1

// tasks runs tasks, each on a goroutine of its own.
type tasks struct {
	mu      sync.Mutex
	closed  bool // guarded by mu
	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup
}

func newTasks() *tasks {
	c := &tasks{}
	c.ctx, c.stop = context.WithCancel(context.Background())
	return c
}

// run does the work of f on a goroutine of its own, bounded in time. It returns false
// once it is closed.
func (c *tasks) run(f *task, most time.Duration, work func(ctx context.Context)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.running.Go(func() {
		ctx, cancel := context.WithTimeout(c.ctx, most)
		defer cancel()
		defer f.firstKnown()
		defer close(f.done) // before first, whose waiters check whether it has ended
		work(ctx)
	})
	return true
}

// close ends all tasks and waits for them. It may be called twice.
func (c *tasks) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.stop()
	c.running.Wait()
}

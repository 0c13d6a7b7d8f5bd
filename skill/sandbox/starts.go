package sandbox

import (
	"context"
	"runtime"
	"sync"
)

// startsPerCPU is how many programs may start at a time for each processor: enough to keep
// all of them busy while some starts wait for a disk.
const startsPerCPU = 2

// Starts bounds how many programs of one process are on their way at a time, from the fork
// until the helper has become the program. A helper takes some milliseconds of computing
// time. Hundreds at once would leave none to the process that serves the calls, whose audit
// log then looks like a disk that does not answer. It is safe for concurrent use.
type Starts struct {
	// turns holds an item for each program on its way. Those that wait to send are served
	// in the order in which they came.
	turns chan struct{}
}

// NewStarts returns the bound of a process.
func NewStarts() *Starts {
	return &Starts{turns: make(chan struct{}, startsPerCPU*runtime.GOMAXPROCS(0))}
}

// Most is how many programs may start at a time.
func (s *Starts) Most() int { return cap(s.turns) }

// turn waits until a program may start, or until ctx ends. done ends the turn; more than
// one call of it does nothing. The turn also ends with ctx: a helper that hangs, on a file
// system that does not answer, keeps no other call waiting for longer than its own lasts.
// A nil Starts bounds nothing.
func (s *Starts) turn(ctx context.Context) (done func(), err error) {
	if s == nil {
		return func() {}, nil
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	select {
	case s.turns <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	end := sync.OnceFunc(func() { <-s.turns })
	stop := context.AfterFunc(ctx, end)
	return func() { stop(); end() }, nil
}

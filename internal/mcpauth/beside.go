package mcpauth

import (
	"context"
	"sync"
	"time"
)

// closeGrace is how long a renewal may still take when nobody needs its token any more. One that
// is cut off may have used up the token that it was to exchange.
const closeGrace = 2 * time.Second

// beside runs renewals of tokens that are still good: whoever makes a request does not wait for
// them, as the authorization server may hang.
type beside struct {
	ctx context.Context
	end context.CancelFunc

	mu      sync.Mutex
	closed  bool // guarded by mu
	running sync.WaitGroup
}

func newBeside() *beside {
	b := &beside{}
	b.ctx, b.end = context.WithCancel(context.Background())
	return b
}

// start runs renew in a goroutine of its own. It returns false once b is closed.
func (b *beside) start(renew func(context.Context)) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.running.Go(func() { renew(b.ctx) })
	return true
}

// close lets no renewal begin, and returns when none runs: soon.
func (b *beside) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	defer time.AfterFunc(closeGrace, b.end).Stop()
	b.running.Wait()
	b.end()
}

package control

import (
	"context"
	"crypto/rand"
	"sync"
)

// Calls holds the running calls whose skills may make nested calls and report
// progress. The zero value is ready to use. It is safe for concurrent use.
type Calls struct {
	mu      sync.Mutex
	running map[string]context.Context // guarded by mu
}

// Register stores ctx, the context of a running call, under a random token until
// release is called. The token is a capability: only the skill's process gets it,
// in its environment, and it is worthless after the call has ended.
func (c *Calls) Register(ctx context.Context) (token string, release func()) {
	token = rand.Text()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running == nil {
		c.running = map[string]context.Context{}
	}
	c.running[token] = ctx
	return token, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.running, token)
	}
}

// find returns the context that was registered under a token.
func (c *Calls) find(token string) (context.Context, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ctx, ok := c.running[token]
	return ctx, ok
}

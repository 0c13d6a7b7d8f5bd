package skillapi

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
)

// MaxRequests bounds the nested calls and waits for results that one call has at a time,
// and also its reports of progress and of models. What is beyond is refused with 429 and
// EAGENTRPC_BUSY.
const MaxRequests = 64

// errCallEnded is the cause with which nested calls end that their call does not wait for.
var errCallEnded = errors.New("the call that this one is nested in has ended")

// A call is one that runs, whose skill is a process.
type call struct {
	// ctx has the call's values, and ends with it.
	ctx context.Context
	// user is whom its skill runs as.
	user int
	// requests and progress hold an item for each request of a kind that is in progress.
	requests, progress chan struct{}
	// usages counts the reports of what models used.
	usages atomic.Int64
	// misused notes that this call has been counted; see Server.misuse.
	misused sync.Once
}

// calls are the running calls. They are safe for concurrent use.
type calls struct {
	mu      sync.Mutex
	running map[string]*call // by token; guarded by mu
	users   map[int]int      // running calls, by the user that the skill runs as; guarded by mu
	own     []int            // users whose skills may begin to run; guarded by mu
}

// setUsers sets the users that skills run as.
func (c *calls) setUsers(users []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.own = slices.Clone(users)
}

// serves reports whether skills run as a user: by what was set, or still, in a call that
// began before.
func (c *calls) serves(user int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.users[user] > 0 || slices.Contains(c.own, user)
}

// register keeps a running call under a random token until release is called. The token
// is a capability: only the skill's process gets it, in its environment, and it is
// worthless after the call has ended.
func (c *calls) register(ctx context.Context, user int) (token string, release func()) {
	token = rand.Text()
	ctx, end := context.WithCancelCause(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running == nil {
		c.running, c.users = map[string]*call{}, map[int]int{}
	}
	c.users[user]++
	c.running[token] = &call{ctx: ctx, user: user, requests: make(chan struct{}, MaxRequests), progress: make(chan struct{}, MaxRequests)}
	return token, func() {
		c.mu.Lock()
		if c.running[token] != nil { // the first release
			delete(c.running, token)
			c.users[user]--
		}
		c.mu.Unlock()
		end(errCallEnded)
	}
}

// find returns the running call with a token, or nil.
func (c *calls) find(token string) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running[token]
}

// join returns a context that has the call's values and ends with the call or with a
// request, whichever is first.
func (c *call) join(request context.Context) (ctx context.Context, cancel func()) {
	ctx, cancelCause := context.WithCancelCause(c.ctx)
	stop := context.AfterFunc(request, func() {
		if c.ctx.Err() != nil { // which ends the request as well, and is why
			request = c.ctx
		}
		cancelCause(context.Cause(request))
	})
	return ctx, func() { stop(); cancelCause(nil) }
}

// atEnd calls f when the call ends, if that is before stop is called. f is not running any
// more when stop has returned.
func (c *call) atEnd(f func()) (stop func()) {
	done := make(chan struct{})
	cancel := context.AfterFunc(c.ctx, func() { defer close(done); f() })
	return func() {
		if !cancel() {
			<-done
		}
	}
}

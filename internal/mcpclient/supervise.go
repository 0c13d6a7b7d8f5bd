package mcpclient

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/agentd/agentd/internal/mcpauth"
)

var errEnded = errors.New("the server ended the connection")

// run keeps the connection up until ctx ends.
func (c *Client) run(ctx context.Context) {
	defer close(c.done)
	limits := c.opts.Limits
	pause := limits.MinBackoff
	for {
		c.trying()
		l, tools, err := c.connect(ctx)
		reached := err == nil
		if reached {
			began := time.Now()
			c.up(l, tools)
			err = l.redact(c.serve(ctx, l))
			c.leaves(err)
			err = l.close(err)
			if time.Since(began) >= limits.MaxBackoff {
				pause = limits.MinBackoff
			}
		}
		if ctx.Err() != nil {
			c.down(errClosed, reached, false)
			return
		}
		c.down(err, reached, true)
		// Not all clients of a server that was restarted come back at one moment.
		if !c.rest(ctx, pause/2+rand.N(pause)) { //nolint:gosec // no secret
			return
		}
		pause = min(2*pause, limits.MaxBackoff)
	}
}

// lookAgain is how soon a login is noticed.
const lookAgain = 500 * time.Millisecond

// rest waits before the next attempt, and not longer than until somebody has logged in. It
// reports whether there is to be one.
func (c *Client) rest(ctx context.Context, pause time.Duration) bool {
	wait := time.NewTimer(pause)
	defer wait.Stop()
	var look <-chan time.Time
	if c.opts.URL != nil && c.opts.URL.Auth != nil {
		ticker := time.NewTicker(lookAgain)
		defer ticker.Stop()
		look = ticker.C
	}
	for {
		select {
		case <-ctx.Done():
			return false
		case <-wait.C:
			return true
		case <-look:
			if c.opts.URL.Auth.Renewed() {
				return true
			}
		}
	}
}

// needsLogin reports whether the cause ends when somebody logs in.
func needsLogin(cause error) bool {
	denied := (*mcpauth.Error)(nil)
	return errors.As(cause, &denied) && (denied.Kind == mcpauth.NeedsLogin || denied.Kind == mcpauth.NeedsScope)
}

// serve reads the list of tools again whenever it may have changed, until the connection
// ends or fails. The error is why.
func (c *Client) serve(ctx context.Context, l *link) error {
	timer := time.NewTimer(c.opts.Limits.Relist)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return errClosed
		case <-l.ended:
			return errEnded
		case <-c.changed:
		case <-timer.C:
		}
		if err := c.listAgain(ctx, l); err != nil {
			return err
		}
		// A server that says again and again that its list has changed is not asked as often.
		timer.Reset(c.opts.Limits.RelistPause)
		select {
		case <-ctx.Done():
			return errClosed
		case <-l.ended:
			return errEnded
		case <-timer.C:
		}
		timer.Reset(c.opts.Limits.Relist)
	}
}

func (c *Client) listAgain(ctx context.Context, l *link) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.opts.Limits.StartTimeout, errNoAnswer)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), errNoAnswer) {
			l.abort()
		}
	})()
	generation := c.generation.Load()
	tools, err := l.list(ctx)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return err
	}
	c.judge(tools, generation)
	return nil
}

// listChanged is what a server says whose list of tools has changed. Calls wait until it has
// been read.
func (c *Client) listChanged() {
	c.mu.Lock()
	c.generation.Add(1)
	if c.link != nil && c.wait == nil {
		c.wait = make(chan struct{})
	}
	c.mu.Unlock()
	c.relist()
}

// relist has the list of tools read again.
func (c *Client) relist() {
	select {
	case c.changed <- struct{}{}:
	default: // it will be
	}
}

// trying notes that an attempt to connect begins. Calls wait for it unless the one before has
// failed: a server that is mute would hold each of them for as long as an attempt may take.
func (c *Client) trying() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wait == nil && !c.unreached {
		c.wait = make(chan struct{})
	}
}

// settle lets the calls go on that wait. The caller holds the lock.
func (c *Client) settle() {
	if c.wait != nil {
		close(c.wait)
		c.wait = nil
	}
}

// up puts a connection in force, whose list of tools has been read.
func (c *Client) up(l *link, tools listing) {
	implementation := ""
	if info := l.session.InitializeResult().ServerInfo; info != nil {
		implementation = shown(info.Name + " " + info.Version)
	}
	c.mu.Lock()
	text := "an MCP server is connected"
	if c.away {
		text = "an MCP server is back"
	}
	c.link, c.cause, c.away, c.login, c.unreached, c.since, c.implementation = l, nil, false, false, false, time.Now(), implementation
	if c.wait == nil {
		c.wait = make(chan struct{}) // until it is judged what the server serves
	}
	c.mu.Unlock()
	c.log.Info(text, "era", l.era, "implementation", implementation, "tools", len(tools))
	c.judge(tools, l.listed)
}

// leaves takes a connection out of force before it is closed.
func (c *Client) leaves(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.link, c.cause = nil, why
	if c.wait == nil {
		c.wait = make(chan struct{}) // until down, which knows the cause
	}
}

// down notes that there is no connection, after one or without, and says so once.
func (c *Client) down(why error, reached, report bool) {
	c.mu.Lock()
	login := needsLogin(why)
	first := !c.away || login != c.login
	if first {
		c.since = time.Now()
	}
	c.link, c.cause, c.away, c.login, c.unreached = nil, why, true, login, !reached
	c.mu.Unlock()
	switch {
	case report && first && login:
		c.log.Warn("an MCP server needs a login, and is not used until somebody has logged in", reasons(why)...)
	case report && first:
		c.log.Warn("an MCP server is away, and is tried again and again", reasons(why)...)
	}
	c.mu.Lock()
	c.settle() // whoever learns of it finds it in the log
	c.mu.Unlock()
	c.notify()
}

// reasons are what the log says of an error. What is behind the lack of a token, such as a file
// that cannot be read, is not in its text, which callers see.
func reasons(why error) []any {
	all := []any{"error", why}
	if denied := (*mcpauth.Error)(nil); errors.As(why, &denied) && denied.Err != nil && !strings.Contains(denied.Text, denied.Err.Error()) {
		all = append(all, "cause", denied.Err)
	}
	return all
}

func (c *Client) notify() {
	if c.opts.Changed != nil {
		c.opts.Changed()
	}
}

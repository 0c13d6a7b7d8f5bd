package mcphttp

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A client is what the handler keeps of one client: handlers of the library of its own, so that
// no session of another one can be found there, and what it uses at present.
type client struct {
	handler   *Handler
	name      string
	stateful  http.Handler // revisions up to 2025-11-25
	stateless http.Handler // 2026-07-28

	mu        sync.Mutex
	exchanges map[*exchange]struct{}
	sessions  map[string]*session
	starting  int // sessions for which there is a place already
	calls     int
	answered  chan struct{} // closed when no call runs; nil unless somebody waits for that
	streams   int
	closed    bool
	unserved  time.Time // since when there is no server for the client; zero while there is one
}

// A session is one of the library, with the identity that it began with.
type session struct {
	id     string
	who    identity
	serves *mcp.ServerSession
	active int // exchanges that name it
	since  time.Time
	idle   *time.Timer // runs while none does
}

func newClient(h *Handler, name string) *client {
	return &client{
		handler: h, name: name, stateful: library(false, h.cfg), stateless: library(true, h.cfg),
		exchanges: map[*exchange]struct{}{}, sessions: map[string]*session{},
	}
}

// begin begins an exchange. It is nil if there are too many, or the handler is closed.
func (c *client) begin(ctx context.Context, who identity) (*exchange, *refusal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.handler.cfg.Limits
	switch {
	case c.closed:
		return nil, closing()
	// Twice the calls, because a client has to be able to cancel and to answer questions while
	// all of its calls run.
	case len(c.exchanges) >= 2*l.MaxPending+l.MaxStreams:
		return nil, &refusal{status: http.StatusTooManyRequests, text: "too many requests at once", retryAfter: time.Second}
	}
	x := &exchange{client: c, who: who}
	x.ctx, x.cancel = context.WithCancelCause(ctx)
	c.exchanges[x] = struct{}{}
	return x, nil
}

// end ends an exchange.
func (c *client) end(x *exchange) {
	x.cancel(errGone)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.exchanges, x)
	if x.starts {
		c.starting--
	}
	if x.stream {
		c.streams--
	}
	if s := x.session; s != nil {
		s.active--
		s.since = time.Now()
		if s.active == 0 && c.sessions[s.id] == s {
			s.idle.Reset(c.handler.cfg.Limits.SessionIdle)
		}
	}
}

// noteServer logs that there is no server for the client when that begins, and when it has ended: the
// client asks as often as it likes meanwhile.
func (c *client) noteServer(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	log := c.handler.cfg.Logger.With("client", c.name)
	switch {
	case err != nil && c.unserved.IsZero():
		c.unserved = time.Now()
		log.Error("there is no MCP server for a client: its requests are refused", "error", err)
	case err == nil && !c.unserved.IsZero():
		log.Info("there is an MCP server for a client again", "after", time.Since(c.unserved).Round(time.Second))
		c.unserved = time.Time{}
	}
}

// name lets an exchange name a session. It is false if there is none of that id that began with
// the same identity: whether there is another one is not the client's to know.
func (c *client) use(x *exchange, id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sessions[id]
	if s == nil || !s.who.same(x.who) {
		return false
	}
	c.occupy(x, s)
	return true
}

func (c *client) occupy(x *exchange, s *session) {
	x.session = s
	s.active++
	s.idle.Stop()
}

// start keeps a place for a session that an exchange starts.
func (c *client) start(x *exchange) bool {
	var oldest *session
	c.mu.Lock()
	full := len(c.sessions)+c.starting >= c.handler.cfg.Limits.MaxSessions
	if full {
		for _, s := range c.sessions {
			if s.active == 0 && (oldest == nil || s.since.Before(oldest.since)) {
				oldest = s
			}
		}
	}
	if full && oldest == nil {
		c.mu.Unlock()
		return false
	}
	if oldest != nil {
		delete(c.sessions, oldest.id)
	}
	x.starts = true
	c.starting++
	c.mu.Unlock()
	if oldest != nil {
		c.finish(oldest)
	}
	return true
}

// adopt enters a session that the library has started, before its client learns the id.
func (c *client) adopt(x *exchange, id string) {
	var serves *mcp.ServerSession
	for s := range x.server.Sessions() {
		if s.ID() == id {
			serves = s
		}
	}
	if serves == nil {
		return // it has ended already
	}
	s := &session{id: id, who: x.who, serves: serves}
	s.idle = time.AfterFunc(c.handler.cfg.Limits.SessionIdle, func() { c.expire(s) })
	c.mu.Lock()
	closed := c.closed
	if !closed {
		c.sessions[id] = s
		c.occupy(x, s)
		if x.starts {
			x.starts = false
			c.starting--
		}
		c.handler.running.Add(1)
		go c.follow(s)
	}
	c.mu.Unlock()
	if closed {
		s.idle.Stop()
		x.cancel(errShutdown)
	}
}

// follow waits for the end of a session, however it ends.
func (c *client) follow(s *session) {
	defer c.handler.running.Done()
	_ = s.serves.Wait() // why it ended makes no difference
	c.mu.Lock()
	defer c.mu.Unlock()
	s.idle.Stop()
	if c.sessions[s.id] == s {
		delete(c.sessions, s.id)
	}
}

// expire ends a session that nobody uses.
func (c *client) expire(s *session) {
	c.mu.Lock()
	used := s.active > 0 || c.sessions[s.id] != s
	if !used {
		delete(c.sessions, s.id)
	}
	c.mu.Unlock()
	if !used {
		c.finish(s)
	}
}

// interrupt ends the calls and streams of a session, but for one exchange.
func (c *client) interrupt(s *session, but *exchange, cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for x := range c.exchanges {
		if x.session == s && x != but {
			x.cancel(cause)
		}
	}
}

// finish ends a session that was taken from the table. The library waits for calls that run,
// so that this does not: [client.follow] does.
func (c *client) finish(s *session) {
	c.interrupt(s, nil, errEnded)
	c.handler.running.Add(1)
	go func() {
		defer c.handler.running.Done()
		_ = s.serves.Close() // that of a session that has ended is no news
	}()
}

// retain ends all that is not of an identity that holds accepts.
func (c *client) retain(holds func(identity) bool, cause error) {
	var over []*session
	c.mu.Lock()
	for x := range c.exchanges {
		if !holds(x.who) {
			x.cancel(cause)
		}
	}
	for id, s := range c.sessions {
		if !holds(s.who) {
			delete(c.sessions, id)
			over = append(over, s)
		}
	}
	c.mu.Unlock()
	for _, s := range over {
		c.finish(s)
	}
}

// close ends everything, and lets nothing begin.
func (c *client) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.retain(func(identity) bool { return false }, errShutdown)
}

// takeCall takes a place for a call.
func (c *client) takeCall(x *exchange) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls >= c.handler.cfg.Limits.MaxPending || c.handler.finishing.Load() {
		return false
	}
	c.calls++
	x.holders = 1
	return true
}

func (c *client) freeCall() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls--; c.calls == 0 && c.answered != nil {
		close(c.answered)
		c.answered = nil
	}
}

// whenAnswered returns a channel that is closed when none of the client's calls runs.
func (c *client) whenAnswered() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.calls == 0:
		none := make(chan struct{})
		close(none)
		return none
	case c.answered == nil:
		c.answered = make(chan struct{})
	}
	return c.answered
}

// takeStream takes a place for a stream.
func (c *client) takeStream(x *exchange) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streams >= c.handler.cfg.Limits.MaxStreams {
		return false
	}
	c.streams++
	x.stream = true
	return true
}

package skillapi

import (
	"container/list"
	"context"
	"net"
	"sync"
)

// maxStrangers bounds the connections without a request of a running call.
const maxStrangers = 256

// strangers are the connections without a request of a running call. Skills are among
// them for the moment between connecting and the end of their request's header, and for that
// between the answer and the end of the connection.
type strangers struct {
	mu     sync.Mutex
	all    list.List // of *conn, the oldest first; guarded by mu
	closed bool      // no more are accepted; guarded by mu
}

// A conn is a connection to the server.
type conn struct {
	*net.TCPConn
	strangers *strangers
	user      int           // of the other end, or unknownUser
	place     *list.Element // nil when it is no stranger; guarded by strangers.mu
	ended     bool          // guarded by strangers.mu
}

// add registers a new connection, and cuts the oldest if there are too many. A skill's
// request follows its connect at once, so it is rarely among the old ones.
func (s *strangers) add(tcp *net.TCPConn, user int) *conn {
	c := &conn{TCPConn: tcp, strangers: s, user: user}
	s.mu.Lock()
	cut := s.push(c)
	if s.closed {
		cut = c
	}
	s.mu.Unlock()
	if cut != nil {
		_ = cut.Close()
	}
	return c
}

// push puts a connection behind all others, and returns the oldest if there are too many.
// The caller holds mu.
func (s *strangers) push(c *conn) (tooMany *conn) {
	c.place = s.all.PushBack(c)
	if s.all.Len() > maxStrangers {
		tooMany, _ = s.all.Front().Value.(*conn)
	}
	return tooMany
}

// rejoin puts a connection on the list whose request has been answered. At the end of the
// server it stays off it: the answer is still on its way.
func (s *strangers) rejoin(c *conn) {
	s.mu.Lock()
	var cut *conn
	if !s.closed && !c.ended && c.place == nil {
		cut = s.push(c)
	}
	s.mu.Unlock()
	if cut != nil {
		_ = cut.Close()
	}
}

// leave takes a connection off the list: it has a request of a running call.
func (s *strangers) leave(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(c)
}

// end takes a connection off the list that is closed.
func (s *strangers) end(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.ended = true
	s.drop(c)
}

// drop takes a connection off the list. The caller holds mu.
func (s *strangers) drop(c *conn) {
	if c.place != nil {
		s.all.Remove(c.place)
		c.place = nil
	}
}

// cut closes all of them, and those that are still to come.
func (s *strangers) cut() {
	s.mu.Lock()
	s.closed = true
	var all []*conn
	for e := s.all.Front(); e != nil; e = e.Next() {
		if c, ok := e.Value.(*conn); ok {
			all = append(all, c)
		}
	}
	s.mu.Unlock()
	for _, c := range all {
		_ = c.Close()
	}
}

// Close implements [net.Conn].
func (c *conn) Close() error {
	c.strangers.end(c)
	return c.TCPConn.Close()
}

const (
	// unknownUser is that of a connection where the system does not say whose it is: the
	// token decides alone.
	unknownUser = -1
	// noUser is that of a connection whose other end was closed before it was accepted. It
	// may have been anybody's, and nobody waits for an answer.
	noUser = -2
)

// A listener accepts connections of the users that skills run as.
type listener struct {
	*net.TCPListener
	strangers *strangers
	serves    func(user int) bool
	refused   func() // called for each connection of another user
}

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	for {
		tcp, err := l.AcceptTCP()
		if err != nil {
			return nil, err
		}
		user := userOf(tcp)
		if user == unknownUser || user != noUser && l.serves(user) {
			return l.strangers.add(tcp, user), nil
		}
		if user != noUser {
			l.refused()
		}
		_ = tcp.Close()
	}
}

// connKey is the context key for a request's *conn.
type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// mayName reports whether a request's connection is one of the user that a call's skill runs
// as: a token that another skill has got hold of is none in its hands.
func mayName(ctx context.Context, running *call) bool {
	c, ok := ctx.Value(connKey{}).(*conn)
	return !ok || c.user == unknownUser || c.user == running.user
}

// admit notes that a request of a running call has begun on its connection, until answered is
// called.
func admit(ctx context.Context) (answered func()) {
	c, ok := ctx.Value(connKey{}).(*conn)
	if !ok {
		return func() {}
	}
	c.strangers.leave(c)
	return func() { c.strangers.rejoin(c) }
}

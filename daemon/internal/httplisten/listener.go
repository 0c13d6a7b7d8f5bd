package httplisten

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// Limits bound the connections that are open. Further ones are closed at once.
type Limits struct {
	// Connections bounds all of them, and FromOne those from one address; 0 is no bound of that
	// kind.
	Connections, FromOne int
	// Refused hears of a connection that found no place, with the number of all such so far: of the
	// first, and then each time that it has doubled. It returns quickly. Nil hears nothing.
	Refused func(from netip.Addr, times int64)
}

// A Server serves HTTP on one listener. It is safe for concurrent use.
type Server struct {
	http   *http.Server
	on     *listener
	done   chan struct{} // closed when Serve has returned
	served error         // what it has returned
}

// Serve serves on a listener, with a certificate or, where that is nil, plain HTTP, until
// [Server.Shutdown]. Both l and s then belong to the server, which sets s.ConnState.
func Serve(l net.Listener, s *http.Server, limits Limits, cert *tls.Certificate) *Server {
	on := &listener{Listener: l, limits: limits, cert: cert, open: map[netip.Addr]int{}, plain: map[net.Conn]bool{}}
	s.ConnState = on.changed
	server := &Server{http: s, on: on, done: make(chan struct{})}
	go func() { // Shutdown waits for it
		defer close(server.done)
		server.served = s.Serve(on)
	}()
	return server
}

// Use puts another certificate in force for the connections that follow; nil is plain HTTP. Where
// there is one, plain connections end: at once, or with the request that they have.
func (s *Server) Use(cert *tls.Certificate) { s.on.use(cert) }

// URL is where the server is.
func (s *Server) URL() string {
	scheme := "http"
	if s.on.certificate() != nil {
		scheme = "https"
	}
	return scheme + "://" + s.on.Addr().String()
}

// StopAccepting takes no more connections. Those that are open go on until [Server.Shutdown].
func (s *Server) StopAccepting() error { return s.on.Close() }

// Shutdown takes no more requests, waits for those in progress until ctx ends, and cuts them off
// then: cut says why. err is a fault of the listener before that. It may be called again.
func (s *Server) Shutdown(ctx context.Context) (cut, err error) {
	if cut = s.http.Shutdown(ctx); cut != nil {
		err = s.http.Close()
	}
	<-s.done
	if !errors.Is(s.served, http.ErrServerClosed) && !errors.Is(s.served, net.ErrClosed) { // nobody else closes the listener
		err = errors.Join(err, s.served)
	}
	return cut, err
}

// A listener bounds the connections, and speaks TLS if there is a certificate when one comes.
type listener struct {
	net.Listener
	limits  Limits
	closing sync.Once
	closed  error // what Close has returned; set by closing

	mu    sync.Mutex
	cert  *tls.Certificate   // guarded by mu, as are all below
	all   int                // connections
	open  map[netip.Addr]int // by where they come from
	none  int64              // connections that found no place
	plain map[net.Conn]bool  // those without TLS, and whether they have a request
}

// Close implements [net.Listener]. It may be called again.
func (l *listener) Close() error {
	l.closing.Do(func() { l.closed = l.Listener.Close() })
	return l.closed
}

func (l *listener) certificate() *tls.Certificate {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cert
}

// use puts a certificate in force.
func (l *listener) use(cert *tls.Certificate) {
	var ended []net.Conn
	l.mu.Lock()
	l.cert = cert
	for conn, busy := range l.plain {
		if cert != nil && !busy {
			ended = append(ended, conn)
		}
	}
	l.mu.Unlock()
	for _, conn := range ended { // without the lock, which Close takes
		_ = conn.Close() // nothing was written that could be lost
	}
}

// changed notes what becomes of a plain connection; it is [http.Server].ConnState. One whose
// request has been answered ends if it is plain no more by right.
func (l *listener) changed(conn net.Conn, state http.ConnState) {
	l.mu.Lock()
	_, plain := l.plain[conn]
	if plain {
		l.plain[conn] = state == http.StateActive
	}
	end := plain && state == http.StateIdle && l.cert != nil
	l.mu.Unlock()
	if end {
		_ = conn.Close() // the answer is on its way
	}
}

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if taken := l.take(conn); taken != nil {
			return taken, nil
		}
		_ = conn.Close() // a stranger's, as far as is known: there is nothing to say
	}
}

// take takes a place for a connection, which gives it back when it is closed. It returns nil if
// there is none.
func (l *listener) take(conn net.Conn) net.Conn {
	from, ok := l.place(conn.RemoteAddr())
	if !ok {
		l.refuse(from)
		return nil
	}
	counted := &counted{Conn: conn}
	counted.free = sync.OnceFunc(func() { l.free(counted, from) })
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cert == nil {
		l.plain[counted] = false
		return counted
	}
	return tls.Server(counted, &tls.Config{Certificates: []tls.Certificate{*l.cert}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}})
}

// place takes a place for a connection from an address, if there is one. free gives it back.
func (l *listener) place(remote net.Addr) (from netip.Addr, ok bool) {
	at, _ := netip.ParseAddrPort(remote.String()) // the zero address for another kind
	from = at.Addr().Unmap().WithZone("")
	if from.Is6() { // a host has all addresses of such a network
		const network = 64
		prefix, _ := from.Prefix(network)
		from = prefix.Addr()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if full(l.all, l.limits.Connections) || full(l.open[from], l.limits.FromOne) {
		return from, false
	}
	l.all++
	l.open[from]++
	return from, true
}

// refuse counts a connection from an address that found no place.
func (l *listener) refuse(from netip.Addr) {
	l.mu.Lock()
	l.none++
	n := l.none
	l.mu.Unlock()
	if tell := l.limits.Refused; tell != nil && n&(n-1) == 0 {
		tell(from, n)
	}
}

func full(n, most int) bool { return most > 0 && n >= most }

func (l *listener) free(conn net.Conn, from netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.plain, conn)
	l.all--
	if l.open[from]--; l.open[from] == 0 {
		delete(l.open, from)
	}
}

// A counted connection frees its place when it is closed.
type counted struct {
	net.Conn
	free func()
}

// Close implements [net.Conn].
func (c *counted) Close() error {
	c.free()
	return c.Conn.Close()
}

package httplisten

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/internal/tlstest"
)

// patience is how long a connection may take for what it does at once.
const patience = 20 * time.Second

// serve serves plain HTTP until the test ends.
func serve(t *testing.T, handler http.HandlerFunc) *Server {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := Serve(l, &http.Server{Handler: handler, ReadHeaderTimeout: patience}, Limits{Connections: 8}, nil)
	t.Cleanup(func() {
		for range 2 { // the second one has nothing to do
			if cut, err := s.Shutdown(t.Context()); err != nil || cut != nil && !errors.Is(cut, t.Context().Err()) {
				t.Error(cut, err)
			}
		}
	})
	return s
}

// A client has one connection, and what it has read of it.
type client struct {
	net.Conn
	read *bufio.Reader
}

func dial(t *testing.T, s *Server) client {
	t.Helper()
	conn, err := net.Dial("tcp", s.on.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return client{conn, bufio.NewReader(conn)}
}

func (c client) ask(t *testing.T) {
	t.Helper()
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Error(err)
	}
}

func (c client) answer(t *testing.T) {
	t.Helper()
	response, err := http.ReadResponse(c.read, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err != nil || string(text) != "answer" {
		t.Fatalf("%q, %v", text, err)
	}
}

// ended waits until the server has closed the connection.
func (c client) ended(t *testing.T) {
	t.Helper()
	if _, err := c.read.ReadByte(); err == nil || !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "reset") {
		t.Errorf("the connection is open: %v", err)
	}
}

// When a certificate comes, plain connections end: those without a request at once, the others
// when it is answered. Nothing goes on in the clear.
func TestPlainConnectionsEnd(t *testing.T) {
	t.Parallel()
	begun, finish := make(chan struct{}), make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil {
			begun <- struct{}{}
			<-finish
		}
		_, _ = io.WriteString(w, "answer")
	})
	idle, busy := dial(t, s), dial(t, s)
	idle.ask(t)
	<-begun
	finish <- struct{}{}
	idle.answer(t)
	busy.ask(t)
	<-begun
	if !strings.HasPrefix(s.URL(), "http://") {
		t.Error(s.URL())
	}
	s.Use(tlstest.Certificate(t))
	idle.ended(t)
	finish <- struct{}{}
	busy.answer(t)
	busy.ended(t)
	if !strings.HasPrefix(s.URL(), "https://") {
		t.Error(s.URL())
	}
	conn, err := tls.Dial("tcp", s.on.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	secure := client{conn, bufio.NewReader(conn)}
	defer conn.Close()
	secure.ask(t)
	secure.answer(t)
	s.Use(tlstest.Certificate(t)) // a new one is for the connections that follow
	secure.ask(t)
	secure.answer(t)
}

// One address does not take all places, and an IPv6 host has one. The places of all are bounded.
func TestPlaces(t *testing.T) {
	t.Parallel()
	const all, fromOne = 128, 32
	l := &listener{limits: Limits{Connections: all, FromOne: fromOne}, open: map[netip.Addr]int{}}
	take := func(address string) (func(), bool) {
		from, ok := l.place(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address)))
		return func() { l.free(nil, from) }, ok
	}
	var frees []func()
	for i := range all + 1 {
		address := fmt.Sprintf("10.0.0.%d:1", i/fromOne)
		if i/fromOne == 1 {
			address = fmt.Sprintf("[2001:db8::%x]:1", i)
		}
		free, ok := take(address)
		if ok != (i < all) {
			t.Fatalf("the connection %d from %s: %v", i, address, ok)
		}
		if i == fromOne {
			if _, ok := take("[::ffff:10.0.0.0]:2"); ok {
				t.Error("one address takes more than its part")
			}
		}
		if ok {
			frees = append(frees, free)
		}
	}
	for _, free := range frees {
		free()
	}
	if l.all != 0 || len(l.open) != 0 {
		t.Errorf("%d places are taken, %v", l.all, l.open)
	}
	for i := range fromOne + 1 {
		if _, ok := take(fmt.Sprintf("[2001:db8::%x]:1", i)); ok != (i < fromOne) {
			t.Errorf("the address %d of one network: %v", i, ok)
		}
	}
}

// A connection that is closed twice frees one place, and the next one has it.
func TestClosedConnectionsFreeTheirPlace(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "answer") })
	for range 20 { // there are 8 places
		c := dial(t, s)
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		c.answer(t)
		c.ended(t)
	}
}

// A server that takes no more connections serves those that are open until it ends.
func TestStopAccepting(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "answer") })
	c := dial(t, s)
	c.ask(t)
	c.answer(t)
	for range 2 { // the second time it has nothing to do
		if err := s.StopAccepting(); err != nil {
			t.Error(err)
		}
	}
	if conn, err := net.Dial("tcp", s.on.Addr().String()); err == nil {
		conn.Close()
		t.Error("a connection is taken")
	}
	c.ask(t)
	c.answer(t)
	if cut, err := s.Shutdown(t.Context()); cut != nil || err != nil {
		t.Error(cut, err)
	}
}

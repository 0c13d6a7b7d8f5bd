package netguard

import (
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentd/agentd/internal/failure"
)

// A wire leads connections to a server, as a gateway does.
type wire struct {
	to string

	mu   sync.Mutex
	open []*atomic.Bool // true for those that carry nothing any more; guarded by mu
}

// serve leads connections on until the listener is closed and they have ended.
func (w *wire) serve(l net.Listener) {
	var running sync.WaitGroup
	defer running.Wait()
	for {
		from, err := l.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", w.to)
		if err != nil {
			from.Close()
			continue
		}
		forgotten := &atomic.Bool{}
		w.mu.Lock()
		w.open = append(w.open, forgotten)
		w.mu.Unlock()
		running.Go(func() { carry(to, from, forgotten) })
		running.Go(func() { carry(from, to, forgotten) })
	}
}

func carry(to, from net.Conn, forgotten *atomic.Bool) {
	defer to.Close()
	for b := make([]byte, 4096); ; {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		if forgotten.Load() {
			continue
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

// forget drops what the connections that are open carry from now on, without a word.
func (w *wire) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.open {
		one.Store(true)
	}
}

// A connection that leads nowhere any more does not last: requests on it fail, and later ones get
// another.
func TestForgottenConnection(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gateway := &wire{to: server.Listener.Addr().String()}
	var serving sync.WaitGroup
	serving.Go(func() { gateway.serve(l) })
	defer serving.Wait()
	defer l.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	c, err := New(Policy{
		Hosts: []string{l.Addr().String()}, AllowAddresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, RootCAs: roots, Timeout: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	pings := c.transport.HTTP2
	if pings == nil || pings.SendPingTimeout <= 0 || pings.PingTimeout <= 0 {
		t.Fatalf("%+v", pings)
	}
	pings.SendPingTimeout, pings.PingTimeout = 200*time.Millisecond, 2*time.Second
	get := func() (string, error) {
		r, err := c.Do(t.Context(), Request{URL: "https://" + l.Addr().String()})
		if err != nil {
			return "", err
		}
		return string(r.Body), nil
	}
	if body, err := get(); body != "HTTP/2.0" {
		t.Fatalf("%q, %v", body, err)
	}
	gateway.forget()
	if _, err := get(); failure.As(err) == nil || failure.As(err).Code != failure.Network {
		t.Errorf("on a connection that carries nothing: %v", err)
	}
	if body, err := get(); body != "HTTP/2.0" {
		t.Errorf("after it: %q, %v", body, err)
	}
}

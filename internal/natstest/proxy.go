package natstest

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// A Proxy forwards TCP connections to a server, until it is told to stall or sever
// them.
type Proxy struct {
	listener net.Listener
	target   string
	done     sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{} // both ends of every link; guarded by mu
	open  chan struct{}         // closed while bytes pass, replaced by Stall; guarded by mu
	ended bool                  // guarded by mu
}

// NewProxy forwards connections to target, a host and port, until the test ends.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: l, target: target, conns: map[net.Conn]struct{}{}, open: make(chan struct{})}
	close(p.open)
	p.done.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// URL is the URL for clients.
func (p *Proxy) URL() string { return "nats://" + p.listener.Addr().String() }

// Stall holds back all bytes in both directions and closes nothing: the link is dead,
// and neither end knows.
func (p *Proxy) Stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = make(chan struct{})
}

// Resume forwards the bytes that were held back, and all that follow.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.open:
	default:
		close(p.open)
	}
}

// Sever closes all links. Clients can connect again.
func (p *Proxy) Sever() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

// accept runs until the listener is closed. Each link has two goroutines, which end
// together when either end closes.
func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(context.Background(), "tcp", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		if !p.add(client, server) {
			return
		}
		p.done.Go(func() { p.forward(client, server) })
		p.done.Go(func() { p.forward(server, client) })
	}
}

// add registers the ends of a link. It returns false if the proxy has ended.
func (p *Proxy) add(links ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range links {
		if p.ended {
			_ = c.Close()
		} else {
			p.conns[c] = struct{}{}
		}
	}
	return !p.ended
}

// forward copies one direction. When that ends it closes both ends, which ends the
// other direction.
func (p *Proxy) forward(to, from net.Conn) {
	_, _ = io.Copy(gate{p, to}, from)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range []net.Conn{to, from} {
		_ = c.Close()
		delete(p.conns, c)
	}
}

// close ends the proxy and waits for its goroutines. Stalled writers must be released
// first, or they would never see their connections closed.
func (p *Proxy) close() {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	_ = p.listener.Close()
	p.Resume()
	p.Sever()
	p.done.Wait()
}

// A gate holds back writes while its proxy stalls.
type gate struct {
	proxy *Proxy
	to    io.Writer
}

func (g gate) Write(data []byte) (int, error) {
	g.proxy.mu.Lock()
	open := g.proxy.open
	g.proxy.mu.Unlock()
	<-open
	return g.to.Write(data)
}

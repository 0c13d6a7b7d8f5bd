package monitoring

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentd/agentd/daemon/metrics"
)

// Bounds of what strangers may use.
const (
	maxHeaderBytes = 16 << 10
	headerTimeout  = 10 * time.Second
	idleTimeout    = 2 * time.Minute
	writeTimeout   = 90 * time.Second // a profile takes 30 s unless its request says otherwise
	maxConnections = 128
	maxFromOne     = 32 // from one address: a stranger must not have a kubelet's probes refused
	closeTimeout   = time.Second
)

// An Agent is one whose health is asked for. Its functions are safe for concurrent use.
type Agent struct {
	Metrics metrics.Agent
	// Alive returns once the agent's own locks have opened: never, if they do not.
	Alive func()
}

// Settings are what a reload may change.
type Settings struct {
	// Insecure permits plain HTTP on an address that others reach.
	Insecure bool
	// Certificate is what the server is served with; nil is plain HTTP.
	Certificate *tls.Certificate
	// Hosts are names of the server, see [Server].
	Hosts []string
	// Token is what metrics and profiles take; "" is none.
	Token string
	// Profiles serves profiles.
	Profiles bool
}

// A Server serves probes, metrics and profiles.
type Server struct {
	log      *slog.Logger
	listener net.Listener
	http     *http.Server
	done     chan error // receives the error of Serve
	metrics  http.Handler
	profiles http.Handler
	probes   probes
	current  atomic.Pointer[setting]
}

// A setting is what is in force of [Settings]. The server keeps no token, only its digest.
type setting struct {
	Settings
	digest [sha256.Size]byte
}

// Listen listens at an address, and serves there until [Server.Close]. ctx bounds the opening.
func Listen(ctx context.Context, address string, s Settings, log *slog.Logger, agents ...Agent) (*Server, error) {
	var all []metrics.Agent
	for _, a := range agents {
		all = append(all, a.Metrics)
	}
	handler, err := metrics.NewHandler(log, all...)
	if err != nil {
		return nil, fmt.Errorf("monitoring: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("monitoring: %w; choose another address with --listen or monitoring.listen", err)
	}
	m := &Server{log: log, listener: listener, done: make(chan error, 1), metrics: handler, profiles: profiles(), probes: probes{agents: agents}}
	use, err := m.Prepare(s)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	use()
	m.http = &http.Server{
		Handler: m, ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug), // strangers could fill the log
	}
	go func() { // Close receives the error
		m.done <- m.http.Serve(&bounded{Listener: listener, server: m, open: map[netip.Addr]int{}})
	}()
	return m, nil
}

// Prepare checks what a reload changes. use puts it in force for the requests that follow.
func (m *Server) Prepare(s Settings) (use func(), err error) {
	if !loopback(m.listener.Addr()) {
		switch {
		case s.Certificate == nil && !s.Insecure:
			return nil, fmt.Errorf("monitoring: others reach %s: it takes monitoring.tls in agent.yaml, or monitoring.insecure: true where the network itself is trusted", m.listener.Addr())
		case s.Profiles && s.Token == "":
			return nil, fmt.Errorf("monitoring: others reach %s: profiles take monitoring.token in agent.yaml", m.listener.Addr())
		}
	}
	next := &setting{Settings: s, digest: sha256.Sum256([]byte(s.Token))}
	return func() { m.current.Store(next) }, nil
}

// URL is where the server is.
func (m *Server) URL() string {
	scheme := "http"
	if m.current.Load().Certificate != nil {
		scheme = "https"
	}
	return scheme + "://" + m.listener.Addr().String()
}

// Close ends the server, and cuts off requests that still run after a second, or when ctx ends: a
// profiler asks for thirty, and the rest of a stop waits.
func (m *Server) Close(ctx context.Context) error {
	if m == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	if err := m.http.Shutdown(ctx); err != nil {
		_ = m.http.Close() // a profile that somebody reads is no reason for an error
	}
	if err := <-m.done; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("monitoring: %w", err)
	}
	return nil
}

// profiles serves those of the process. Their names are not in the default mux: package pprof puts
// its own there, which nobody serves.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}

// A bounded listener bounds the connections, and speaks TLS if there is a certificate when one
// comes.
type bounded struct {
	net.Listener
	server *Server

	mu   sync.Mutex
	all  int
	open map[netip.Addr]int // by where they come from; both guarded by mu
}

// take takes a place for a connection. free gives it back; it is nil if there is none.
func (l *bounded) take(remote net.Addr) (free func()) {
	at, _ := netip.ParseAddrPort(remote.String()) // the zero address for another kind
	from := at.Addr().Unmap().WithZone("")
	if from.Is6() { // a host has all addresses of such a network
		const network = 64
		prefix, _ := from.Prefix(network)
		from = prefix.Addr()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all >= maxConnections || l.open[from] >= maxFromOne {
		return nil
	}
	l.all++
	l.open[from]++
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all--
		if l.open[from]--; l.open[from] == 0 {
			delete(l.open, from)
		}
	})
}

// Accept implements [net.Listener].
func (l *bounded) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		free := l.take(conn.RemoteAddr())
		if free == nil {
			_ = conn.Close() // a stranger's, as far as is known: there is nothing to say
			continue
		}
		conn = &counted{Conn: conn, free: free}
		if cert := l.server.current.Load().Certificate; cert != nil {
			conn = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{*cert}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}})
		}
		return conn, nil
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

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
	"sync/atomic"
	"time"

	"github.com/agentd/agentd/daemon/internal/httplisten"
	"github.com/agentd/agentd/daemon/metrics"
	"github.com/agentd/agentd/internal/otlp"
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

// A Process is what is asked for.
type Process struct {
	Agents []Agent
	// LogsLost is how many lines of the log that the agents share never reached their collector.
	// Nil is none.
	LogsLost func() otlp.Dropped
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
	http     *httplisten.Server
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
func Listen(ctx context.Context, address string, s Settings, log *slog.Logger, of Process) (*Server, error) {
	all := metrics.Process{LogsLost: of.LogsLost}
	for _, a := range of.Agents {
		all.Agents = append(all.Agents, a.Metrics)
	}
	handler, err := metrics.NewHandler(log, all)
	if err != nil {
		return nil, fmt.Errorf("monitoring: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("monitoring: %w; choose another address with --listen or monitoring.listen", err)
	}
	m := &Server{log: log, listener: listener, metrics: handler, profiles: profiles(), probes: probes{agents: of.Agents}}
	next, err := m.check(s)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	m.current.Store(next)
	m.http = httplisten.Serve(listener, &http.Server{
		Handler: m, ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug), // strangers could fill the log
	}, httplisten.Limits{Connections: maxConnections, FromOne: maxFromOne}, s.Certificate)
	return m, nil
}

// Prepare checks what a reload changes. use puts it in force for the requests that follow; where a
// certificate is new, plain connections end.
func (m *Server) Prepare(s Settings) (use func(), err error) {
	next, err := m.check(s)
	if err != nil {
		return nil, err
	}
	return func() {
		m.current.Store(next)
		m.http.Use(s.Certificate)
	}, nil
}

func (m *Server) check(s Settings) (*setting, error) {
	if !loopback(m.listener.Addr()) {
		switch {
		case s.Certificate == nil && !s.Insecure:
			return nil, fmt.Errorf("monitoring: others reach %s: it takes monitoring.tls in agent.yaml, or monitoring.insecure: true where the network itself is trusted", m.listener.Addr())
		case s.Profiles && s.Token == "":
			return nil, fmt.Errorf("monitoring: others reach %s: profiles take monitoring.token in agent.yaml", m.listener.Addr())
		}
	}
	return &setting{Settings: s, digest: sha256.Sum256([]byte(s.Token))}, nil
}

// URL is where the server is.
func (m *Server) URL() string { return m.http.URL() }

// Close ends the server, and cuts off requests that still run after a second, or when ctx ends: a
// profiler asks for thirty, and the rest of a stop waits.
func (m *Server) Close(ctx context.Context) error {
	if m == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	// A profile that somebody reads is no reason for an error.
	if _, err := m.http.Shutdown(ctx); err != nil {
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

package clientapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/agentd/agentd/daemon/internal/callapi"
	"github.com/agentd/agentd/daemon/internal/httplisten"
	"github.com/agentd/agentd/mcpbridge/mcphttp"
	"github.com/agentd/agentd/rpc"
)

// Bounds of what strangers may use. Requests of clients are bounded by [Agent] besides.
const (
	maxHeaderBytes = 16 << 10
	headerTimeout  = 10 * time.Second
	idleTimeout    = 2 * time.Minute
	bodyTimeout    = 30 * time.Second
	refusedTimeout = time.Second // for the rest of the body of a refused request
	writeTimeout   = 30 * time.Second
	// MaxConnections bounds the connections that are open. Further ones are closed at once.
	MaxConnections = 1024
	// MaxFromOne bounds those from one address, so that whoever is there keeps nobody else out. It
	// does not hold on a loopback address, which all clients share, and a proxy may stand before.
	MaxFromOne = 256
)

// An Agent makes the calls of clients.
type Agent interface {
	// Begin counts a request of a client, before its body is read, and says why it is not served.
	// The caller releases it when it has ended.
	Begin(client string) (release func(), err *rpc.Error)
	// Permit says how a call is to be made, or why it is not.
	Permit(ctx context.Context, client string, r *rpc.Request) *rpc.Error
	// RequestAgent makes a call that is permitted.
	RequestAgent(ctx context.Context, r rpc.Request) (*rpc.Result, error)
	// Noted notes the result of a call: one that goes on can be awaited by its client.
	Noted(client string, r *rpc.Request, result *rpc.Result)
	// Await waits for the result of an asynchronous call of the client until ctx ends. To a client
	// the calls of others do not exist.
	Await(ctx context.Context, client, correlationID string) *rpc.Result
}

// Settings are what a reload may change.
type Settings struct {
	// Tokens are those of the clients. At least one.
	Tokens []mcphttp.Token
	// Hosts are the names, besides those of loopback addresses, that the server goes by.
	Hosts []string
	// Certificate is what the server is served with; nil is plain HTTP.
	Certificate *tls.Certificate
	// MaxBodyBytes bounds the body of a request.
	MaxBodyBytes int64
}

// A Server serves the clients of one agent.
type Server struct {
	agent    Agent
	log      *slog.Logger
	listener net.Listener
	http     *httplisten.Server
	current  atomic.Pointer[setting]
	refused  atomic.Int64 // requests that were not let in
	misuses  callapi.Misuses
}

// A setting is what is in force of [Settings].
type setting struct {
	gate *mcphttp.Gate
	cert *tls.Certificate
	body int64
}

func newSetting(s Settings) (*setting, error) {
	gate, err := mcphttp.NewGate(s.Hosts, s.Tokens)
	if err != nil {
		return nil, err
	}
	return &setting{gate, s.Certificate, s.MaxBodyBytes}, nil
}

// Listen listens at an address, and serves there until [Server.Shutdown]. ctx bounds the opening.
func Listen(ctx context.Context, address string, agent Agent, settings Settings, log *slog.Logger) (*Server, error) {
	first, err := newSetting(settings)
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	if err := first.gate.Check(listener.Addr(), first.cert != nil); err != nil {
		return nil, errors.Join(fmt.Errorf("control: %w", err), listener.Close())
	}
	s := &Server{agent: agent, log: log, listener: listener}
	s.current.Store(first)
	s.http = httplisten.Serve(listener, &http.Server{
		Handler: s, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug), // strangers could fill the log
	}, s.limits(), settings.Certificate)
	return s, nil
}

// limits are those of connections. Whose are closed is logged: a client learns no more than that.
func (s *Server) limits() httplisten.Limits {
	limits := httplisten.Limits{Connections: MaxConnections, FromOne: MaxFromOne, Refused: func(from netip.Addr, times int64) {
		s.log.Warn("a connection to the control API is closed: too many are open", "from", from, "times", times)
	}}
	if at, err := netip.ParseAddrPort(s.listener.Addr().String()); err == nil && at.Addr().Unmap().IsLoopback() {
		limits.FromOne = 0
	}
	return limits
}

// Prepare reads what a reload changes. use puts it in force for the requests that follow; where
// a certificate is new, plain connections end.
func (s *Server) Prepare(settings Settings) (use func(), err error) {
	next, err := newSetting(settings)
	if err == nil {
		err = next.gate.Check(s.listener.Addr(), next.cert != nil)
	}
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	return func() {
		s.current.Store(next)
		s.http.Use(settings.Certificate)
	}, nil
}

// URL is where clients find the server.
func (s *Server) URL() string { return s.http.URL() }

// Shutdown takes no more requests, waits for those in progress until ctx ends, and cuts them off
// then.
func (s *Server) Shutdown(ctx context.Context) error {
	cut, err := s.http.Shutdown(ctx)
	if cut != nil {
		cut = fmt.Errorf("control: requests of clients were cut short: %w", cut)
	}
	return errors.Join(cut, err)
}

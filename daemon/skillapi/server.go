package skillapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"github.com/agentd/agentd/daemon/internal/callapi"
	"github.com/agentd/agentd/rpc"
)

// A Caller makes calls.
type Caller interface {
	RequestAgent(context.Context, rpc.Request) (*rpc.Result, error)
}

// Results are those of the agent's asynchronous calls.
type Results interface {
	// Await waits for the result of a call until ctx ends. It refuses the result of a call
	// for another tenant than that of the call that ctx serves.
	Await(ctx context.Context, correlationID string) *rpc.Result
}

// A Config is what a [Server] is made of.
type Config struct {
	// Caller makes the nested calls. Required.
	Caller Caller
	// Results are the results that skills may wait for. Required.
	Results Results
	// Tools serves the Model Context Protocol to skills. The context of its requests has
	// the values of the call, and ends with the call or with the request. Nil serves none.
	Tools http.Handler
	// ModelUsage takes what a call's request to a language model used, by the skill's word. It
	// is called while the call runs, by several goroutines, and returns at once. Nil takes no
	// reports.
	ModelUsage func(*rpc.Invocation, *rpc.ModelUsage)
	// MaxPayloadBytes returns the agent's bound on a payload, of which follows that on the
	// body of a request. Required.
	MaxPayloadBytes func() int
	// Logger is required.
	Logger *slog.Logger
}

// A Server serves the skills of one agent.
type Server struct {
	cfg       Config
	calls     calls
	strangers strangers
	addr      netip.AddrPort
	user      int // of this process
	http      *http.Server
	done      chan error // receives the error of Serve
	misuses   callapi.Misuses
	// foreign counts the connections of other users, see otherUser.
	foreign atomic.Int64
}

// Listen opens a port of the loopback interface and serves the API there until
// [Server.Shutdown]. ctx bounds only the opening.
func Listen(ctx context.Context, cfg Config) (*Server, error) {
	tcp, err := listenLoopback(ctx)
	if err != nil {
		return nil, fmt.Errorf("the API for skills: %w", err)
	}
	addr, _ := netip.ParseAddrPort(tcp.Addr().String())
	s := &Server{cfg: cfg, addr: addr, user: os.Geteuid(), done: make(chan error, 1)}
	s.SetUsers(s.user)
	s.http = &http.Server{
		Handler: s, ConnContext: withConn, MaxHeaderBytes: 16 << 10,
		// There is no WriteTimeout: a response may take as long as the longest call.
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelDebug), // strangers could fill the log
	}
	// One request each: nobody holds a connection who is not asking for something.
	s.http.SetKeepAlivesEnabled(false)
	// Serve returns when Shutdown closes the listener; Shutdown receives its error.
	go func() {
		s.done <- s.http.Serve(&listener{TCPListener: tcp, strangers: &s.strangers, serves: s.calls.serves, refused: s.otherUser})
	}()
	return s, nil
}

// listenLoopback listens on a port that the system chooses.
func listenLoopback(ctx context.Context) (*net.TCPListener, error) {
	var config net.ListenConfig
	config.SetMultipathTCP(false) // a subflow does not say whose it is
	var errs []error
	for _, at := range []string{"127.0.0.1:0", "[::1]:0"} { // a host may have one of them alone
		l, err := config.Listen(ctx, "tcp", at)
		if tcp, ok := l.(*net.TCPListener); ok && err == nil {
			return tcp, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// URL is where the server is, such as http://127.0.0.1:4711: the AGENTD_URL of skills.
func (s *Server) URL() string { return "http://" + s.addr.String() }

// Addr is the address that the server listens on.
func (s *Server) Addr() netip.AddrPort { return s.addr }

// Register lets the holder of the token act for a running call, whose context ctx is,
// until release. The call's skill runs as the user of this process. It is safe for
// concurrent use.
func (s *Server) Register(ctx context.Context) (token string, release func()) {
	return s.As(s.user).Register(ctx)
}

// SetUsers sets the users that skills run as. Connections of others are cut off, but for
// those of calls that still run. Before it, skills run as the user of this process.
func (s *Server) SetUsers(users ...int) { s.calls.setUsers(users) }

// A User registers the calls of skills that run as one user.
type User struct {
	server *Server
	user   int
}

// As returns what registers the calls of skills that run as a user.
func (s *Server) As(user int) *User { return &User{server: s, user: user} }

// Register is [Server.Register] for a call whose skill runs as the user. Processes of
// another user cannot use its token, where the system says whose a connection is.
func (u *User) Register(ctx context.Context) (token string, release func()) {
	return u.server.calls.register(ctx, u.user)
}

// Shutdown stops accepting requests, waits for those in progress until ctx ends, and then
// cuts them off.
func (s *Server) Shutdown(ctx context.Context) error {
	// net/http waits 5 s for connections that have not said anything.
	s.strangers.cut()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("the API for skills: requests were cut short: %w", err), s.http.Close())
	}
	if serr := <-s.done; !errors.Is(serr, http.ErrServerClosed) {
		err = errors.Join(err, serr)
	}
	return err
}

package daemon

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/daemon/internal/httplisten"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/secretref"
	"github.com/agentd/agentd/mcpbridge"
	"github.com/agentd/agentd/mcpbridge/mcphttp"
	"github.com/agentd/agentd/rpc"
)

// mcpCloseTimeout bounds the end of a server that a reload has replaced, or that nobody
// holds open any more.
const mcpCloseTimeout = 10 * time.Second

// An mcpServer serves the face over HTTP at one address.
type mcpServer struct {
	face     *mcpFace
	listen   string // as it was asked for
	listener net.Listener
	http     *httplisten.Server

	// auth returns who is let in by the files, and style how tools are shown. Both follow
	// reloads.
	auth  func(mcpView) (mcphttp.Auth, error)
	style func() mcpStyle

	current atomic.Pointer[mcpEndpoint]
	opened  mcphttp.Auth // who was let in when it was opened
}

// maxMCPConnections bounds the connections to a server that are open: HTTP/1.1 takes one for each
// call and each stream. Further ones are closed at once.
const maxMCPConnections = 2048

// An mcpEndpoint is what a reload may change about a server.
type mcpEndpoint struct {
	handler *mcphttp.Handler
	cert    *tls.Certificate // nil for plain HTTP
	config  endpointConfig   // what the handler was made of
}

// An endpointConfig is what of the files makes an endpoint another one. Tokens do not.
type endpointConfig struct {
	hosts, origins []string
	oauth          *fleet.MCPOAuth
	body           int64 // bytes
}

// newEndpoint makes an endpoint of the files, and reports what is wrong with them.
func (s *mcpServer) newEndpoint(v mcpView) (*mcpEndpoint, mcphttp.Auth, error) {
	m := &v.member.Agent.MCP
	auth, err := s.auth(v)
	if err != nil {
		return nil, auth, err
	}
	body := int64(v.member.Agent.Limits.MaxPayloadBytes) + mcpBodyRoom
	e := &mcpEndpoint{config: endpointConfig{m.Hosts, m.Origins, m.OAuth, body}}
	if m.TLS != nil {
		cert, err := tls.LoadX509KeyPair(m.TLS.Cert, m.TLS.Key)
		if err != nil {
			return nil, auth, fmt.Errorf("mcp.tls: %w", err)
		}
		e.cert = &cert
	}
	e.handler, err = mcphttp.New(mcphttp.Config{
		Server: s.server, Guards: &s.face.guards, Auth: auth, Hosts: m.Hosts, Origins: m.Origins, Logger: s.face.d.log,
		Limits: mcphttp.Limits{MaxPending: fleet.MostMCPPending, MaxBodyBytes: body},
	})
	return e, auth, err
}

// mcpBodyRoom is what surrounds a payload in a message of the protocol.
const mcpBodyRoom = 64 << 10

// server is the library's server of a client.
func (s *mcpServer) server(client string) (*mcp.Server, error) {
	b, err := s.face.bridge(s.style())
	if err != nil {
		return nil, err
	}
	return b.Server(mcpbridge.Client{Name: client})
}

// open listens at an address, and serves there until close.
func (s *mcpServer) open(ctx context.Context, v mcpView) error {
	e, auth, err := s.newEndpoint(v)
	if err != nil {
		return err
	}
	s.opened = auth
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.listen)
	if err != nil {
		return errors.Join(fmt.Errorf("mcp: %w", err), e.handler.Close(ctx))
	}
	if err := e.handler.Check(listener.Addr(), e.cert != nil); err != nil {
		return errors.Join(fmt.Errorf("mcp: %w", err), listener.Close(), e.handler.Close(ctx))
	}
	s.current.Store(e)
	s.listener = listener
	server := mcphttp.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.current.Load().handler.ServeHTTP(w, r) }), s.face.d.log)
	s.http = httplisten.Serve(listener, server, httplisten.Limits{Connections: maxMCPConnections}, e.cert)
	return nil
}

// url is where clients find the server.
func (s *mcpServer) url() string {
	scheme := "http"
	if e := s.current.Load(); e.cert != nil {
		scheme = "https"
	}
	return scheme + "://" + s.listener.Addr().String() + s.current.Load().handler.Path()
}

// reload prepares what files change about a server. use puts it in force; abandon does not.
func (s *mcpServer) reload(v mcpView) (use, abandon func(), err error) {
	next, auth, err := s.newEndpoint(v)
	if err != nil {
		return nil, nil, err
	}
	if err := next.handler.Check(s.listener.Addr(), next.cert != nil); err != nil {
		s.face.closeLater(next.handler)
		return nil, nil, fmt.Errorf("mcp: %w", err)
	}
	abandon = func() { s.face.closeLater(next.handler) }
	return func() {
		before := s.current.Load()
		if reflect.DeepEqual(before.config, next.config) && before.handler.SetAuth(auth) == nil {
			// The sessions of clients whose tokens are as they were go on.
			s.put(&mcpEndpoint{handler: before.handler, cert: next.cert, config: next.config})
			abandon()
			return
		}
		s.put(next)
		s.face.retire(before.handler, before.handler, auth)
	}, abandon, nil
}

// put puts an endpoint in force.
func (s *mcpServer) put(e *mcpEndpoint) {
	s.current.Store(e)
	s.http.Use(e.cert)
}

// A closer is a server, or an endpoint of one.
type closer interface{ Close(context.Context) error }

// closeLater ends what nobody uses, or is to use any more, with the calls that run there.
func (f *mcpFace) closeLater(c closer) { f.leaving.begin(func() { f.shut(c) }) }

// shut ends a server or an endpoint.
func (f *mcpFace) shut(c closer) {
	ctx, cancel := context.WithTimeout(context.Background(), mcpCloseTimeout)
	defer cancel()
	if err := c.Close(ctx); err != nil {
		f.d.log.Warn("an MCP server did not close in time", "error", err)
	}
}

// retire ends what a reload has replaced, after the calls that run at its endpoint, however long
// they may take, or with the agent. Those of clients that the files now let in no more end at once.
func (f *mcpFace) retire(c closer, endpoint *mcphttp.Handler, now mcphttp.Auth) {
	if endpoint.SetAuth(now) != nil { // they let nobody in
		f.closeLater(c)
		return
	}
	f.mu.Lock()
	f.retired[endpoint] = struct{}{}
	f.mu.Unlock()
	f.leaving.begin(func() {
		ctx, cancel := context.WithTimeout(f.ctx, rpc.MaxTimeout)
		defer cancel()
		if s, ok := c.(*mcpServer); ok {
			_ = s.http.StopAccepting() // whoever connects comes to the other one; Close reports what matters
		}
		endpoint.Finish(ctx)
		f.shut(c)
		f.mu.Lock()
		delete(f.retired, endpoint)
		f.mu.Unlock()
	})
}

// Close ends all sessions and calls, and stops listening.
func (s *mcpServer) Close(ctx context.Context) error {
	err := s.current.Load().handler.Close(ctx) // first: Shutdown waits for streams
	cut, serr := s.http.Shutdown(ctx)
	return errors.Join(err, cut, serr)
}

// fileAuth is who is let in by the files alone.
func (f *mcpFace) fileAuth(v mcpView) (auth mcphttp.Auth, err error) {
	m := &v.member.Agent.MCP
	variables, err := v.fleet.EnvFileVariables(v.member)
	if err != nil {
		return auth, err
	}
	if m.Open {
		auth.Anonymous = fleet.AnonymousMCPClient
	}
	for _, c := range m.Clients {
		if c.Token == "" {
			continue
		}
		secret, err := secretref.Resolve(c.Token, lookup(variables))
		if err != nil {
			return auth, fmt.Errorf("%s:%d: the token of the MCP client %s: %w", c.Position.File, c.Position.Line, c.Name, err)
		}
		auth.Tokens = append(auth.Tokens, mcphttp.Token{Client: c.Name, Secret: secret})
	}
	if o := m.OAuth; o != nil {
		auth.OAuth = &mcphttp.OAuth{
			Resource: o.Resource, Audiences: o.Audiences, Issuer: o.Issuer, KeysURL: o.Keys, Scopes: o.Scopes,
		}
		for _, c := range m.Clients {
			if c.Subject != "" || c.ClientID != "" {
				auth.OAuth.Clients = append(auth.OAuth.Clients, mcphttp.Mapping{Client: c.Name, Subject: c.Subject, ClientID: c.ClientID})
			}
		}
	}
	return auth, nil
}

// openMCP opens the server that the files ask for.
func (d *Daemon) openMCP(ctx context.Context) error {
	v := mcpBackend{d.mcp, nil}.files()
	if v.member.Agent.MCP.Listen == "" {
		return nil
	}
	s := d.mcp.permanent(v.member.Agent.MCP.Listen)
	if err := s.open(ctx, v); err != nil {
		return err
	}
	d.mcp.keep(s, s.opened)
	d.log.Info("MCP clients are served", "url", s.url())
	return nil
}

// permanent is the server that the files ask for at an address, not yet open.
func (f *mcpFace) permanent(listen string) *mcpServer {
	return &mcpServer{face: f, listen: listen, auth: f.fileAuth, style: func() mcpStyle { return styleOf(&f.d.Member().Agent.MCP) }}
}

// keep makes a server the permanent one, and retires the one before, at which auth still holds. An
// agent that stops takes no other: a reload may still run then.
func (f *mcpFace) keep(s *mcpServer, auth mcphttp.Auth) {
	f.mu.Lock()
	end := s
	if !f.closed {
		end, f.own = f.own, s
	}
	f.mu.Unlock()
	if end != nil {
		f.retire(end, end.current.Load().handler, auth)
	}
}

// An mcpReload is what a reload changes about the servers.
type mcpReload struct{ use, abandon []func() }

func (r *mcpReload) each(all []func()) {
	for _, f := range all {
		f()
	}
}

// prepare reads what files change about the servers, and refuses what could not be served.
func (f *mcpFace) prepare(v mcpView) (r mcpReload, err error) {
	defer func() {
		if err != nil {
			r.each(r.abandon)
			r = mcpReload{}
		}
	}()
	if err := f.check(v); err != nil {
		return r, err
	}
	listen := v.member.Agent.MCP.Listen
	f.mu.Lock()
	own, servers := f.own, slices.Clone(f.held)
	f.mu.Unlock()
	switch {
	case own != nil && own.listen == listen:
		servers = append(servers, own)
	case listen != "":
		next := f.permanent(listen)
		if err := next.open(f.ctx, v); err != nil {
			return r, err
		}
		r.use = append(r.use, func() { f.keep(next, next.opened); f.d.log.Info("MCP clients are served", "url", next.url()) })
		r.abandon = append(r.abandon, func() { f.closeLater(next) })
	case own != nil:
		auth, err := f.fileAuth(v)
		if err != nil {
			return r, err
		}
		r.use = append(r.use, func() { f.keep(nil, auth) })
	}
	for _, s := range servers {
		use, abandon, err := s.reload(v)
		if err != nil {
			return r, err
		}
		r.use, r.abandon = append(r.use, use), append(r.abandon, abandon)
	}
	return r, nil
}

// MCPListen implements [control.MCP].
func (d *Daemon) MCPListen(ctx context.Context, o control.MCPListenOptions) (*control.MCPListening, func(), error) {
	f := d.mcp
	if !d.ready.Load() {
		return nil, nil, errNotReady
	}
	d.reloading.Lock() // a reload must know of the server, or have come before its files are read
	defer d.reloading.Unlock()
	s := &mcpServer{face: f, listen: cmp.Or(o.Address, "127.0.0.1:0"), auth: f.fileAuth}
	out := &control.MCPListening{}
	v := mcpBackend{f, nil}.files()
	m := &v.member.Agent.MCP
	if o.Client != "" || o.Open || m.OAuth == nil && !slices.ContainsFunc(m.Clients, func(c fleet.MCPClient) bool { return c.Token != "" }) {
		// The files let nobody in over HTTP, or the operator wants this one client: it is
		// let in by a token that lives as long as the server, or, if the operator says so,
		// without.
		c, _, err := f.admit(o.MCPOptions)
		if err != nil {
			return nil, nil, err
		}
		auth := mcphttp.Auth{Anonymous: c.Name}
		if out.Client = c.Name; !o.Open {
			out.Token = rand.Text() + rand.Text()
			auth = mcphttp.Auth{Tokens: []mcphttp.Token{{Client: c.Name, Secret: out.Token}}}
		}
		s.auth = func(mcpView) (mcphttp.Auth, error) { return auth, nil }
	}
	style, err := f.styleFor(o.MCPOptions)
	if err != nil {
		return nil, nil, err
	}
	if _, err := f.bridge(style()); err != nil {
		return nil, nil, err
	}
	s.style = style
	if err := s.open(ctx, v); err != nil {
		return nil, nil, err
	}
	out.URL = s.url()
	f.mu.Lock()
	closed := f.closed
	if !closed {
		f.held = append(f.held, s)
	}
	f.mu.Unlock()
	if closed {
		return nil, nil, errors.Join(errNotReady, s.Close(ctx))
	}
	d.log.Info("MCP clients are served", "url", out.URL, "client", out.Client, "token", !o.Open)
	return out, func() { f.release(s) }, nil
}

// MCPEnded implements [control.MCP].
func (d *Daemon) MCPEnded() <-chan struct{} { return d.mcp.ctx.Done() }

// release closes a server that nobody holds open any more.
func (f *mcpFace) release(s *mcpServer) {
	f.mu.Lock()
	at := slices.Index(f.held, s)
	if at >= 0 {
		f.held = slices.Delete(f.held, at, at+1)
	}
	f.mu.Unlock()
	if at >= 0 { // close has not taken it
		f.closeLater(s)
	}
}

// servers takes all servers, for close.
func (f *mcpFace) servers() []*mcpServer {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.serving()
	f.held, f.own = nil, nil
	return all
}

// serving are all servers, that of the files first. The caller holds the lock.
func (f *mcpFace) serving() (all []*mcpServer) {
	if f.own != nil {
		all = append(all, f.own)
	}
	return append(all, f.held...)
}

// urls are where the face is served over HTTP.
func (f *mcpFace) urls() (all []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.serving() {
		all = append(all, s.url())
	}
	return all
}

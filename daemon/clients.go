package daemon

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/daemon/internal/clientapi"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/secretref"
	"github.com/agentd/agentd/mcpbridge/mcphttp"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
)

// A controlFace serves the control API to programs that are no operators: clients, each with a
// token. It is there in every agent, and listens where agent.yaml says so. d, limits, ctx and cut
// are set before it is used.
type controlFace struct {
	d       *Daemon
	limits  *policy.RateLimiter
	ctx     context.Context // of the servers that a reload has replaced
	cut     context.CancelFunc
	leaving departures // of these

	mu       sync.Mutex
	server   *clientapi.Server    // nil for none; guarded by mu
	listen   string               // of the server, as it was asked for; guarded by mu
	pending  map[string]int       // calls and waits by client; guarded by mu
	own      map[string]*ownCalls // asynchronous calls by client; guarded by mu
	draining bool                 // guarded by mu
}

var _ clientapi.Agent = (*controlFace)(nil)

// maxOwnCalls bounds the asynchronous calls that are kept in mind of one client. The audit log
// knows about older ones.
const maxOwnCalls = 4096

// ownCalls are the asynchronous calls of a client, by correlation id.
type ownCalls struct {
	known  map[string]struct{}
	inTurn []string
}

// openClients serves clients where the files say so.
func (d *Daemon) openClients(ctx context.Context) error {
	f, m := d.cfg.Fleet, d.Member()
	if m.Agent.Control.Listen == "" {
		return nil
	}
	settings, err := controlSettings(f, m)
	if err != nil {
		return err
	}
	server, err := clientapi.Listen(ctx, m.Agent.Control.Listen, &d.clients, settings, d.log)
	if err != nil {
		return err
	}
	d.clients.put(server, m.Agent.Control.Listen)
	return nil
}

// controlSettings are those of the server in a member's files.
func controlSettings(f *fleet.Fleet, m *fleet.Member) (s clientapi.Settings, err error) {
	c := &m.Agent.Control
	variables, err := f.EnvFileVariables(m)
	if err != nil {
		return s, err
	}
	// JSON may spell a payload with escapes and white space.
	s = clientapi.Settings{Hosts: c.Hosts, MaxBodyBytes: min(4*int64(m.Agent.Limits.MaxPayloadBytes)+mcpBodyRoom, control.MaxRequestBytes)}
	for _, one := range c.Clients {
		secret, err := secretref.Resolve(one.Token, lookup(variables))
		if err != nil {
			return s, fmt.Errorf("%s:%d: the token of the client %s: %w", one.Position.File, one.Position.Line, one.Name, err)
		}
		s.Tokens = append(s.Tokens, mcphttp.Token{Client: one.Name, Secret: secret})
	}
	if c.TLS != nil {
		cert, err := tls.LoadX509KeyPair(c.TLS.Cert, c.TLS.Key)
		if err != nil {
			return s, fmt.Errorf("control.tls: %w", err)
		}
		s.Certificate = &cert
	}
	return s, nil
}

// put makes a server the one of the agent, and ends the one before. Nil is none. An agent that
// stops takes no other: a reload may still run then.
func (f *controlFace) put(s *clientapi.Server, listen string) {
	f.mu.Lock()
	end := s
	if !f.draining {
		end, f.server, f.listen = f.server, s, listen
	}
	f.mu.Unlock()
	if s != nil && s != end {
		f.d.log.Info("clients of the control API are served", "url", s.URL())
	}
	if end != nil {
		f.closeLater(end)
	}
}

// closeLater ends a server that is not, or no longer, the agent's.
func (f *controlFace) closeLater(s *clientapi.Server) { f.leaving.begin(func() { f.shut(s) }) }

// shut ends a server after its calls, however long they may take, or with the agent.
func (f *controlFace) shut(s *clientapi.Server) {
	ctx, cancel := context.WithTimeout(f.ctx, rpc.MaxTimeout)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		f.d.log.Warn("a server of the control API did not close in time", "error", err)
	}
}

// prepare reads what a reload changes, and refuses what could not be served.
func (f *controlFace) prepare(of *fleet.Fleet, m *fleet.Member, r *mcpReload) error {
	listen := m.Agent.Control.Listen
	f.mu.Lock()
	server, at := f.server, f.listen
	f.mu.Unlock()
	if listen == "" {
		if server != nil {
			r.use = append(r.use, func() { f.put(nil, "") })
		}
		return nil
	}
	settings, err := controlSettings(of, m)
	if err != nil {
		return err
	}
	if server != nil && at == listen {
		use, err := server.Prepare(settings)
		if err == nil {
			r.use = append(r.use, use)
		}
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), resolveTimeout)
	defer cancel()
	next, err := clientapi.Listen(ctx, listen, f, settings, f.d.log)
	if err != nil {
		return err
	}
	r.use = append(r.use, func() { f.put(next, listen) })
	r.abandon = append(r.abandon, func() { f.closeLater(next) })
	return nil
}

// close ends all servers. Calls that run have half of the time that is left: they must not use up
// that of the calls which others have made to the agent.
func (f *controlFace) close(ctx context.Context) error {
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/2)
		defer cancel()
	}
	f.mu.Lock()
	server := f.server
	f.draining, f.server = true, nil
	f.mu.Unlock()
	defer f.cut()
	defer context.AfterFunc(ctx, f.cut)() // the replaced ones have no more time than this one
	var err error
	if server != nil {
		err = server.Shutdown(ctx)
	}
	f.leaving.wait()
	return err
}

// status lists the clients that have calls, by name, and where they are served.
func (f *controlFace) status() (clients []control.MCPClient, urls []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(f.pending)) {
		clients = append(clients, control.MCPClient{Client: name, Pending: f.pending[name]})
	}
	if f.server != nil {
		urls = []string{f.server.URL()}
	}
	return clients, urls
}

// Begin implements [clientapi.Agent].
func (f *controlFace) Begin(client string) (release func(), refused *rpc.Error) {
	c := &f.d.Member().Agent.Control
	settings, _ := c.Client(client)
	if !f.d.ready.Load() {
		return nil, rpc.NewError(rpc.CodeBusy, errNotReady, "the agent does not accept calls yet, or no longer")
	}
	most := c.MaxPending
	if settings.MaxPending > 0 {
		most = settings.MaxPending
	}
	if !f.begin(client, most) {
		return nil, rpc.NewError(rpc.CodeBusy, nil, "%d calls of the client %s run or wait already, or the agent is stopping", most, client)
	}
	return func() { f.end(client) }, nil
}

// Permit implements [clientapi.Agent]. It completes a request, unless the client may not make it at
// all. Whom it may call is judged with the call.
func (f *controlFace) Permit(ctx context.Context, client string, r *rpc.Request) *rpc.Error {
	settings, listed := f.d.Member().Agent.Control.Client(client)
	if !listed { // a reload has just taken it from the files
		return rpc.NewError(rpc.CodeDenied, nil, "permission denied: agent.yaml no longer lists the client %s", client)
	}
	r.Origin = policy.OriginClient(settings.Name)
	if r.IdempotencyKey != "" {
		// Callees know the agent alone. By its own key no client must get what was answered to
		// another.
		r.IdempotencyKey = r.Origin + "/" + r.IdempotencyKey
	}
	if refused := f.d.limitClient(ctx, f.limits, r.Origin, settings.Name, settings.RateLimit, r); refused != nil {
		return refused
	}
	if !mayCallFor(settings.Tenants, r.TenantID) {
		err := f.d.audit.RecordRefusal(ctx, rpc.Refusal{
			Time: time.Now(), Role: rpc.RoleCaller, Code: rpc.CodeDenied, Capability: r.Capability, Peer: envelope.AddressFor(string(r.To)),
			SessionID: r.SessionID, Origin: r.Origin, Decision: policy.Decision{Reason: policy.NoClientTenant},
		})
		if err != nil {
			return rpc.NewError(rpc.CodeAuditFailed, err, "the refusal of the call could not be recorded").Explain()
		}
		return rpc.NewError(rpc.CodeDenied, nil, "permission denied: tenants of the client %s in agent.yaml do not list the tenant of the call", settings.Name)
	}
	return nil
}

// mayCallFor reports whether a client may make a call for a tenant, "" for none.
func mayCallFor(tenants []string, tenant string) bool {
	switch {
	case tenants == nil:
		return tenant == ""
	case tenant == "":
		return slices.Contains(tenants, envelope.NoTenant)
	}
	return tenant != envelope.NoTenant && slices.Contains(tenants, tenant) // no tenant has that name
}

// begin counts a call or a wait of a client. It returns false where there are as many as may be.
func (f *controlFace) begin(client string, most int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.draining || f.pending[client] >= most {
		return false
	}
	if f.pending == nil {
		f.pending = map[string]int{}
	}
	f.pending[client]++
	return true
}

func (f *controlFace) end(client string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pending[client]--; f.pending[client] == 0 {
		delete(f.pending, client)
	}
}

// RequestAgent implements [clientapi.Agent].
func (f *controlFace) RequestAgent(ctx context.Context, r rpc.Request) (*rpc.Result, error) {
	return f.d.client.RequestAgent(ctx, r)
}

// Noted implements [clientapi.Agent].
func (f *controlFace) Noted(client string, r *rpc.Request, result *rpc.Result) {
	if r.Mode != rpc.ModeAsync && !result.Queued || result.CorrelationID == "" {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.own == nil {
		f.own = map[string]*ownCalls{}
	}
	own := f.own[client]
	if own == nil {
		own = &ownCalls{known: map[string]struct{}{}}
		f.own[client] = own
	}
	own.known[result.CorrelationID] = struct{}{}
	if own.inTurn = append(own.inTurn, result.CorrelationID); len(own.inTurn) > maxOwnCalls {
		delete(own.known, own.inTurn[0])
		own.inTurn = own.inTurn[1:]
	}
}

// Await implements [clientapi.Agent].
func (f *controlFace) Await(ctx context.Context, client, correlationID string) *rpc.Result {
	if !f.isOwn(ctx, client, correlationID) {
		err := rpc.NewError(rpc.CodeInvalidRequest, nil, "%s has made no asynchronous call %s for this client", f.d.Member().Address, truncateName(correlationID))
		return &rpc.Result{Status: err.Code.Status(), CorrelationID: truncateName(correlationID), Error: err}
	}
	result, _ := f.d.client.Await(ctx, correlationID) // the error is in the result
	return result
}

// isOwn reports whether an asynchronous call is the client's: by what is kept in mind, or by the
// record of it, which outlives the process.
func (f *controlFace) isOwn(ctx context.Context, client, correlationID string) bool {
	f.mu.Lock()
	own := f.own[client]
	known := false
	if own != nil {
		_, known = own.known[correlationID]
	}
	f.mu.Unlock()
	if known {
		return true
	}
	for entry, err := range f.d.audit.log.Query(ctx, auditchain.Filter{Correlation: correlationID, Limit: maxCallRecords}) {
		if err != nil {
			return false
		}
		var body struct{ Origin string }
		if entry.Kind == auditchain.KindRPCCall && json.Unmarshal(entry.Body, &body) == nil && body.Origin == policy.OriginClient(client) {
			return true
		}
	}
	return false
}

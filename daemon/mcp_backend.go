package daemon

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/mcpbridge"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/registry/peers"
	"github.com/agentd/agentd/rpc"
)

// An mcpBackend is the agent as its MCP clients use it.
type mcpBackend struct {
	*mcpFace
	// view is what to look at in place of the files in force, or nil.
	view *mcpView
}

// An mcpView is what decides which tools there are.
type mcpView struct {
	fleet  *fleet.Fleet
	member *fleet.Member
	rules  *policy.CallerRules
}

var (
	_ mcpbridge.Backend   = mcpBackend{}
	_ mcpbridge.Awaiter   = mcpBackend{}
	_ mcpbridge.Canceller = mcpBackend{}
	_ mcpbridge.Mapper    = mcpBackend{}
	_ mcpbridge.Recorder  = mcpBackend{}
)

func (b mcpBackend) files() mcpView {
	if b.view != nil {
		return *b.view
	}
	return mcpView{b.d.loaded.Load(), b.d.Member(), b.d.permissions.caller.Load()}
}

// Callables implements [mcpbridge.Backend]. A client that a reload has taken from the files
// may keep its stream; there is nothing left for it there.
func (b mcpBackend) Callables(c mcpbridge.Client) ([]mcpbridge.Callable, error) {
	v := b.files()
	if !v.member.Agent.MCP.Serves(c.Name) {
		return nil, nil
	}
	var all []mcpbridge.Callable
	for _, p := range peers.Callable(v.fleet, v.member, v.rules) {
		for _, offered := range p.Capabilities {
			decision := v.rules.DecideFor(c.String(), p.Address, offered.Name)
			asks := decision.Reason == policy.AskRule
			if !decision.Allowed && !asks {
				continue
			}
			all = append(all, mcpbridge.Callable{Address: p.Address, Capability: b.described(p.Address, offered), Asks: asks})
		}
	}
	return all, nil
}

// described is a capability with what its model has to know besides: that calls are refused
// because its contract has drifted. It stays listed, since it is a call that finds out when
// that has ended.
func (b mcpBackend) described(peer envelope.Address, c *capability.Capability) *capability.Capability {
	if b.d.gate.Refused(peer, c.Name) == nil {
		return c
	}
	drifted := *c
	if drifted.Description != "" {
		drifted.Description += " "
	}
	drifted.Description += "(Calls are refused at present: " + peer.ID() + " serves another contract than the one that is declared here.)"
	return &drifted
}

// RequestAgent implements [mcpbridge.Backend]. The limits of the client come first; the rest
// is the path of every call.
func (b mcpBackend) RequestAgent(ctx context.Context, c mcpbridge.Client, r rpc.Request) (*rpc.Result, error) {
	r.Origin = c.String()
	if r.IdempotencyKey != "" {
		// Callees know the agent alone. By its own key no client must get what was answered
		// to another.
		r.IdempotencyKey = c.String() + "/" + r.IdempotencyKey
	}
	if err := b.take(ctx, c, &r); err != nil {
		err.DetectedBy = b.d.Member().Address
		return nil, err
	}
	defer b.free(c.Name)
	return b.d.client.RequestAgent(ctx, r)
}

// take counts a call of a client, or says why it is not made.
func (b mcpBackend) take(ctx context.Context, c mcpbridge.Client, r *rpc.Request) *rpc.Error {
	m := &b.d.Member().Agent.MCP
	if !m.Serves(c.Name) {
		return errUnlisted(c)
	}
	settings, _ := m.Client(c.Name)
	most := m.MaxPending
	if settings.MaxPending > 0 {
		most = settings.MaxPending
	}
	b.mu.Lock()
	switch {
	case b.draining:
		b.mu.Unlock()
		return rpc.NewError(rpc.CodeBusy, nil, "the agent is stopping")
	case b.pending[c.Name] >= most:
		b.mu.Unlock()
		return rpc.NewError(rpc.CodeBusy, nil, "%d calls of the client %s run or wait already", most, c.Name)
	}
	b.pending[c.Name]++
	b.mu.Unlock()
	if err := b.limit(ctx, c, settings.RateLimit, r); err != nil {
		b.free(c.Name)
		return err
	}
	return nil
}

func errUnlisted(c mcpbridge.Client) *rpc.Error {
	return rpc.NewError(rpc.CodeDenied, nil, "permission denied: agent.yaml no longer lists the client %s", c.Name)
}

// limit counts a call against the rate limit of its client.
func (b mcpBackend) limit(ctx context.Context, c mcpbridge.Client, limit *capability.RateLimit, r *rpc.Request) *rpc.Error {
	return b.d.limitClient(ctx, b.limits, c.String(), c.Name, limit, r)
}

// limitClient counts a call against the rate limit of the client that has asked for it, which is
// named by its origin in records, and by its name to itself.
func (d *Daemon) limitClient(ctx context.Context, limits *policy.RateLimiter, origin, name string, limit *capability.RateLimit, r *rpc.Request) *rpc.Error {
	now := time.Now()
	quota := limits.Take(envelope.Address(origin), "", &capability.Capability{RateLimit: limit}, now)
	if quota.Allowed {
		return nil
	}
	if quota.Report { // one record for a series of refusals, or a flood would fill the disk
		err := d.audit.RecordRefusal(ctx, rpc.Refusal{
			Time: now, Role: rpc.RoleCaller, Code: rpc.CodeRateLimited, Capability: r.Capability, Peer: envelope.AddressFor(string(r.To)),
			TenantID: r.TenantID, SessionID: r.SessionID, Origin: origin, Quota: quota,
		})
		if err != nil {
			return rpc.NewError(rpc.CodeAuditFailed, err, "the refusal of the call could not be recorded").Explain()
		}
	}
	err := rpc.NewError(rpc.CodeRateLimited, nil, "the client %s makes more than %d calls per %s; the next may come in %s", name, limit.Requests, limit.Period, quota.RetryAfter.Round(time.Millisecond))
	err.RetryIn = quota.RetryAfter
	return err
}

// free counts the end of a call.
func (f *mcpFace) free(client string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pending[client]--; f.pending[client] == 0 {
		delete(f.pending, client)
	}
	if f.draining && len(f.pending) == 0 && f.idle != nil {
		select {
		case <-f.idle:
		default:
			close(f.idle)
		}
	}
}

// Await implements [mcpbridge.Awaiter].
func (b mcpBackend) Await(ctx context.Context, c mcpbridge.Client, correlationID string) (*rpc.Result, error) {
	if !b.d.Member().Agent.MCP.Serves(c.Name) {
		return nil, errUnlisted(c)
	}
	return b.d.client.Await(ctx, correlationID)
}

// Cancel implements [mcpbridge.Canceller].
func (b mcpBackend) Cancel(ctx context.Context, c mcpbridge.Client, correlationID string) error {
	if !b.d.Member().Agent.MCP.Serves(c.Name) {
		return errUnlisted(c)
	}
	return b.d.client.Cancel(ctx, correlationID)
}

// A fleetMap is what a client sees of the fleet: whom it may call, and for what.
type fleetMap struct {
	Fleet  string           `json:"fleet"`
	Agent  envelope.Address `json:"agent"` // in whose name it calls
	Client string           `json:"client"`
	Peers  []mappedPeer     `json:"peers"`
}

type mappedPeer struct {
	Agent        envelope.Address   `json:"agent"`
	Description  string             `json:"description,omitempty"`
	Capabilities []mappedCapability `json:"capabilities"`
}

type mappedCapability struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	// Asks is set where a person decides about each call.
	Asks bool `json:"needsApproval,omitempty"`
}

// FleetMap implements [mcpbridge.Mapper].
func (b mcpBackend) FleetMap(_ context.Context, c mcpbridge.Client) (json.RawMessage, error) {
	callables, err := b.Callables(c)
	if err != nil {
		return nil, err
	}
	v := b.files()
	m := fleetMap{Fleet: v.fleet.Name, Agent: v.member.Address, Client: c.String(), Peers: []mappedPeer{}}
	for _, callable := range callables {
		if n := len(m.Peers); n == 0 || m.Peers[n-1].Agent != callable.Address {
			peer := mappedPeer{Agent: callable.Address}
			if member, ok := v.fleet.Member(callable.Address.ID()); ok && member.Address == callable.Address {
				peer.Description = member.Agent.Description
			}
			m.Peers = append(m.Peers, peer)
		}
		p := &m.Peers[len(m.Peers)-1]
		p.Capabilities = append(p.Capabilities, mappedCapability{callable.Capability.Name, callable.Capability.Title, callable.Capability.Description, callable.Asks})
	}
	return json.Marshal(m)
}

// maxCallRecords bounds the records that are shown of one call. It has a handful.
const maxCallRecords = 100

// Records implements [mcpbridge.Recorder]. A captured payload is for the operator alone.
func (b mcpBackend) Records(ctx context.Context, c mcpbridge.Client, correlationID string) (records json.RawMessage, ok bool, err error) {
	if correlationID == "" || !b.d.Member().Agent.MCP.Serves(c.Name) {
		return nil, false, nil
	}
	type shown struct {
		Number int64           `json:"number"`
		Time   time.Time       `json:"time"`
		Kind   auditchain.Kind `json:"kind"`
		Body   json.RawMessage `json:"body"`
	}
	var all []shown
	for entry, err := range b.d.audit.log.Query(ctx, auditchain.Filter{Correlation: correlationID, NotKinds: []auditchain.Kind{auditchain.KindPayloadCapture}, Limit: maxCallRecords}) {
		if err != nil {
			return nil, false, err
		}
		var body struct{ Origin string }
		if entry.Kind == auditchain.KindRPCCall && json.Unmarshal(entry.Body, &body) == nil && body.Origin == c.String() {
			ok = true // the client's own call; those of others do not exist for it
		}
		all = append(all, shown{entry.Seq, entry.Time, entry.Kind, entry.Body})
	}
	if !ok {
		return nil, false, nil
	}
	records, err = json.Marshal(all)
	return records, err == nil, err
}

package daemon

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/drift"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/idempotency"
	"github.com/agentd/agentd/skill"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats"
	"github.com/agentd/agentd/transport/nats/natsauth"
	"github.com/agentd/agentd/transport/nats/quota"
)

// openPolicies reads who may call whom, and starts the access log.
func (d *Daemon) openPolicies() error {
	callerAddr, calleeAddr, err := rulesOf(d.Member())
	if err != nil {
		return err
	}
	d.policies.caller.Store(callerAddr)
	d.policies.callee.Store(calleeAddr)
	if !d.Member().Agent.Security.NoAuditLog {
		d.access = newAccessLog(d.audit, d.Member().Agent.Audit.FailOpen, d.log)
		d.stats.next = d.access
	}
	if contract := d.Member().Capabilities; contract != nil {
		d.stats.offer(contract.Names())
	}
	return nil
}

// defaultApprovalTimeout is how long a call waits for a person.
const defaultApprovalTimeout = 5 * time.Minute

func (d *Daemon) openClient() (err error) {
	limits := d.Member().Agent.Limits
	d.peers.now.Store(d.peersOf(d.Member()))
	var version string
	if d.cfg.Fleet.RPC.StampFleetVersion {
		if version, _, err = ownRelease(os.Getenv); err != nil {
			return err
		}
	}
	queues, err := d.queues()
	if err != nil {
		return err
	}
	d.approvals = newApprovals(d.audit, cmp.Or(d.Member().Agent.Security.ApprovalTimeout, defaultApprovalTimeout), d.log)
	d.client, err = caller.New(caller.Config{
		Self: d.Member().Address, Peers: &d.peers, Transports: d.transports, Queues: queues, Records: rpc.Records{Auditor: d.audit,
			Refusals: d.audit,

			Access: &d.stats},
		Checks: caller.Checks{Authorizer: callerAuthorizer{&d.policies}, Limiter: policy.NewRateLimiter(0),

			Approver: d.approvals, Breakers: policy.NewBreakers(),
			Gate: drift.NewGate(drift.Options{Mode: drift.Mode(d.Member().Agent.Drift), Auditor: d.audit, Logger: d.log})},
		Identity: &d.identity, FleetVersion: version,

		Limits: caller.Limits{MaxPending: limits.MaxPending, MaxPayloadBytes: limits.MaxPayloadBytes}, Logger: d.log,
	})
	return err
}

// A peerTable is the peers file as calls see it. A reload replaces it whole.
type peerTable struct{ now atomic.Pointer[rpc.Peers] }

// Peer implements [rpc.PeerTable].
func (t *peerTable) Peer(a envelope.Address) (rpc.Peer, bool) { return t.now.Load().Peer(a) }

// peersOf picks a transport for each peer of a member.
func (d *Daemon) peersOf(m *fleet.Member) *rpc.Peers {
	peers := rpc.Peers{}
	for _, p := range m.Peers {
		spec := d.pick(p)
		peers[p.Address] = rpc.Peer{
			Address: p.Address, Transport: string(spec.Kind), Topic: spec.Requests, Contract: p.Document,
			MinSchemaVersion: p.MinSchemaVersion,
		}
	}
	return &peers
}

// pick is the first of a peer's transports that this process speaks. With none
// it is the first: a call then fails with the name of what is missing.
func (d *Daemon) pick(p *fleet.Peer) capability.TransportSpec {
	for _, spec := range p.Transports {
		if d.transport(spec.Kind) != nil {
			return spec
		}
	}
	return p.Transports[0]
}

// transport is the process's transport of a kind, or nil.
func (d *Daemon) transport(kind capability.TransportKind) transport.Transport {
	i := slices.IndexFunc(d.transports, func(t transport.Transport) bool { return t.Kind() == string(kind) })
	if i < 0 {
		return nil
	}
	return d.transports[i]
}

// openInbox makes the callee's end; listen opens its doors.
func (d *Daemon) openInbox(ctx context.Context) (err error) {
	contract := d.Member().Capabilities
	if contract == nil {
		return nil
	}
	limits := d.Member().Agent.Limits
	d.once, err = idempotency.Open(ctx, d.cfg.Paths.Idempotency(d.Member().ID), idempotency.Options{TTL: limits.IdempotencyTTL})
	if err != nil {
		return err
	}
	_, release, err := ownRelease(os.Getenv)
	if err != nil {
		return err
	}
	d.inbox, err = callee.New(callee.Config{
		Self: d.Member().Address, Contract: contract, Handlers: d.handlers(d.Member()), Records: rpc.Records{Auditor: d.audit,
			Refusals: d.audit, Access: &d.stats},
		Checks: callee.Checks{Authorizer: calleeAuthorizer{&d.policies}, Limiter: d.limiter(),

			MinFleetVersion: d.cfg.Fleet.RPC.MinFleetVersion},
		Services:    map[string]callee.Service{witnessService: d.serveWitness},
		Idempotency: d.once, Identity: &d.identity, Limits: callee.Limits{ClockSkew: d.Member().Agent.Security.ClockSkew,

			MaxInFlight: limits.MaxInFlight, MaxPayloadBytes: limits.MaxPayloadBytes},
		FleetVersion: release,
		Logger:       d.log,
	})
	if err != nil {
		return fmt.Errorf("%w\n(declare it under skills: in %s)", err, d.Member().Agent.Path)
	}
	return nil
}

// limiter counts the calls that come in: together with the other replicas where
// the process is on NATS and a capability asks for it.
func (d *Daemon) limiter() rpc.Limiter {
	local := policy.NewRateLimiter(0)
	conn, ok := d.transport(capability.NATS).(*nats.Conn)
	if !ok {
		return local
	}
	js, err := conn.JetStream()
	if err != nil {
		d.log.Warn("rate limits are not shared", "error", err)
		return local
	}
	return quota.New(quota.Options{JetStream: js, Bucket: natsauth.LimitsBucket(d.Member().ID), Local: local, Logger: d.log})
}

func (d *Daemon) handlers(m *fleet.Member) map[string]rpc.Handler {
	handlers := map[string]rpc.Handler{}
	for _, s := range m.Agent.Skills {
		handlers[s.Name] = d.process(s.Process)
	}
	for name, h := range d.cfg.Handlers {
		handlers[name] = h
	}
	return handlers
}

func (d *Daemon) process(p *fleet.Process) *skill.Process {
	return &skill.Process{
		Command: p.Command, Dir: p.Dir, InheritEnv: p.InheritEnv,
		Env: append(slices.Clone(p.Env),
			"AGENTD_SOCKET="+d.Socket(),
			"AGENTD_AGENT="+string(d.Member().Address),
			"AGENTD_FLEET_ROOT="+d.cfg.Fleet.Root),
		MaxOutputBytes: p.MaxOutputBytes, KillGrace: p.KillGrace,
		Calls: &d.calls, Logger: d.log,
	}
}

// listen takes requests by every declared transport that this process speaks.
func (d *Daemon) listen(ctx context.Context) error {
	if d.inbox == nil {
		return nil
	}
	var kinds []capability.TransportKind
	spoken := 0
	for _, spec := range d.Member().Capabilities.Transports {
		kinds = append(kinds, spec.Kind)
		t := d.transport(spec.Kind)
		if t == nil {
			d.log.Debug("transport not used in this process", "kind", spec.Kind)
			continue
		}
		if err := d.inbox.Listen(t, spec.Requests); err != nil {
			return err
		}
		if conn, ok := t.(*nats.Conn); ok && d.mailbox == nil {
			if err := d.listenDurable(ctx, conn, spec.Requests); err != nil {
				return err
			}
		}
		spoken++
	}
	if spoken == 0 {
		return fmt.Errorf("none of its transports %v is spoken here: it could not be called", kinds)
	}
	return nil
}

package daemon

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/daemon/metrics"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/otlp"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/transport/nats"
)

// Metrics are those of the agent, for a program that serves them itself.
func (d *Daemon) Metrics() metrics.Agent {
	return metrics.Agent{
		ID: d.Member().ID, Calls: d.stats.calls, Audit: d.auditCounts, Models: d.models, Lost: d.telemetryLost, Ready: d.Ready, Live: d.live,
		Status: func() (control.Status, bool) {
			// While the agent starts and stops, the parts that Status reads come and go.
			if !d.ready.Load() {
				return control.Status{Conditions: d.conditions.Active()}, false
			}
			return d.Status(), true
		},
		Client: func(name string) bool {
			a := d.Member().Agent
			_, mcp := a.MCP.Client(name)
			_, control := a.Control.Client(name)
			return mcp || control
		},
	}
}

// telemetryLost is what never reached its collector, by signal. The log of a process that agents
// share is nobody's.
func (d *Daemon) telemetryLost() map[string]otlp.Dropped {
	all := map[string]otlp.Dropped{}
	if d.tracer != nil {
		all["traces"] = d.tracer.Dropped()
	}
	if d.cfg.LogsLost != nil && !d.cfg.shared {
		all["logs"] = d.cfg.LogsLost()
	}
	return all
}

// known are the names by which the calls of a member are counted: those in its files. A reload
// swaps them.
func (d *Daemon) known(f *fleet.Fleet, m *fleet.Member) metrics.Known {
	k := metrics.Known{
		Caller: func(a envelope.Address) bool {
			if member, ok := f.Member(a.ID()); ok && member.Address == a {
				return true
			}
			_, ok := m.Peer(a)
			return ok
		},
		Peer: func(a envelope.Address) bool { _, ok := m.Peer(a); return ok },
		Offers: func(a envelope.Address, capability string) bool {
			p, ok := m.Peer(a)
			if !ok || p.Document == nil {
				return false
			}
			_, ok = p.Document.Lookup(capability)
			return ok
		},
	}
	if m.Capabilities != nil {
		k.Objective = m.Agent.Monitoring.Objectives.Of
		k.Served = m.Capabilities.Names()
	}
	return k
}

// A violationCounter also counts the violations that are recorded.
type violationCounter struct {
	rpc.Auditor
	counts *metrics.Audit
	calls  *metrics.Calls
}

// RecordSchemaViolation implements [rpc.Auditor].
func (a violationCounter) RecordSchemaViolation(ctx context.Context, v rpc.SchemaViolation) error {
	a.counts.Violated(&v, a.calls)
	return a.Auditor.RecordSchemaViolation(ctx, v)
}

// live asks the brokers what only they know, all at the same time.
func (d *Daemon) live(ctx context.Context) metrics.Live {
	l := metrics.Live{RoundTrips: map[string]time.Duration{}}
	var mu sync.Mutex
	var asking sync.WaitGroup
	for name, conn := range d.brokerConns() {
		asking.Go(func() {
			took, err := conn.RoundTrip(ctx)
			if err != nil {
				return // agentd_broker_connected says so
			}
			mu.Lock()
			defer mu.Unlock()
			l.RoundTrips[name] = took
		})
	}
	if box := d.mailbox; box != nil {
		asking.Go(func() {
			s, err := box.Kept(ctx)
			if err != nil {
				d.log.Debug("the state of the queue cannot be had", "error", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			l.Queue = &metrics.Queue{Waiting: s.Waiting, InFlight: s.InFlight, Redelivered: s.Redelivered, Dead: s.Dead}
		})
	}
	asking.Wait()
	return l
}

// brokerConns are the connections to brokers by what status calls them.
func (d *Daemon) brokerConns() map[string]*nats.Conn {
	all := map[string]*nats.Conn{}
	if conn := d.nats(); conn != nil {
		all["nats"] = conn
	}
	if d.jetStream != nil {
		all["jetstream"] = d.jetStream
	}
	return all
}

// addSignals adds to a status what lasts, and is no condition yet.
func (d *Daemon) addSignals(s *control.Status) {
	s.Pending = d.client.Pending()
	s.Approvals = d.approvals.counts()
	s.Slow = d.stats.calls.Slow(time.Now())
	s.Drift = d.driftVerdicts()
	s.Audit = d.auditStatus()
	for name, conn := range d.brokerConns() {
		s.Brokers = append(s.Brokers, control.Broker{Broker: name, Connected: conn.Err() == nil, Reconnects: conn.Reconnects()})
	}
	slices.SortFunc(s.Brokers, func(a, b control.Broker) int { return len(a.Broker) - len(b.Broker) })
	s.Processes = d.programs.status()
	s.Monitoring = d.monitoringURL()
}

// counts counts the calls that wait for a person, by role.
func (a *approvals) counts() (all []control.ApprovalsWaiting) {
	byRole := map[rpc.Role]*control.ApprovalsWaiting{}
	a.mu.Lock()
	for _, call := range a.waiting {
		r := &call.request
		w := byRole[r.Role]
		if w == nil {
			w = &control.ApprovalsWaiting{Role: r.Role, Oldest: r.Start}
			byRole[r.Role] = w
		}
		w.Waiting++
		if r.Start.Before(w.Oldest) {
			w.Oldest = r.Start
		}
	}
	a.mu.Unlock()
	for _, role := range []rpc.Role{rpc.RoleCaller, rpc.RoleCallee} {
		if w := byRole[role]; w != nil {
			all = append(all, *w)
		}
	}
	return all
}

// driftVerdicts are those of the drift gate, in the order of the peers file.
func (d *Daemon) driftVerdicts() (all []control.DriftVerdicts) {
	verdicts := d.gate.Verdicts()
	for _, p := range d.Member().Peers {
		if v, ok := verdicts[p.Address]; ok {
			all = append(all, control.DriftVerdicts{Peer: p.Address, Proven: v.Proven, Unproven: v.Unproven, Refused: v.Refused})
		}
	}
	return all
}

package metrics

import (
	"context"
	"runtime"
	"strings"
	"time"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
)

func goVersion() string { return runtime.Version() }

// load sends what runs and waits.
func (c *collector) load(e *emitter, s *control.Status) {
	e.send(CallsPending, float64(s.Pending))
	for _, l := range s.Capabilities {
		e.send(RequestsRunning, float64(l.Running), l.Capability)
		e.send(RequestsWaiting, float64(l.Waiting), l.Capability)
		e.send(RequestsWaitingSize, float64(l.Bytes), l.Capability)
	}
	c.breakers(e, s.Breakers)
	for _, d := range s.Drift {
		peer := string(d.Peer)
		e.send(DriftVerdicts, float64(d.Proven), peer, "proven")
		e.send(DriftVerdicts, float64(d.Unproven), peer, "unproven")
		e.send(DriftVerdicts, float64(d.Refused), peer, "refused")
	}
	waiting := map[rpc.Role]control.ApprovalsWaiting{rpc.RoleCaller: {}, rpc.RoleCallee: {}}
	for _, w := range s.Approvals {
		waiting[w.Role] = w
	}
	for role, w := range waiting {
		e.send(ApprovalsWaiting, float64(w.Waiting), string(role))
		e.send(ApprovalsOldest, since(w.Oldest), string(role))
	}
	e.send(MessagesDroppedTotal, float64(s.Dropped))
}

// breakers sends the state of each known pair. The breakers of names that a client has made up
// are counted together.
func (c *collector) breakers(e *emitter, all []control.Breaker) {
	type count struct {
		states map[policy.BreakerState]int
		opened int
	}
	counts := map[pair]*count{}
	for _, b := range all {
		p := c.agent.Calls.called(b.Peer, b.Capability)
		if counts[p] == nil {
			counts[p] = &count{states: map[policy.BreakerState]int{}}
		}
		counts[p].states[b.State]++
		counts[p].opened += b.Opened
	}
	for p, n := range counts {
		peer := string(p.peer)
		for _, state := range []policy.BreakerState{policy.BreakerClosed, policy.BreakerHalfOpen, policy.BreakerOpen} {
			e.send(BreakerState, float64(n.states[state]), peer, p.capability, string(state))
		}
		e.send(BreakerOpenedTotal, float64(n.opened), peer, p.capability)
	}
}

// audit sends how the audit log is.
func (c *collector) audit(e *emitter, a *control.AuditStatus) {
	if a == nil {
		return
	}
	e.send(AuditBacklog, float64(a.Backlog))
	e.flag(AuditRefusing, a.Refusing)
	e.send(AuditLostTotal, float64(a.Lost))
	e.send(AuditRecordsTotal, float64(a.Records))
	e.send(AuditUnsigned, float64(a.Unsigned))
	e.send(AuditCheckpointAge, since(a.UnsignedSince))
	for _, w := range a.Witnesses {
		e.send(AuditWitnessLag, since(w.UnsignedSince), w.Witness)
	}
}

// since is how long a time is past, and 0 for none.
func since(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return max(time.Since(t).Seconds(), 0)
}

// processes sends how the programs of skills are.
func (c *collector) processes(e *emitter, s *control.Status) {
	for _, p := range s.Processes {
		e.send(SkillStartsTotal, float64(p.Starts), p.Skill)
		e.send(SkillProcesses, float64(p.Running), p.Skill)
		e.send(SkillCPUTotal, p.CPUSeconds, p.Skill)
		e.send(SkillResident, float64(p.ResidentBytes), p.Skill)
	}
	for _, w := range s.Workers {
		e.send(WorkerInstances, float64(w.Instances), w.Skill)
		e.send(WorkerServing, float64(w.Serving), w.Skill)
		e.send(WorkerRunning, float64(w.Running), w.Skill)
		e.send(WorkerWaiting, float64(w.Waiting), w.Skill)
		e.send(WorkerRestartsTotal, float64(w.Restarts), w.Skill)
		e.send(WorkerRecycledTotal, float64(w.Recycled), w.Skill)
	}
	e.send(DescendantsEndedTotal, float64(s.DescendantsEnded))
}

// clients sends what the agent's clients have open. Those that its files do not list are counted
// together: whoever may open the socket of an operator gives itself a name.
func (c *collector) clients(e *emitter, s *control.Status) {
	sessions, pending, called := map[string]int{}, map[string]int{}, map[string]int{}
	for _, m := range s.MCP {
		name := c.client(m.Client)
		sessions[name] += m.Sessions
		pending[name] += m.Pending
	}
	for _, m := range s.ControlClients {
		called[c.client(m.Client)] += m.Pending
	}
	for metric, counts := range map[string]map[string]int{MCPSessions: sessions, MCPCallsPending: pending, ControlCallsPending: called} {
		for name, n := range counts {
			e.send(metric, float64(n), name)
		}
	}
}

func (c *collector) client(name string) string {
	if c.agent.Client == nil || !c.agent.Client(name) {
		return Other
	}
	return strings.Clone(name)
}

// brokers sends how the connections are, and what only the broker knows.
func (c *collector) brokers(e *emitter, s *control.Status) {
	for _, b := range s.Brokers {
		e.flag(BrokerConnected, b.Connected, b.Broker)
		e.send(BrokerReconnectsTotal, float64(b.Reconnects), b.Broker)
	}
	if c.agent.Live == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), liveTimeout)
	defer cancel()
	live := c.agent.Live(ctx)
	for broker, took := range live.RoundTrips {
		e.send(BrokerRoundTrip, took.Seconds(), broker)
	}
	if q := live.Queue; q != nil {
		e.send(QueueWaiting, float64(q.Waiting))
		e.send(QueueInFlight, float64(q.InFlight))
		e.send(QueueRedelivered, float64(q.Redelivered))
		e.send(DeadLetters, float64(q.Dead))
	}
}

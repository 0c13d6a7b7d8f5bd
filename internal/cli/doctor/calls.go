package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/policy"
)

// calls says what keeps calls from being made and answered in time, although the agent and its
// broker work: circuits that its peers' failures have opened, and skills that have become slow.
func (p *patient) calls(context.Context) {
	if p.status == nil {
		return // `running` has said why
	}
	p.circuits(p.status.Breakers)
	p.latency(p.status)
}

// circuits judges the circuit breakers. The alert AgentdBreakerOpen fires for the same states.
func (p *patient) circuits(all []control.Breaker) {
	closed := 0
	for i := range all {
		b := &all[i]
		target := cli.ID(string(b.Peer)) + "/" + b.Capability
		remedy := fmt.Sprintf("mend %s (its log, and agentd doctor where it runs); agentd fleet reset-breaker %s --as %s has it called at once", b.Peer, target, p.member.ID)
		switch b.State {
		case policy.BreakerOpen:
			p.say(checkCircuits, fail, remedy, "calls to %s of %s are refused until %s: %d of %d failed, the last one with %s",
				b.Capability, b.Peer, b.Until.UTC().Format(time.RFC3339), b.Failed, b.Calls, b.Cause)
		case policy.BreakerHalfOpen:
			p.say(checkCircuits, warn, remedy, "most calls to %s of %s have failed, the last one with %s: the next ones find out whether it works again",
				b.Capability, b.Peer, b.Cause)
		case policy.BreakerClosed:
			closed++
		}
	}
	if closed > 0 && closed == len(all) {
		p.say(checkCircuits, ok, "", "closed: %s called", count(closed, "capability"))
	}
}

// latency says which capabilities are slow. The running agent judges that, as the alert
// AgentdLatencyBurn does: see daemon/metrics.
func (p *patient) latency(s *control.Status) {
	for _, slow := range s.Slow {
		p.say(checkLatency, warn, fmt.Sprintf("agentd top --agent %s --sort latency; work that takes longer by nature needs an objective of its own (monitoring.objectives of agent.yaml)", p.member.ID),
			"%s", slow)
	}
	if len(s.Slow) == 0 && s.Requests > 0 {
		p.say(checkLatency, ok, "", "no capability has had too many slow requests in the last 5 minutes and the last hour")
	}
}

package fleetlint

import (
	"cmp"
	"errors"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/schema/contain"
)

// bounds reports numbers that contradict each other, each within its own range.
func (c *checker) bounds() {
	for _, m := range c.fleet.Members {
		if p := m.DeployTo; p != nil && p.MaxInstances > 0 && p.MinInstances > p.MaxInstances {
			c.warn(BoundsContradict, p.Position, "", "agent %q is to have at least %d instances and at most %d", m.ID, p.MinInstances, p.MaxInstances)
		}
		c.durable(m)
		if m.ClientOnly() {
			continue
		}
		for _, offered := range m.Capabilities.Capabilities {
			c.capability(m, offered)
		}
	}
}

// durable reports queues that forget a result while its request may be delivered
// again, and would then be served twice.
func (c *checker) durable(m *fleet.Member) {
	const ackWait, maxDeliver, resultTTL = 30 * time.Second, 5, 24 * time.Hour // transport/nats/durable's own defaults
	d := m.Agent.Durable
	longest := cmp.Or(d.AckWait, ackWait) * time.Duration(cmp.Or(d.MaxDeliver, maxDeliver))
	if ttl := cmp.Or(d.ResultTTL, resultTTL); ttl < longest {
		c.warn(BoundsContradict, d.Position, "make resultTtlMs longer than ackWaitMs times maxDeliver",
			"results are kept for %s, and a request may be delivered again for %s: it could be served twice", ttl, longest)
	}
}

func (c *checker) capability(m *fleet.Member, offered *capability.Capability) {
	at := offered.Position
	if offered.Timeout > rpc.MaxTimeout {
		c.warn(BoundsContradict, at, "use `delivery: durable` for longer work", "timeoutMs of %q is %s, and no call may take longer than %s", offered.Name, offered.Timeout, rpc.MaxTimeout)
	}
	if most := m.Agent.Limits.MaxInFlight; offered.Concurrency > most {
		c.warn(BoundsContradict, at, "raise limits.maxInFlight in agent.yaml, or lower concurrency",
			"concurrency of %q is %d, and agent %q serves at most %d requests at once", offered.Name, offered.Concurrency, m.ID, most)
	}
	if p := offered.RetryPolicy; p != nil && p.MaxAttempts > 1 && !offered.Idempotent {
		c.warn(RetryUnsafe, at, "say `idempotent: true` if repeating a call does no harm",
			"the retryPolicy of %q has no effect but for calls with an idempotency key: it is not idempotent", offered.Name)
	}
	for _, side := range []struct {
		name     string
		contract *capability.Contract
	}{{"inputSchema", offered.Input}, {"outputSchema", offered.Output}} {
		if side.contract == nil || side.contract.Schema == nil {
			continue
		}
		if _, err := contain.Sample(side.contract.Schema); errors.Is(err, contain.ErrUnsatisfiable) {
			c.warn(BoundsContradict, side.contract.Locate(""), "its demands contradict each other", "no value passes the %s of %q: every call to it fails", side.name, offered.Name)
		}
	}
}

package daemon

import (
	"context"
	"fmt"
	"time"

	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/transport/nats/discovery"
)

// replicasInterval is how often an agent asks for its other replicas.
const replicasInterval = time.Minute

// watchReplicas asks for the agent's other replicas until the agent stops: they come and
// go. The start has asked already.
func (d *Daemon) watchReplicas(ctx context.Context) error {
	if d.nats() == nil || d.inbox == nil {
		return nil
	}
	d.replicas.begin(ctx, replicasInterval, func(ctx context.Context) {
		if found, err := d.findNamesakes(ctx); err == nil {
			d.judgeReplicas(found)
		}
	})
	return nil
}

// judgeReplicas shows that replicas with an identity do not share their memory of the
// requests that they have accepted: each of them takes a captured message once.
func (d *Daemon) judgeReplicas(found []discovery.Instance) {
	running := 1
	for _, i := range found {
		itself := d.announcement != nil && i.ID == d.announcement.ID()
		if !itself && i.Metadata[MetadataFleet] == d.cfg.Fleet.Name && i.Metadata[MetadataAgent] == string(d.Member().Address) {
			running++
		}
	}
	cause := ""
	p := d.Member().DeployTo
	switch {
	case running > 1:
		cause = fmt.Sprintf("%d replicas of this agent run", running)
	case p != nil && max(p.MinInstances, p.MaxInstances) > 1:
		cause = fmt.Sprintf("fleet.yaml deploys up to %d replicas of this agent", max(p.MinInstances, p.MaxInstances))
	}
	if cause == "" || !d.keyring.current.Load().proving || d.sharesReplay() {
		d.conditions.End(health.Replicas, "")
		return
	}
	d.conditions.Begin(health.Condition{
		Kind: health.Replicas, Code: "local-replay-memory", Advisory: true,
		Effect: "a captured request runs once on each replica, and a repeated one that reaches another replica runs again",
		Cause:  cause + ", and each remembers by itself what it has accepted",
		Remedy: "share that memory (idempotency: {store: shared} in agent.yaml, docs/identity.md)",
	})
}

// sharesReplay reports whether the replicas of the agent share what they remember of the
// requests that they have accepted.
func (d *Daemon) sharesReplay() bool { return d.sharedReplays() != nil }

package daemon

import (
	"context"
	"fmt"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc/callee"
)

// newBreakers returns the breakers of the calls that the agent makes.
func (d *Daemon) newBreakers(s fleet.Breaker) *policy.Breakers {
	b := policy.NewBreakers()
	b.OnChange = d.logBreaker
	b.Configure(policy.BreakerSettings(s), time.Now())
	return b
}

// logBreaker logs that calls are refused, that another cool-down begins, and that calls
// are made again. A circuit that is half-open is no news: calls may still fail.
func (d *Daemon) logBreaker(c policy.BreakerChange) {
	log := d.log.With("peer", c.Peer, "capability", c.Capability)
	until := c.Until.UTC().Format(time.RFC3339)
	switch {
	case c.From == policy.BreakerClosed:
		log.Error("circuit open: calls are refused", "until", until, "failed", c.Failed, "of", c.Calls, "code", c.Cause)
	case c.State == policy.BreakerOpen:
		log.Warn("circuit open again: the callee still fails", "until", until, "code", c.Cause)
	case c.Idle:
		log.Info("circuit closed: nobody has called for so long that what was known is too old", "refused", c.Refused)
	case c.State == policy.BreakerClosed:
		log.Info("circuit closed: calls are made again", "after", c.OpenFor.Round(time.Millisecond).String(), "refused", c.Refused, "reset", c.Reset)
	}
}

// queueLimits bound what the agent serves at once, and what waits.
func queueLimits(l fleet.Limits) callee.Limits {
	limits := callee.Limits{MaxInFlight: l.MaxInFlight, MaxQueued: l.MaxQueued, MaxQueuedBytes: l.MaxQueuedBytes}
	if limits.MaxQueued == 0 {
		limits.MaxQueued = -1 // 0 means the default there
	}
	return limits
}

// A resetBody is the body of the lifecycle record about a reset of breakers.
type resetBody struct {
	Event string `json:"event"` // always "breakers-reset"
	// PeerID and Capability say which were to be closed; "" means all.
	PeerID     string            `json:"peerId,omitempty"`
	Capability string            `json:"capabilityName,omitempty"`
	Actor      *auditchain.Actor `json:"actor"`
}

// resetBreakers records and then closes breakers for an operator, see [control.Client]
// ResetBreakers.
func (d *Daemon) resetBreakers(ctx context.Context, peer envelope.Address, capability string) ([]control.Breaker, error) {
	body := resetBody{Event: "breakers-reset", PeerID: string(peer), Capability: truncateName(capability), Actor: auditchain.ActorOf(ctx)}
	// A reset that has begun is completed, even if the client disconnects.
	if err := d.audit.append(context.WithoutCancel(ctx), auditchain.KindLifecycle, "", body); err != nil {
		return nil, err
	}
	return breakers(d.breakers.Reset(peer, capability, time.Now())), nil
}

func breakers(all []policy.BreakerStatus) []control.Breaker {
	out := make([]control.Breaker, len(all))
	for i, b := range all {
		out[i] = control.Breaker(b)
	}
	return out
}

// addLoad adds to a status what runs and waits, and what is not called.
func (d *Daemon) addLoad(s *control.Status) {
	s.Breakers = breakers(d.breakers.States(time.Now()))
	s.Dropped = d.client.Dropped()
	if d.inbox == nil {
		return
	}
	for _, l := range d.inbox.Loads() {
		s.Capabilities = append(s.Capabilities, control.CapabilityLoad(l))
	}
	s.Dropped += d.inbox.Dropped()
	s.DescendantsEnded = d.descendants.Ended()
	s.Workers = d.workers.status()
	if d.Member().Agent.Tenants != nil {
		s.Tenants = d.stats.tenants()
	}
}

// overload lists the circuits that are open and the queues that are full. They begin
// and end with the calls, and not by themselves, so the list is made when it is asked
// for: nothing refuses calls to a capability whose cool-down is over.
func (d *Daemon) overload() (all []health.Condition) {
	for _, b := range d.breakers.States(time.Now()) {
		if b.State == policy.BreakerOpen {
			all = append(all, health.Condition{
				Kind: health.Circuit, Subject: string(b.Peer) + "/" + b.Capability, Code: b.Cause, Advisory: true, Since: b.Since,
				Effect: fmt.Sprintf("calls to %s of %s are refused until %s", b.Capability, b.Peer, b.Until.UTC().Format(time.RFC3339)),
				Cause:  fmt.Sprintf("%d of %d calls failed, the last one with %s", b.Failed, b.Calls, b.Cause),
				Remedy: "the callee's log says more; `agentd fleet reset-breaker` ends it early",
			})
		}
	}
	if d.inbox == nil {
		return all
	}
	for _, l := range d.inbox.Loads() {
		if l.Full {
			all = append(all, health.Condition{
				Kind: health.Queue, Subject: l.Capability, Code: "full", Advisory: true, Since: l.Since,
				Effect: fmt.Sprintf("requests of %s are refused as busy", l.Capability),
				Cause:  fmt.Sprintf("%d run and %d wait", l.Running, l.Waiting),
				Remedy: "raise its concurrency, limits.maxInFlight or limits.maxQueued, or run more replicas",
			})
		}
	}
	return all
}

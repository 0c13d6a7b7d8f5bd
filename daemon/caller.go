package daemon

import (
	"cmp"
	"context"
	"os"
	"time"

	"github.com/agentd/agentd/drift"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/caller"
)

// defaultApprovalTimeout is how long a call waits for a person's decision.
const defaultApprovalTimeout = 5 * time.Minute

// openClient builds the caller's end. What a reload swaps (peers, keyring,
// permissions, breakers) goes in by reference; Reload sets the limits anew.
func (d *Daemon) openClient(context.Context) (err error) {
	agent := d.Member().Agent
	d.peers.current.Store(d.peersOf(d.Member()))
	d.stats.calls.Know(d.known(d.cfg.Fleet, d.Member()))
	var version string
	if d.cfg.Fleet.RPC.StampFleetVersion {
		if version, _, err = fleetVersion(os.Getenv); err != nil {
			return err
		}
	}
	queues, err := d.queues()
	if err != nil {
		return err
	}
	d.approvals = newApprovals(d.Member().Address, d.audit, approvalTimeout(d.Member()), agent.Security.ApproverKeys(), d.log)
	d.gate = d.newGate(drift.Mode(agent.Drift))
	d.breakers = d.newBreakers(agent.Breaker)
	d.client, err = caller.New(caller.Config{
		Self:       d.Member().Address,
		Peers:      &d.peers,
		Transports: d.transports,
		Queues:     queues,
		Records:    d.records(),
		Checks: caller.Checks{
			Authorizer: callerAuthorizer{&d.permissions},
			Origins:    callerAuthorizer{&d.permissions},
			Limiter:    policy.NewRateLimiter(0),
			Approver:   d.approvals,
			Breakers:   d.breakers,
			Gate:       d.gate,
		},
		Identity:     callingKeyring{&d.keyring},
		FleetVersion: version,
		Limits:       callerLimits(d.Member()),
		Tracer:       d.tracerOrNil(),
		Logger:       d.log,
	})
	if err == nil {
		d.followPeers()
	}
	return err
}

// approvalTimeout is how long a member's calls wait for a person.
func approvalTimeout(m *fleet.Member) time.Duration {
	return cmp.Or(m.Agent.Security.ApprovalTimeout, defaultApprovalTimeout)
}

// records is where both ends keep what they must account for. The statistics stand
// before the access log, so that calls are counted even where that is off.
func (d *Daemon) records() rpc.Records {
	return rpc.Records{Auditor: d.callAuditor(), Refusals: d.audit, Access: &d.stats}
}

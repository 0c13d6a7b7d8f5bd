package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
)

// reloadRecordTimeout bounds the record of a reload.
const reloadRecordTimeout = 5 * time.Second

// A reloadedState is what a reload puts in force, read and checked as a whole
// before any of it is.
type reloadedState struct {
	fleet    *fleet.Fleet
	member   *fleet.Member
	handlers map[string]rpc.Handler
	actions  *actionSet
	caller   *policy.CallerRules
	callee   *policy.CalleeRules
	tenants  *policy.TenantRules
	keyring  *memberKeys
	tools    *registry.Resolved
	mcp      mcpReload // and of the control API
}

// Reload reads the fleet's files again and swaps what a running agent can change:
// capabilities, skills, peers, tenants, identities, permissions, breakers and limits; the table in
// settings.go has every key. What takes a restart waits for it, and is named in the
// log and by [Daemon.AwaitsRestart]. Calls that run finish under the rules that they
// began with, and the audit log gets a record of the reload. After an error nothing
// has changed, and the error names the file at fault; until a reload succeeds, it is a
// condition of the agent. It is safe for concurrent use.
func (d *Daemon) Reload() error { return d.ReloadFrom(d.LoadFiles) }

// LoadFiles loads the fleet's files again, as far as they have changed since those in force.
func (d *Daemon) LoadFiles() (*fleet.Fleet, error) { return d.loaded.Load().Reload() }

// ReloadFrom is Reload with files that load returns: the agents of one process share what
// one of them has loaded.
func (d *Daemon) ReloadFrom(load func() (*fleet.Fleet, error)) error {
	d.reloading.Lock()
	defer d.reloading.Unlock()
	err := d.reload(load)
	if err == nil {
		d.notReloaded.Store(nil)
		return nil
	}
	c := health.Condition{
		Kind: health.Reload, Code: "refused", Advisory: true, Cause: err.Error(), Since: time.Now(),
		Effect: "the agent goes on with the files from before they were changed", Remedy: "mend the file, or restart the agent where the cause asks for that",
	}
	if before := d.notReloaded.Load(); before != nil {
		c.Since = before.Since
	}
	d.notReloaded.Store(&c)
	return err
}

// refusedReload is the condition of an agent whose last reload has failed. It is not on
// the board, which would log it once more: whoever asked for the reload has its error.
func (d *Daemon) refusedReload() []health.Condition {
	if c := d.notReloaded.Load(); c != nil {
		return []health.Condition{*c}
	}
	return nil
}

// reload is ReloadFrom for one caller at a time.
func (d *Daemon) reload(load func() (*fleet.Fleet, error)) error {
	next, err := d.readFiles(load)
	if err != nil {
		next.actions.retire()
		return fmt.Errorf("reload: %w", err)
	}
	// The contract and the workers are the only parts that can still be rejected: they must
	// come first.
	if d.inbox != nil {
		// New workers serve before those from before take no more calls.
		err := d.workers.prepare(next.handlers)
		if err == nil {
			err = d.inbox.SetContract(next.member.Capabilities, next.handlers)
		}
		if err != nil {
			next.actions.retire()
			next.mcp.each(next.mcp.abandon)
			return errors.Join(fmt.Errorf("reload: %w", err), d.workers.abandon(next.handlers), d.abandonTools(next.tools))
		}
		d.serveUsers(next.handlers)
		d.workers.use(next.handlers)
		d.stats.setTenants(next.tenants.Served())
		d.programs.keep(func(name string) bool {
			return slices.ContainsFunc(next.member.Agent.Skills, func(s fleet.Skill) bool { return s.Name == name })
		})
		d.inbox.SetLimits(calleeLimits(next.member))
		d.useActions(next.actions)
	}
	// Each of these is swapped by itself. A call that runs meanwhile may see the new
	// keys with the old permissions: both were in force at some moment of its own time.
	d.useTools(next.tools)
	d.useKeys(next.keyring)
	d.permissions.caller.Store(next.caller)
	d.permissions.callee.Store(next.callee)
	d.permissions.tenants.Store(next.tenants)
	d.peers.current.Store(d.peersOf(next.member))
	d.stats.calls.Know(d.known(next.fleet, next.member))
	d.client.SetLimits(callerLimits(next.member))
	d.breakers.Configure(policy.BreakerSettings(next.member.Agent.Breaker), time.Now())
	d.approvals.configure(approvalTimeout(next.member), next.member.Agent.Security.ApproverKeys())
	before := reloadedState{fleet: d.loaded.Load(), member: d.Member()}
	d.loaded.Store(next.fleet)
	d.member.Store(next.member)
	d.awaitRestart(next)
	d.unread = nil
	d.judgeIdentity()
	d.reloadGate(next.member)
	next.mcp.each(next.mcp.use)
	d.mcp.changed()
	ctx, cancel := context.WithTimeout(context.Background(), reloadRecordTimeout)
	defer cancel()
	if err := d.audit.lifecycle(ctx, "reloaded", d.cfg.Version); err != nil {
		// The new files are in force already, and taking them back could fail as well.
		// A log that takes no records refuses the calls anyway.
		d.log.Error("reload not recorded", "error", err)
	}
	d.warnOfMissingFiles()
	d.warnOfUnconfined()
	d.log.Info("reloaded", "swapped", changed(swapped, before, next))
	return nil
}

// awaitRestart notes which keys differ from those that the agent was started with.
// Reverting one of them takes it off the list again.
func (d *Daemon) awaitRestart(next reloadedState) {
	started, _ := d.cfg.Fleet.Member(next.member.ID)
	waiting := changed(restart, reloadedState{fleet: d.cfg.Fleet, member: started}, next)
	d.waiting.Store(&waiting)
	if len(waiting) > 0 {
		d.log.Warn("a restart is needed: the rest of the files is in force", "waiting", waiting)
	}
}

// AwaitsRestart lists the keys whose new values the last reload could not put in
// force, such as "agent.yaml: audit.witnesses".
func (d *Daemon) AwaitsRestart() []string {
	if waiting := d.waiting.Load(); waiting != nil {
		return *waiting
	}
	return nil
}

// restartWarnings say so to whoever looks at the agent.
func (d *Daemon) restartWarnings() []string {
	if waiting := d.AwaitsRestart(); len(waiting) > 0 {
		return []string{"a restart is needed for " + strings.Join(waiting, ", ")}
	}
	return nil
}

// readFiles reads everything that a reload swaps, and refuses what no running agent
// could turn into.
func (d *Daemon) readFiles(load func() (*fleet.Fleet, error)) (s reloadedState, err error) {
	if s.fleet, err = load(); err != nil {
		return s, err
	}
	running := d.Member()
	member, ok := s.fleet.Member(running.ID)
	// What the running daemon was assembled around; see start.
	switch {
	case !ok:
		return s, fmt.Errorf("the fleet no longer has the agent %q", running.ID)
	case member.ClientOnly() != running.ClientOnly():
		return s, fmt.Errorf("%s starts or stops offering capabilities, which takes a restart", member.ID)
	}
	s.member = member
	if d.inbox != nil {
		// The port of the API for skills, which a reload may open, outlives the reload.
		if s.actions, err = d.openActions(s.fleet, member); err != nil {
			return s, err
		}
		if s.handlers, err = d.handlers(context.Background(), s.fleet, member, s.actions); err != nil {
			return s, err
		}
	}
	if s.caller, s.callee, err = readPermissions(member); err != nil {
		return s, err
	}
	s.tenants = tenantRules(s.fleet, member)
	if s.keyring, err = d.readKeys(s.fleet, member); err != nil {
		return s, err
	}
	// Last: what it starts would otherwise have to be closed after each of the others.
	ctx, cancel := context.WithTimeout(context.Background(), resolveTimeout)
	defer cancel()
	if s.tools, err = d.resolveTools(ctx, s.fleet, member, s.caller); err != nil {
		return s, err
	}
	if s.mcp, err = d.mcp.prepare(mcpView{s.fleet, member, s.caller}); err != nil {
		return s, errors.Join(err, d.abandonTools(s.tools))
	}
	if err := errors.Join(d.clients.prepare(s.fleet, member, &s.mcp), d.reloadMonitoring(s.fleet, member, &s.mcp)); err != nil {
		s.mcp.each(s.mcp.abandon)
		return s, errors.Join(err, d.abandonTools(s.tools))
	}
	return s, nil
}

// callerLimits are the bounds on the calls that a member makes.
func callerLimits(m *fleet.Member) caller.Limits {
	return caller.Limits{MaxPending: m.Agent.Limits.MaxPending, MaxPayloadBytes: m.Agent.Limits.MaxPayloadBytes}
}

// calleeLimits are the bounds on the calls that a member serves.
func calleeLimits(m *fleet.Member) callee.Limits {
	limits := queueLimits(m.Agent.Limits)
	limits.ClockSkew, limits.MaxPayloadBytes = m.Agent.Security.ClockSkew, m.Agent.Limits.MaxPayloadBytes
	return limits
}

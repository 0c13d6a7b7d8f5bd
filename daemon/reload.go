package daemon

import (
	"context"
	"fmt"
	"time"

	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/policy"
)

// reloadRecordTimeout bounds the record of a reload.
const reloadRecordTimeout = 5 * time.Second

// A reloadedState is what a reload puts in force, read and checked as a whole
// before any of it is.
type reloadedState struct {
	member  *fleet.Member
	caller  *policy.CallerRules
	callee  *policy.CalleeRules
	keyring *identity.Keyring
}

// Reload reads the fleet's files again and swaps what they say about capabilities,
// skills, peers, identities, permissions, breakers and queues. Calls that run finish under the rules
// that they began with, and the audit log gets a record of the reload. After an
// error nothing has changed, and the error names the file at fault. What a running
// agent cannot change (its transports, other limits and audit log) takes a restart.
// It is safe for concurrent use.
func (d *Daemon) Reload() error {
	d.reloading.Lock()
	defer d.reloading.Unlock()
	next, err := d.readFiles()
	if err != nil {
		return fmt.Errorf("reload: %w", err)
	}
	// The contract is the only part that can still be rejected: it must come first.
	if d.inbox != nil {
		if err := d.inbox.SetContract(next.member.Capabilities, d.handlers(next.member)); err != nil {
			return fmt.Errorf("reload: %w", err)
		}
		d.stats.setCapabilities(next.member.Capabilities.Names())
	}
	// Each of these is swapped by itself. A call that runs meanwhile may see the new
	// keys with the old permissions: both were in force at some moment of its own time.
	d.keyring.current.Store(next.keyring)
	d.permissions.caller.Store(next.caller)
	d.permissions.callee.Store(next.callee)
	d.peers.current.Store(d.peersOf(next.member))
	d.applyLimits(next.member.Agent)
	d.member.Store(next.member)
	ctx, cancel := context.WithTimeout(context.Background(), reloadRecordTimeout)
	defer cancel()
	if err := d.audit.lifecycle(ctx, "reloaded", d.cfg.Version); err != nil {
		// The new files are in force already, and taking them back could fail as well.
		// A log that takes no records refuses the calls anyway.
		d.log.Error("reload not recorded", "error", err)
	}
	d.log.Info("reloaded")
	return nil
}

// readFiles reads everything that a reload swaps, and rejects what only a restart
// can change.
func (d *Daemon) readFiles() (s reloadedState, err error) {
	f, err := d.cfg.Fleet.Reload()
	if err != nil {
		return s, err
	}
	running := d.Member()
	member, ok := f.Member(running.ID)
	// What the running daemon was assembled around; see start.
	switch {
	case !ok:
		return s, fmt.Errorf("the fleet no longer has the agent %q", running.ID)
	case member.ClientOnly() != running.ClientOnly():
		return s, fmt.Errorf("%s starts or stops offering capabilities, which takes a restart", member.ID)
	case !member.ClientOnly() && member.Capabilities.KeepsRequests() != running.Capabilities.KeepsRequests():
		return s, fmt.Errorf("%s starts or stops having requests kept (delivery: durable), which takes a restart", member.ID)
	}
	s.member = member
	if s.caller, s.callee, err = readPermissions(member); err != nil {
		return s, err
	}
	s.keyring, err = d.readKeyring(f, member)
	return s, err
}

package daemon

import (
	"context"
	"fmt"
	"time"
)

// Reload reads the fleet's files again and swaps what they say about
// capabilities, skills, peers, identities and permissions. Calls that run are
// finished on the terms that they began with, and the audit log says that the terms have changed. After an error everything is as it was, and the error says which
// file is at fault. What a running agent cannot change (its transports, limits
// and audit log) takes a restart. It is safe for concurrent use.
func (d *Daemon) Reload() error {
	d.files.Lock()
	defer d.files.Unlock()
	f, err := d.cfg.Fleet.Reload()
	if err != nil {
		return fmt.Errorf("reload: %w", err)
	}
	member, ok := f.Member(d.Member().ID)
	switch {
	case !ok:
		return fmt.Errorf("reload: the fleet no longer has the agent %q", d.Member().ID)
	case member.ClientOnly() != d.Member().ClientOnly():
		return fmt.Errorf("reload: %s starts or stops offering capabilities, which takes a restart", member.ID)
	case !member.ClientOnly() && member.Capabilities.KeepsRequests() != d.Member().Capabilities.KeepsRequests():
		return fmt.Errorf("reload: %s begins or ends to keep requests (delivery: durable), which takes a restart", member.ID)
	}
	caller, callee, err := rulesOf(member)
	if err != nil {
		return fmt.Errorf("reload: %w", err)
	}
	ring, err := d.keyring(f, member)
	if err != nil {
		return fmt.Errorf("reload: %w", err)
	}
	if d.inbox != nil {
		if err := d.inbox.SetContract(member.Capabilities, d.handlers(member)); err != nil {
			return fmt.Errorf("reload: %w", err)
		}
		d.stats.offer(member.Capabilities.Names())
	}
	d.identity.now.Store(ring)
	d.policies.caller.Store(caller)
	d.policies.callee.Store(callee)
	d.peers.now.Store(d.peersOf(member))
	d.now.Store(member)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := d.audit.lifecycle(ctx, "reloaded", d.cfg.Version); err != nil {
		d.log.Error("reload not recorded", "error", err) // it is in force; calls without records are refused anyway
	}
	d.log.Info("reloaded")
	return nil
}

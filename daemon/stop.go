package daemon

import (
	"context"
	"errors"
	"time"
)

// Stop accepts no more calls, finishes those that run until ctx ends, and closes
// everything, the audit log last. The error wraps ctx's when calls were cut short. Only
// the first call does so: others wait for it, and return its error.
func (d *Daemon) Stop(ctx context.Context) error {
	d.stopped.Do(func() { d.stopError = d.stop(ctx) })
	return d.stopError
}

// stop is Stop, which runs it once.
//
// The order matters: the announcement goes before the inbox, so that no tool sends
// anybody here; the inbox drains before the client closes, because running skills
// may still make calls of their own; the access log is flushed before the
// audit log that it writes to.
func (d *Daemon) stop(ctx context.Context) error {
	// First, so that supervisors and discovery see the agent as stopping while its
	// calls finish.
	wasReady := d.ready.Swap(false)
	d.tellWait(ctx)
	var errs []error
	d.fleetCheck.close()
	d.replicas.close()
	d.sampling.close()
	if d.identity != nil {
		d.identity()
	}
	d.listening.stop() // a reload that still runs must not have the inbox listen again
	if d.announcement != nil {
		errs = append(errs, d.announcement.Close())
	}
	errs = append(errs, d.clients.close(ctx))
	errs = append(errs, d.mcp.close(ctx)) // its clients' calls end first: none of theirs is served here
	if d.inbox != nil {
		errs = append(errs, d.inbox.Shutdown(ctx), d.workers.close(ctx))
		d.toolServers.close()
		d.httpSkills.close()
	}
	if api := d.skillAPI.Load(); api != nil { // after the last skill
		errs = append(errs, api.Shutdown(ctx))
	}
	if d.control != nil {
		errs = append(errs, d.control.Shutdown(ctx))
	}
	errs = append(errs, d.closeTools(ctx))    // after the last skill, and before what peers' tools call through
	errs = append(errs, d.closeDescendants()) // after the last skill, and the last server of tools
	if c := d.confinement.Load(); c != nil {
		c.Close()
	}
	d.useActions(nil) // after the last call and the operator's last try
	d.following.close()
	if d.client != nil {
		errs = append(errs, d.client.Close())
	}
	if d.gate != nil {
		d.gate.Close()
	}
	for _, t := range d.transports {
		errs = append(errs, t.Close())
	}
	if d.jetStream != nil {
		errs = append(errs, d.jetStream.Close())
	}
	// Both ends are closed by now, so no further call can end unrecorded.
	d.access.close(ctx)
	if d.answers != nil {
		errs = append(errs, d.answers.close())
	}
	errs = append(errs, d.monitoring.Close(ctx), d.closeAudit(wasReady)) // probes see the agent stop
	d.closeTraces(ctx)
	d.log.Info("stopped")
	return errors.Join(errs...)
}

// tellWait logs what the stop waits for, if for anything: nobody need guess why it takes so long.
func (d *Daemon) tellWait(ctx context.Context) {
	var serving, calling int
	if d.inbox != nil {
		serving = d.inbox.InFlight()
	}
	if d.client != nil {
		calling = d.client.Pending()
	}
	if serving == 0 && calling == 0 {
		return
	}
	about := []any{"serving", serving, "calling", calling}
	if until, bounded := ctx.Deadline(); bounded {
		about = append(about, "until", until.UTC().Format(time.RFC3339))
	}
	d.log.Info("stopping, once the calls that run have ended", about...)
}

// closeAudit closes the audit log, of an agent that has recorded its start with the record of a
// clean stop: an auditor would take a start without one for a crash.
func (d *Daemon) closeAudit(wasReady bool) error {
	if d.audit.log == nil {
		return nil
	}
	if wasReady {
		d.rememberAllWitnessed()
	}
	d.audit.health.Close()
	if d.recorded {
		return d.audit.close(d.cfg.Version)
	}
	return d.audit.log.Close()
}

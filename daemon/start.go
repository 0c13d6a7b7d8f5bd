package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/daemon/internal/calllog"
	"github.com/agentd/agentd/daemon/metrics"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/span"
)

// Start runs the member with the given id. It returns once the agent accepts
// calls. An error leaves nothing behind but the audit log. ctx bounds the start
// alone.
func Start(ctx context.Context, cfg Config, id string) (*Daemon, error) {
	d, err := newDaemon(cfg, id)
	if err == nil {
		err = d.begin(ctx)
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// newDaemon makes an agent of which nothing runs yet but its tracer, and whose health can be asked
// for. Stop ends it.
func newDaemon(cfg Config, id string) (*Daemon, error) {
	member, ok := cfg.Fleet.Member(id)
	if !ok {
		unknown := &UnknownAgentError{ID: id}
		for _, m := range cfg.Fleet.Members {
			unknown.Members = append(unknown.Members, m.ID)
		}
		return nil, unknown
	}
	cfg.ownProcess()
	d := &Daemon{cfg: cfg, started: time.Now(), descendants: cfg.family.Member()}
	recorded := func(traceparent string) bool { return span.Recorded(d.tracerOrNil(), traceparent) }
	d.log = slog.New(calllog.New(cfg.Logger.Handler(), recorded)).With("agent", id)
	d.loaded.Store(cfg.Fleet)
	d.conditions = health.NewBoard(d.log)
	d.workers.board = d.conditions
	if cfg.LogCalls {
		d.stats.log = d.log
	}
	if o := cfg.Observer; o != nil {
		d.stats.observe = func(r rpc.CallRecord) { o.Call(id, r) }
	}
	d.member.Store(member)
	d.auditCounts, d.stats.calls, d.models = &metrics.Audit{}, metrics.NewCalls(), metrics.NewModels()
	d.mcp = newMCPFace(d) // before the gate, which tells it of drift
	d.clients.d, d.clients.limits = d, policy.NewRateLimiter(0)
	d.clients.ctx, d.clients.cut = context.WithCancel(context.Background()) // close cuts
	d.openTraces()
	return d, nil
}

// begin starts the agent, when it is its turn. An error leaves nothing running.
func (d *Daemon) begin(ctx context.Context) error {
	err := d.turn.take(ctx)
	defer d.turn.giveBack()
	if err == nil {
		err = d.start(ctx)
	}
	if err == nil {
		return nil
	}
	d.failed = true
	// ctx may have ended, which may be why the start failed.
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	return errors.Join(fmt.Errorf("agent %s: %w", d.Member().ID, err), d.Stop(stopCtx))
}

// Run starts the member with the given id, calls serve, and stops the agent when
// serve has returned.
func Run(ctx context.Context, cfg Config, id string, serve func(context.Context, *Daemon) error) error {
	d, err := Start(ctx, cfg, id)
	if err != nil {
		return err
	}
	err = serve(ctx, d)
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.Member().Agent.Limits.ShutdownTimeout)
	defer cancel()
	return errors.Join(err, d.Stop(stopCtx))
}

// start assembles the agent, each step on top of those before it:
//
//   - The audit log comes first: every later step may have to record something.
//   - Keys, transports and permissions come before the two ends of calls, which are
//     built from them.
//   - Tools come after the client, through which those of peers call, and before the
//     skills that use them.
//   - The API for skills opens with the inbox, which starts them, and so before
//     requests are accepted.
//   - The announcement and the witnesses come last: other agents answer them, and
//     may call back at once.
//
// What a look at the host finds is waited for where it is used.
//
// A step may fail halfway: Stop closes whatever is open.
func (d *Daemon) start(ctx context.Context) error {
	defer d.lookAtHost(ctx)()
	for _, step := range [...]func(context.Context) error{
		d.checkReachable,
		d.openMonitoring,
		d.openAudit,
		d.loadKeyring,
		d.openTransports,
		d.loadPermissions,
		d.openAccessLog,
		d.openClient,
		d.openWitness,
		d.openTools,
		d.checkMCP,
		d.openInbox,
		d.openControl,
		d.openDescendants,
		d.recordStart,
		d.beginWorkers,
		d.checkFleet,
		d.listen,
		d.announce,
		d.checkFleetAgain,
		d.watchReplicas,
		d.sampleRequests,
		d.openMCP,
		d.openClients,
		d.addWitnesses,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	d.warnOfMissingFiles()
	d.warnOfUnconfined()
	// Publishes what the steps have set to readers that check ready first.
	d.ready.Store(true)
	d.log.Info("started", "socket", d.Socket(), "audit", d.AuditDB())
	return nil
}

// checkReachable refuses to run an agent alone in its process that accepts requests
// by the memory transport only.
func (d *Daemon) checkReachable(context.Context) error {
	m := d.Member()
	if d.cfg.Bus != nil || m.ClientOnly() {
		return nil
	}
	for _, t := range m.Capabilities.Transports {
		if t.Kind != capability.Memory {
			return nil
		}
	}
	return &MemoryOnlyError{ID: m.ID}
}

// openAudit opens the audit log, readable by its owner alone. It fails if another
// process has it open, so an agent never runs twice on one log.
func (d *Daemon) openAudit(ctx context.Context) error {
	path := d.AuditDB()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	log, err := auditchain.Open(ctx, path, auditchain.Options{Name: d.Member().ID, OnWitness: d.onWitness})
	if err != nil {
		return nameFullDisk(path, err)
	}
	r := log.Recovery()
	d.logRecovery(path, r)
	d.auditSeen.erasing = r.Resuming
	recovered := make(chan struct{}, 1)
	d.audit = auditor{
		log: log, health: d.watchAudit(log, recovered), recovered: recovered, counts: d.auditCounts,
		settings: func() *fleet.Audit { return &d.Member().Agent.Audit },
	}
	return nil
}

// logRecovery names the files that were missing beside the audit log, as after a backup of
// the database alone was restored.
func (d *Daemon) logRecovery(path string, r auditchain.Recovery) {
	if r.KeysMissing {
		d.log.Warn("a file beside the audit log was missing; it is written again from the log's own records: compare it with the keys that auditors have", "file", path+".pub")
	}
	if r.CheckpointMissing {
		d.log.Warn("a file beside the audit log was missing: only a witness or a checkpoint kept elsewhere can show whether the database is the newest one", "file", path+".checkpoint")
	}
	switch {
	case r.Resuming:
		d.log.Info("a redaction or pruning of the audit log was interrupted; it goes on beside calls", "records", r.Resumed)
	case r.Resumed > 0:
		d.log.Info("a redaction or pruning of the audit log was interrupted; it is complete now", "records", r.Resumed)
	}
}

// openControl opens the control socket. What it passes as functions and as d itself
// follows reloads.
func (d *Daemon) openControl(ctx context.Context) (err error) {
	agent := control.Agent{
		Caller: d.client, Ready: d.Ready, Approvals: d.approvals, Audit: d.audit.log,
		Warnings: d.Warnings, Witnesses: d, Status: d.Status, VerifyPeers: d.VerifyPeers, Tools: d.toolSets, Durable: d, MCP: d,
		ResetBreakers: d.resetBreakers, Activity: d.Activity,
	}
	if !d.Member().ClientOnly() {
		agent.RunAction = d.RunAction
		agent.Capabilities = func() ([]byte, error) { return d.Member().Capabilities.Published().JSON() }
	}
	d.control, err = control.Listen(ctx, d.Socket(), d.operators().Only(control.NewHandler(agent)), d.log)
	return err
}

// startRecordTimeout bounds the wait for the record of the start.
const startRecordTimeout = 5 * time.Second

// recordStart makes sure that the log takes records before any request is accepted. A start that is
// cut short waits for its record all the same: whether there is one decides whether the stop has one.
func (d *Daemon) recordStart(ctx context.Context) error {
	recordCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startRecordTimeout)
	defer cancel()
	if err := d.audit.lifecycle(recordCtx, "started", d.cfg.Version); err != nil {
		return err
	}
	d.recorded = true
	return context.Cause(ctx)
}

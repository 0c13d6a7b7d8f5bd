package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/idempotency"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/memory"
	"github.com/agentd/agentd/transport/nats"
	"github.com/agentd/agentd/transport/nats/discovery"
	"github.com/agentd/agentd/transport/nats/durable"
)

// A Config says which agent to run, and where.
type Config struct {
	// Fleet is the loaded fleet. Required.
	Fleet *fleet.Fleet
	// Paths are where state and sockets go. Required.
	Paths Paths
	// Bus carries the memory transport between the agents of this process. Nil
	// means that the agent is alone in its process, which the
	// memory transport cannot leave.
	Bus *memory.Bus
	// NATS says how to reach NATS, where the agent's files name it: servers that
	// it sets come before those of the files.
	NATS nats.Options
	// Handlers run skills as Go functions, by skill name. They come before the
	// processes of agent.yaml.
	Handlers map[string]rpc.Handler
	// Version is the version of agentd, for the audit log.
	Version string
	// Logger is required; it gets the agent's id as an attribute.
	Logger *slog.Logger
}

// A Daemon is one running agent. It is safe for concurrent use.
type Daemon struct {
	cfg Config
	log *slog.Logger

	files sync.Mutex                   // held by whoever reloads
	now   atomic.Pointer[fleet.Member] // what the files said when they were last good

	peers      peerTable
	policies   policies
	identity   identityRing
	audit      auditor
	approvals  *approvals
	witnesses  witnesses
	access     *accessLog // nil when the agent's file turns it off
	stats      callStats
	transports []transport.Transport
	client     *caller.Client
	inbox      *callee.Inbox      // nil for an agent that only calls others
	once       *idempotency.Store // nil for an agent that only calls others
	calls      control.Calls
	control    *control.Server
	ready      atomic.Bool
	started    time.Time

	mailbox   *durable.Mailbox // nil where no request to the agent is kept
	mailTopic string

	announcement *discovery.Announcement // nil where the agent takes no requests by NATS
}

// An UnknownAgentError says that a fleet has no such member.
type UnknownAgentError struct {
	// ID is what was asked for.
	ID string
	// Members are the ids that the fleet has.
	Members []string
}

func (e *UnknownAgentError) Error() string {
	return fmt.Sprintf("the fleet has no agent %q; it has %v", e.ID, e.Members)
}

// A MemoryOnlyError says that an agent was to run alone in its process, and
// that nobody could reach it there.
type MemoryOnlyError struct {
	// ID is the agent's.
	ID string
}

func (e *MemoryOnlyError) Error() string {
	return fmt.Sprintf("agent %q takes requests by the memory transport only, which does not leave its process: "+
		"no other process could call it. Start the whole fleet in one process with `agentd fleet run`, "+
		"or give the agent a transport of kind nats in its capabilities.yaml and in rpc-peers.yaml", e.ID)
}

// Start brings the member with an id up. It returns once the agent takes calls.
// An error leaves nothing behind but the audit log. ctx bounds the start alone.
func Start(ctx context.Context, cfg Config, id string) (*Daemon, error) {
	member, ok := cfg.Fleet.Member(id)
	if !ok {
		unknown := &UnknownAgentError{ID: id}
		for _, m := range cfg.Fleet.Members {
			unknown.Members = append(unknown.Members, m.ID)
		}
		return nil, unknown
	}
	d := &Daemon{cfg: cfg, log: cfg.Logger.With("agent", id), started: time.Now()}
	d.now.Store(member)
	if err := d.start(ctx); err != nil {
		stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		return nil, errors.Join(fmt.Errorf("agent %s: %w", id, err), d.Stop(stopCtx))
	}
	return d, nil
}

// start opens what the agent is made of, from the ground up. Stop closes what
// there is, so it may return at any point.
func (d *Daemon) start(ctx context.Context) error {
	if d.cfg.Bus == nil && d.memoryOnly() {
		return &MemoryOnlyError{ID: d.Member().ID}
	}
	if err := d.openAudit(ctx); err != nil {
		return err
	}
	ring, err := d.keyring(d.cfg.Fleet, d.Member())
	if err != nil {
		return err
	}
	d.identity.now.Store(ring)
	if err := d.openTransports(ctx); err != nil {
		return err
	}
	if err := d.openPolicies(); err != nil {
		return err
	}
	if err := d.openClient(); err != nil {
		return err
	}
	if err := d.openWitness(); err != nil {
		return err
	}
	if err := d.openInbox(ctx); err != nil {
		return err
	}
	agent := control.Agent{Caller: d.client, Calls: &d.calls, Ready: d.Ready, Approvals: d.approvals, Audit: d.audit.log,
		Warnings: d.Warnings, Witnesses: d, Status: d.Status, VerifyPeers: d.VerifyPeers, Durable: d}
	if d.Member().Capabilities != nil {
		agent.Capabilities = func() ([]byte, error) { return d.Member().Capabilities.Published().JSON() }
	}
	if d.control, err = control.Listen(ctx, d.Socket(), control.NewHandler(agent), d.log); err != nil {
		return err
	}
	if err := d.audit.lifecycle(ctx, "started", d.cfg.Version); err != nil {
		return err
	}
	if err := d.listen(ctx); err != nil {
		return err
	}
	if err := d.announce(); err != nil {
		return err
	}
	if err := d.findWitnesses(ctx); err != nil {
		return err
	}
	d.ready.Store(true)
	d.log.Info("ready", "socket", d.Socket(), "audit", d.AuditDB())
	return nil
}

func (d *Daemon) memoryOnly() bool {
	if d.Member().ClientOnly() {
		return false
	}
	for _, t := range d.Member().Capabilities.Transports {
		if t.Kind != capability.Memory {
			return false
		}
	}
	return true
}

func (d *Daemon) openAudit(ctx context.Context) error {
	path := d.AuditDB()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	log, err := auditchain.Open(ctx, path, auditchain.Options{Name: d.Member().ID, OnWitness: d.heardFromWitness})
	if err != nil {
		return err
	}
	d.audit = auditor{log: log, settings: func() *fleet.Audit { return &d.Member().Agent.Audit }}
	return nil
}

var errNotRunning = errors.New("the agent is starting or stopping")

// Ready is nil while the agent takes calls.
func (d *Daemon) Ready() error {
	if !d.ready.Load() {
		return errNotRunning
	}
	for _, t := range d.transports {
		if c, ok := t.(interface{ Err() error }); ok && c.Err() != nil {
			return fmt.Errorf("%s: %w", t.Kind(), c.Err())
		}
	}
	return nil
}

// Lost is closed when the agent can be reached no more, whatever it does: its
// connection to NATS has ended for good. Then it should be stopped, and started again by
// whoever runs it. It is nil for an agent that is not on NATS.
func (d *Daemon) Lost() <-chan struct{} {
	if conn, ok := d.transport(capability.NATS).(*nats.Conn); ok {
		return conn.Ended()
	}
	return nil
}

// Files are the paths of everything that [Daemon.Reload] reads.
func (d *Daemon) Files() []string { return d.cfg.Fleet.Files(d.Member()) }

// Client is the agent's end of the calls that it makes.
func (d *Daemon) Client() *caller.Client { return d.client }

// Auditor is where the agent records what its calls must record.
func (d *Daemon) Auditor() rpc.Auditor { return d.audit }

// Member is what the fleet's files say of the agent.
func (d *Daemon) Member() *fleet.Member { return d.now.Load() }

// Socket is the path of the control socket.
func (d *Daemon) Socket() string { return d.cfg.Paths.Socket(d.Member().ID) }

// AuditDB is the path of the audit log.
func (d *Daemon) AuditDB() string { return AuditDB(d.Member(), d.cfg.Paths) }

// Stop takes no more calls, finishes those that run until ctx ends, and closes
// everything, the audit log last. It must be called once. The error
// wraps ctx's when calls were cut short.
func (d *Daemon) Stop(ctx context.Context) error {
	wasReady := d.ready.Swap(false)
	var errs []error
	if d.announcement != nil {
		errs = append(errs, d.announcement.Close())
	}
	if d.inbox != nil {
		errs = append(errs, d.inbox.Shutdown(ctx))
	}
	if d.control != nil {
		errs = append(errs, d.control.Shutdown(ctx))
	}
	if d.client != nil {
		errs = append(errs, d.client.Close())
	}
	for _, t := range d.transports {
		errs = append(errs, t.Close())
	}
	d.access.close(ctx)
	if d.once != nil {
		errs = append(errs, d.once.Close())
	}
	if d.audit.log != nil {
		if wasReady {
			recordCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			errs = append(errs, d.audit.lifecycle(recordCtx, "stopped", d.cfg.Version))
			cancel()
		}
		errs = append(errs, d.audit.log.Close())
	}
	d.log.Info("stopped")
	return errors.Join(errs...)
}

// Run starts the member with an id, calls serve, and stops the agent when serve
// has returned.
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

package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/idempotency"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats"
	"github.com/agentd/agentd/transport/nats/discovery"
	"github.com/agentd/agentd/transport/nats/durable"
)

// A Daemon is one running agent. It is safe for concurrent use.
type Daemon struct {
	cfg     Config
	log     *slog.Logger
	started time.Time
	ready   atomic.Bool // from the end of Start to the beginning of Stop

	// What a reload swaps. Calls read it without a lock.
	reloading   sync.Mutex // serializes reloads
	member      atomic.Pointer[fleet.Member]
	peers       peerTable
	permissions permissions
	keyring     keyringHolder

	// What is opened once, in the order of start.
	audit      auditor
	transports []transport.Transport // one of each kind
	jetStream  *nats.Conn            // the connection to an operator's JetStream; nil uses that of NATS
	access     *accessLog            // nil when agent.yaml turns it off
	stats      callStats
	approvals  *approvals
	client     *caller.Client
	witnesses  witnesses
	answers    *idempotency.Store // nil for an agent that only calls others
	inbox      *callee.Inbox      // nil for an agent that only calls others
	calls      control.Calls      // ties what a skill's process calls to the call that it serves
	control    *control.Server

	mailbox        *durable.Mailbox // nil unless a queue keeps requests to the agent
	mailboxSubject string           // where those requests are published

	announcement *discovery.Announcement // nil unless the agent accepts requests by NATS
}

// errNotReady is the answer before Start has finished and once Stop has begun. The
// control API is open for longer than that, so what Start sets late is used only
// behind this check.
var errNotReady = errors.New("the agent is starting or stopping")

// Ready returns nil while the agent accepts calls, and otherwise why it does not. An
// agent without its broker is not ready, although it runs: supervisors should look at
// it, and need not restart it.
func (d *Daemon) Ready() error {
	if !d.ready.Load() {
		return errNotReady
	}
	// The memory transport has no Err: it is down only with the process.
	for _, t := range d.transports {
		if c, ok := t.(interface{ Err() error }); ok && c.Err() != nil {
			return fmt.Errorf("%s: %w", t.Kind(), c.Err())
		}
	}
	if d.jetStream != nil && d.jetStream.Err() != nil {
		return fmt.Errorf("JetStream: %w", d.jetStream.Err())
	}
	return nil
}

// Lost returns a channel that is closed when the agent can never be reached again
// because its connection to NATS has ended for good. The agent should then be
// stopped, and the process started again by its supervisor. The channel is nil for
// an agent that is not on NATS.
func (d *Daemon) Lost() <-chan struct{} {
	if conn := d.nats(); conn != nil {
		return conn.Ended()
	}
	return nil
}

// nats returns the process's connection to NATS, or nil.
func (d *Daemon) nats() *nats.Conn {
	conn, _ := d.transport(capability.NATS).(*nats.Conn)
	return conn
}

// Files are the paths of everything that [Daemon.Reload] reads.
func (d *Daemon) Files() []string { return d.cfg.Fleet.Files(d.Member()) }

// Client is the agent's end of the calls that it makes.
func (d *Daemon) Client() *caller.Client { return d.client }

// Auditor records what the agent's calls must record.
func (d *Daemon) Auditor() rpc.Auditor { return d.audit }

// Member is what the fleet's files say about the agent, as of the last successful
// reload.
func (d *Daemon) Member() *fleet.Member { return d.member.Load() }

// Socket is the path of the control socket.
func (d *Daemon) Socket() string { return d.cfg.Paths.Socket(d.Member().ID) }

// AuditDB is the path of the audit log. It follows the files, but the open log stays
// where it is until a restart.
func (d *Daemon) AuditDB() string { return AuditDB(d.Member(), d.cfg.Paths) }

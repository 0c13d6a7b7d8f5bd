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
	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/daemon/internal/monitoring"
	"github.com/agentd/agentd/daemon/metrics"
	"github.com/agentd/agentd/daemon/skillapi"
	"github.com/agentd/agentd/daemon/tracing"
	"github.com/agentd/agentd/drift"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/descendants"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/external"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
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

	stopped   sync.Once // by Stop
	stopError error     // of the first Stop

	// Of the start, whose goroutine they belong to.
	turn     turn
	recorded bool // the audit log has the record of the start
	failed   bool // it has failed, and what had begun was stopped

	conditions *health.Board // what is wrong now
	identity   func()        // ends the watch of the keys; nil before it began

	// What a reload swaps. Calls read it without a lock.
	reloading   sync.Mutex                  // serializes reloads
	loaded      atomic.Pointer[fleet.Fleet] // the files in force; cfg.Fleet has those of the start
	member      atomic.Pointer[fleet.Member]
	waiting     atomic.Pointer[[]string]         // keys that take a restart; nil before the first reload
	notReloaded atomic.Pointer[health.Condition] // nil unless the last reload has failed
	peers       peerTable
	permissions permissions
	keyring     keyringHolder
	unread      *health.Condition // of key files that cannot be read; guarded by reloading

	// What the agent may use: nil before openTools. closing are the tools of earlier
	// reloads that calls still use.
	tools   atomic.Pointer[registry.Resolved]
	closing sync.WaitGroup

	// What is opened once, in the order of start.
	tracer      *tracing.Tracer // nil where traces are off
	audit       auditor
	transports  []transport.Transport // one of each kind
	jetStream   *nats.Conn            // the connection to an operator's JetStream; nil uses that of NATS
	access      *accessLog            // nil when agent.yaml turns it off
	stats       callStats
	auditCounts *metrics.Audit
	models      *metrics.Models
	auditSeen   auditWatch
	programs    programs
	approvals   *approvals
	gate        *drift.Gate
	following   following // of the peers' announcements
	client      *caller.Client
	breakers    *policy.Breakers
	witnesses   witnesses
	answers     *answerStore                    // nil for an agent that only calls others
	inbox       *callee.Inbox                   // nil for an agent that only calls others
	actions     atomic.Pointer[actionSet]       // nil for an agent that only calls others
	executions  executions                      // by calls and by the operator
	skillAPI    atomic.Pointer[skillapi.Server] // nil before the agent has a skill that is a process
	workers     workers
	toolServers toolServers          // whose tools run skills
	httpSkills  httpSkills           // the web services that run skills
	external    external.Connections // of the capability mcp
	listening   listening
	mcp         *mcpFace
	clients     controlFace // of the control API
	control     *control.Server
	monitoring  *monitoring.Server // nil for none
	// sharedMonitoring is that of all members, which is not this one's to close; nil for none.
	sharedMonitoring *monitoring.Server

	descendants *descendants.Member         // the processes of the agent's skills
	apart       string                      // keeps the folders of calls apart from those of a run; "" for a run
	confinement atomic.Pointer[confinement] // nil before the agent has such a skill, and where none is confined
	early       atomic.Pointer[hostLook]    // nil but during the start of an agent that confines skills

	mailbox        *durable.Mailbox // nil unless a queue keeps requests to the agent
	mailboxSubject string           // where those requests are published

	announcement *discovery.Announcement // nil unless the agent accepts requests by NATS
	fleetCheck   fleetCheck
	replicas     periodic // asks for them
	sampling     periodic // of how many requests are slow
}

// errNotReady is the answer before Start has finished and once Stop has begun. The
// control API is open for longer than that, so what Start sets late is used only
// behind this check.
var errNotReady = control.ErrNotReady

// Ready returns nil while the agent serves every call, and otherwise why it does not:
// it starts or stops, has no broker, or something that calls depend on fails. Such an
// agent runs: supervisors should look at it, and need not restart it.
func (d *Daemon) Ready() error {
	if !d.ready.Load() {
		if why := d.conditions.Err(); why != nil {
			return fmt.Errorf("%w: %w", errNotReady, why)
		}
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
	if denied, is := d.denied(); is {
		return errors.New(denied.String())
	}
	return errors.Join(d.conditions.Err(), d.workers.awaited(), d.toolsReady())
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

// AuditDB is the path of the open audit log, whatever the files say by now.
func (d *Daemon) AuditDB() string {
	started, _ := d.cfg.Fleet.Member(d.Member().ID)
	return AuditDB(started, d.cfg.Paths)
}

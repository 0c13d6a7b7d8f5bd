package callee

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/check"
	"github.com/agentd/agentd/rpc/internal/id"
	"github.com/agentd/agentd/rpc/internal/wire"
	"github.com/agentd/agentd/rpc/span"
	"github.com/agentd/agentd/transport"
)

// A Config describes an [Inbox].
type Config struct {
	// Self is the agent that is called. Required.
	Self envelope.Address
	// Contract declares the capabilities, and Handlers run them, by skill name. Both
	// are required; [Inbox.SetContract] replaces them.
	Contract *capability.Document
	Handlers map[string]rpc.Handler
	// Services answer other agents' agentd, by name, on a topic of their own each: the
	// requests topic, a dot and the name. A name contains no dots.
	Services map[string]Service
	// Checks decide which requests are served.
	Checks Checks
	// Records keep what the inbox must account for.
	Records rpc.Records
	// Idempotency remembers the answers to requests that have an idempotency key. Nil
	// runs every request; the handler still gets the key.
	Idempotency IdempotencyStore
	// Replays remembers the proven requests of all replicas of the agent, besides those
	// that the inbox remembers by itself. Optional.
	Replays ReplayMemory
	// Limits bound what one inbox does. Zero fields have defaults.
	Limits Limits
	// Identity proves what this agent sends and checks what it receives. Nil sends
	// bare claims, and accepts them.
	Identity rpc.Identity
	// ReplyTopics are the topics where a caller may have its answers besides those that
	// the transport knows to be its own; one that ends in .> covers all below. Optional.
	ReplyTopics func(caller envelope.Address) []string
	// FleetVersion is this agent's own, to warn of callers that are newer. Optional.
	FleetVersion envelope.FleetVersion
	// Tracer takes the spans of sampled requests. Nil makes none.
	Tracer span.Tracer
	// SkillKind says how a skill is run, for its spans. Optional.
	SkillKind func(skill string) string
	// Logger gets what callers may not know. Default: discarded.
	Logger *slog.Logger
}

// Checks are the decisions on the way of a request. Every one may be nil or zero.
type Checks struct {
	// Authorizer decides which requests are served. Nil serves everybody.
	Authorizer rpc.Authorizer
	// Approver asks a person where the Authorizer demands it. Nil denies such requests.
	Approver rpc.Approver
	// Tenants decides for which tenants requests are served. Nil serves them for all, and
	// for none.
	Tenants rpc.TenantGuard
	// Limiter bounds requests over time.
	Limiter rpc.Limiter
	// MinFleetVersion refuses callers of an older fleet, and those that do not say.
	MinFleetVersion envelope.FleetVersion
}

// Limits bound what one inbox does.
type Limits struct {
	// MaxInFlight bounds the requests that run at once, of all capabilities together.
	// Default 256.
	MaxInFlight int
	// MaxQueued bounds the requests of one capability that wait for their turn.
	// Default 2,048; negative means none.
	MaxQueued int
	// MaxQueuedBytes bounds the messages of those that wait. A single larger one may
	// wait all the same. Default 64 MiB.
	MaxQueuedBytes int
	// MaxPayloadBytes bounds the payload of a request, and what a handler may answer.
	// Default 1 MiB.
	MaxPayloadBytes int
	// MaxHops bounds the length of a chain of nested calls. Default 16.
	MaxHops int
	// ClockSkew is how far the clocks of callers may be behind: a request is refused
	// when its deadline has passed by more. Default 0.
	ClockSkew time.Duration
	// CallerCheck is how often the inbox checks that the callers of long-running
	// requests are still connected, on a transport that knows (a [ReplyWatcher]). It
	// cancels the requests of those that are not. Default 5 s.
	CallerCheck time.Duration
}

func (l Limits) withDefaults() Limits {
	if l.MaxInFlight <= 0 {
		l.MaxInFlight = defaultMaxInFlight
	}
	if l.MaxQueued == 0 {
		l.MaxQueued = defaultMaxQueued
	}
	if l.MaxQueuedBytes <= 0 {
		l.MaxQueuedBytes = defaultMaxQueuedBytes
	}
	if l.MaxPayloadBytes <= 0 {
		l.MaxPayloadBytes = rpc.DefaultMaxPayloadBytes
	}
	if l.MaxHops <= 0 {
		l.MaxHops = rpc.DefaultMaxHops
	}
	if l.CallerCheck <= 0 {
		l.CallerCheck = defaultCallerCheck
	}
	return l
}

// An Inbox is the callee's end of calls. It is safe for concurrent use. Once it
// listens it has goroutines, which end with [Inbox.Shutdown].
type Inbox struct {
	cfg Config

	root      context.Context // ends when the inbox stops by force
	stop      context.CancelCauseFunc
	answering context.Context // does not end: an answer that exists is sent
	checking  sync.WaitGroup  // what runs beside the requests, such as liveness checks
	workers   *workers
	requests  *requests

	ids      id.Source
	buffers  wire.Buffers
	verifier *check.Verifier
	replay   *replayCache
	// cancellations are those of requests that have not come yet.
	cancellations cancellations
	denials       policy.Sampler // which denials get records
	// malformed decides which malformed messages get records.
	malformed policy.Sampler
	// lines decides which refused requests and dropped messages get a line in the log.
	lines policy.Sampler

	served atomic.Pointer[servedContract]
	limits atomic.Pointer[Limits] // complete; cfg.Limits has those of New

	mu            sync.Mutex
	subscriptions []subscriptions            // guarded by mu
	receivers     []transport.Receiver       // guarded by mu
	checked       []transport.Transport      // that something watches already; guarded by mu
	keyed         map[KeyedRequest]*keyedRun // underway; guarded by mu
}

// Causes with which the context of a handler ends; see [context.Cause].
var (
	// ErrCallerCancelled: the caller stopped waiting.
	ErrCallerCancelled = errors.New("the caller cancelled the call")
	// ErrCallerGone: the caller's process is no longer connected.
	ErrCallerGone = errors.New("the caller is gone")
	// ErrShutdown: the callee shuts down and waits no longer.
	ErrShutdown = errors.New("the agent is shutting down")
)

// New returns an inbox that does not listen yet. It checks that every declared
// capability can be run.
func New(cfg Config) (*Inbox, error) {
	if _, err := envelope.ParseAddress(string(cfg.Self)); err != nil {
		return nil, fmt.Errorf("callee: Self: %w", err)
	}
	if err := check.Complete(cfg.Records, cfg.Checks.Authorizer != nil || cfg.Checks.Limiter != nil); err != nil {
		return nil, fmt.Errorf("callee: %w", err)
	}
	cfg.Limits = cfg.Limits.withDefaults()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	root, stop := context.WithCancelCause(context.Background())
	in := &Inbox{
		cfg: cfg, root: root, stop: stop, answering: context.WithoutCancel(root), workers: newWorkers(), requests: newRequests(cfg.Limits),
		verifier: check.NewVerifier(rpc.RoleCallee, cfg.Identity, cfg.Records), replay: newReplayCache(),
		keyed: map[KeyedRequest]*keyedRun{},
	}
	in.denials.PerSecond = check.RecordsPerSecond
	in.malformed.PerSecond = check.RecordsPerSecond
	in.lines.PerSecond = linesPerSecond
	in.SetLimits(cfg.Limits)
	return in, in.SetContract(cfg.Contract, cfg.Handlers)
}

// A servedContract is what the inbox serves at a time.
type servedContract struct {
	contract  *capability.Document
	handlers  map[string]rpc.Handler
	inline    map[string]*inlineSkill // those of handlers, by skill name
	published []byte                  // JSON
	revision  string                  // of published
}

// SetContract replaces what the inbox serves, and announces it to callers. Running calls
// are finished under the contract that they began with. After an error everything is as
// it was.
func (in *Inbox) SetContract(contract *capability.Document, handlers map[string]rpc.Handler) error {
	if contract == nil {
		return errors.New("callee: Contract is required")
	}
	var missing []error
	for _, c := range contract.Capabilities {
		// All of them at once: an author fixes the file in one go.
		if handlers[c.Skill] == nil {
			missing = append(missing, fmt.Errorf("callee: capability %q: nothing runs its skill %q", c.Name, c.Skill))
		}
	}
	if missing != nil {
		return errors.Join(missing...)
	}
	form := contract.Published()
	published, err := form.JSON()
	if err != nil {
		return fmt.Errorf("callee: %w", err)
	}
	before := in.served.Swap(&servedContract{contract: contract, handlers: handlers, inline: inlineSkills(handlers), published: published, revision: form.Revision})
	in.requests.setContract(contract)
	if before != nil && before.revision != form.Revision {
		in.announceAll()
	}
	return nil
}

// SetLimits replaces the limits of requests that arrive from now on. How many
// requests a durable queue hands over at once, and how often callers are checked,
// stay as they were.
func (in *Inbox) SetLimits(l Limits) {
	l = l.withDefaults()
	in.limits.Store(&l)
	in.requests.setLimits(l)
}

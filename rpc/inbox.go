package rpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/transport"
)

const defaultMaxInFlight = 256

// An InboxConfig says what an [Inbox] is made of.
type InboxConfig struct {
	// Self is the agent that is called. Required.
	Self envelope.Address
	// Contract declares the capabilities. Required. See [Inbox.Offer].
	Contract *capability.Document
	// Handlers run them, by skill name. Every declared capability's skill must
	// be there.
	Handlers map[string]Handler
	// Auditor keeps schema violations. Required.
	Auditor Auditor
	// Authorizer decides which requests are served. Nil serves everybody.
	Authorizer Authorizer
	// Limiter bounds requests over time. Nil is no limit.
	Limiter Limiter
	// Identity proves what this agent sends, and checks what it gets. Nil sends
	// bare claims, and takes them.
	Identity Identity
	// FleetVersion is this agent's own, to tell callers that are newer. Optional.
	FleetVersion envelope.FleetVersion
	// MinFleetVersion refuses callers of an older fleet, and those that do not
	// say. The zero value refuses nobody.
	MinFleetVersion envelope.FleetVersion
	// Refusals keeps what Authorizer, Limiter and Identity refuse. Required with
	// the first two.
	Refusals RefusalAuditor
	// Idempotency remembers the answers to requests that have an idempotency key.
	// Nil runs every request; the handler still gets the key.
	Idempotency IdempotencyStore
	// Services answer other agents' agentd, by name, on a topic of their own each:
	// the requests topic, a dot and the name. A name holds no dots.
	Services map[string]Service
	// Access hears of every request. Nil is no access log.
	Access AccessLog
	// TenantID, when set, is the only tenant that is served: a request of
	// another, or of none, is refused.
	TenantID string
	// MaxInFlight bounds the requests that run at once. Default 256.
	MaxInFlight int
	// MaxPayloadBytes bounds what a handler may answer. Default 1 MiB.
	MaxPayloadBytes int
	// MaxHops bounds how many calls may lead to one another. Default 16.
	MaxHops int
	// ClockSkew is how far behind the callers' clocks may be: a request is
	// refused when its deadline is past by more. Default 0.
	ClockSkew time.Duration
	// WatchCallers is how long a request runs before it is looked whether its caller's
	// process is still there, and how often then, on a transport that knows (a
	// [ReplyWatcher]). A request whose caller is gone is cancelled. Default 5 s.
	WatchCallers time.Duration
	// Logger gets what callers may not know. Default: discarded.
	Logger *slog.Logger
}

// An Inbox is the callee's end of calls. It is safe for concurrent use. Once it
// listens it has goroutines, which end with [Inbox.Shutdown].
type Inbox struct {
	cfg       InboxConfig
	root      context.Context // ends when the inbox stops by force
	answering context.Context // does not: an answer that there is is sent
	stop      context.CancelCauseFunc
	done      sync.WaitGroup // the running requests

	watching sync.WaitGroup // those who look for callers
	workers  *workers
	ids      idSource

	denials policy.Sampler // which denials get records

	prover *prover
	replay *replayCache

	offer atomic.Pointer[offer]

	mu        sync.Mutex
	doors     []door                     // guarded by mu
	receivers []transport.Receiver       // guarded by mu
	running   map[string]*inboundCall    // by messageId; guarded by mu
	slots     map[string]*slots          // by capability; guarded by mu
	keyed     map[KeyedRequest]*keyedRun // underway; guarded by mu
	closed    bool                       // guarded by mu
}

// A door is one transport's subscriptions.
type door struct {
	transport                       transport.Transport
	requests, capabilities, control transport.Subscription
	services                        []transport.Subscription
}

// Reasons why the context of a handler ends; a handler finds them with context.Cause.
var (
	// ErrCallerCancelled: the caller stopped waiting.
	ErrCallerCancelled = errors.New("the caller cancelled the call")
	// ErrCallerGone: the process that made the call listens no more.
	ErrCallerGone = errors.New("the caller is gone")
	// ErrShutdown: the callee is shutting down and waits no longer.
	ErrShutdown = errors.New("the agent is shutting down")
)

// NewInbox checks that every declared capability can be run.
func NewInbox(cfg InboxConfig) (*Inbox, error) {
	if _, err := envelope.ParseAddress(string(cfg.Self)); err != nil {
		return nil, fmt.Errorf("rpc: inbox: Self: %w", err)
	}
	switch {
	case cfg.Auditor == nil:
		return nil, errors.New("rpc: inbox: Auditor is required")
	case cfg.Refusals == nil && (cfg.Authorizer != nil || cfg.Limiter != nil):
		return nil, errors.New("rpc: inbox: Refusals is required with an Authorizer or a Limiter")
	}
	if cfg.MaxInFlight <= 0 {
		cfg.MaxInFlight = defaultMaxInFlight
	}
	if cfg.MaxPayloadBytes <= 0 {
		cfg.MaxPayloadBytes = defaultMaxPayloadBytes
	}
	if cfg.MaxHops <= 0 {
		cfg.MaxHops = DefaultMaxHops
	}
	if cfg.WatchCallers <= 0 {
		cfg.WatchCallers = defaultWatchCallers
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	root, stop := context.WithCancelCause(context.Background())
	in := &Inbox{cfg: cfg, root: root, answering: context.WithoutCancel(root), stop: stop, running: map[string]*inboundCall{}, slots: map[string]*slots{}, keyed: map[KeyedRequest]*keyedRun{},
		workers: newWorkers(), prover: newProver(cfg.Identity, cfg.Refusals), replay: newReplayCache()}
	in.denials.PerSecond = recordsPerSecond
	return in, in.Offer(cfg.Contract, cfg.Handlers)
}

// An offer is what the inbox serves at a time.
type offer struct {
	contract  *capability.Document
	handlers  map[string]Handler
	published []byte
}

// Offer replaces what the inbox serves. Calls that run are finished on the terms
// that they began with. After an error everything is as it was.
func (in *Inbox) Offer(contract *capability.Document, handlers map[string]Handler) error {
	if contract == nil {
		return errors.New("rpc: inbox: Contract is required")
	}
	var missing []error
	for _, c := range contract.Capabilities {
		if handlers[c.Skill] == nil {
			missing = append(missing, fmt.Errorf("rpc: inbox: capability %q: nothing runs its skill %q", c.Name, c.Skill))
		}
	}
	if missing != nil {
		return errors.Join(missing...)
	}
	published, err := contract.Published().JSON()
	if err != nil {
		return fmt.Errorf("rpc: inbox: %w", err)
	}
	in.offer.Store(&offer{contract: contract, handlers: handlers, published: published})
	return nil
}

// Listen takes the requests of topic. Replicas of the agent that listen on the
// same topic share them. It may be called for several transports.
func (in *Inbox) Listen(t transport.Transport, topic string) error {
	control, err := t.Subscribe(controlTopic(topic), "", in.control)
	if err != nil {
		return fmt.Errorf("rpc: inbox: %w", err)
	}
	group := queueGroup(in.cfg.Self)
	capabilities, err := t.Subscribe(capabilitiesTopic(topic), group, func(m transport.Message) { in.tell(t, m) })
	if err != nil {
		return errors.Join(fmt.Errorf("rpc: inbox: %w", err), control.Close())
	}
	services, err := in.subscribeServices(t, topic)
	if err != nil {
		return errors.Join(err, capabilities.Close(), control.Close())
	}
	opened := door{transport: t, capabilities: capabilities, control: control, services: services}
	opened.requests, err = t.Subscribe(topic, group, func(m transport.Message) { in.receive(t, m) })
	if err != nil {
		errs := []error{fmt.Errorf("rpc: inbox: %w", err), capabilities.Close(), control.Close()}
		for _, s := range services {
			errs = append(errs, s.Close())
		}
		return errors.Join(errs...)
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	known := slices.ContainsFunc(in.doors, func(d door) bool { return d.transport == t })
	in.doors = append(in.doors, opened)
	if w, ok := t.(ReplyWatcher); ok && !known {
		in.watching.Go(func() { in.watchCallers(w, t) })
	}
	return nil
}

// Group is the queue group in which the agent's replicas share requests.
func (in *Inbox) Group() string { return queueGroup(in.cfg.Self) }

// InFlight is how many requests run now.
func (in *Inbox) InFlight() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.running)
}

// Shutdown takes no more requests, and waits for those that run. When ctx ends
// first, their contexts are cancelled, they are waited for, and the
// error wraps ctx's. Requests that had arrived and not begun are refused as
// busy; those that come later are the broker's to report.
func (in *Inbox) Shutdown(ctx context.Context) error {
	in.mu.Lock()
	doors, receivers := in.doors, in.receivers
	in.doors, in.receivers, in.closed = nil, nil, true
	in.mu.Unlock()
	// Requests first, so that running calls can be cancelled until the end.
	var errs []error
	for _, d := range doors {
		errs = append(errs, d.requests.Drain(ctx), d.capabilities.Drain(ctx))
		for _, s := range d.services {
			errs = append(errs, s.Drain(ctx))
		}
	}
	stopped := in.stopReceivers(ctx, receivers)
	finished := make(chan struct{})
	go func() { in.done.Wait(); close(finished) }()
	select {
	case <-finished:
	case <-ctx.Done():
		errs = append(errs, fmt.Errorf("rpc: inbox: requests were cut short: %w", context.Cause(ctx)))
		in.stop(ErrShutdown)
		<-finished
	}
	in.stop(ErrShutdown)
	in.watching.Wait()
	in.workers.stop()
	errs = append(errs, <-stopped)
	for _, d := range doors {
		errs = append(errs, d.control.Close())
	}
	return errors.Join(errs...)
}

// receive takes one message of the requests topic. It does what is quick, and
// leaves the rest to a worker.
func (in *Inbox) receive(t transport.Transport, m transport.Message) {
	e, err := envelope.Decode(m.Data)
	if err != nil {
		in.cfg.Logger.Warn("message ignored", "topic", m.Topic, "reason", err.Error())
		return
	}
	if e.Kind == envelope.Response {
		in.cfg.Logger.Warn("message ignored", "topic", m.Topic, "reason", "a response on a requests topic")
		return
	}
	call := &inboundCall{inbox: in, transport: t, request: e, start: time.Now()}
	if !call.prove() {
		return
	}
	if why := call.findReplyTopic(m.Reply); why != "" {
		in.cfg.Logger.Warn("request ignored", "from", e.From, "correlationId", e.CorrelationID, "reason", why)
		return
	}
	if err := call.admit(); err != nil {
		call.finish(nil, err)
		return
	}
	in.workers.start(call)
}

// tell answers a question for what the agent offers.
func (in *Inbox) tell(t transport.Transport, m transport.Message) {
	e, err := envelope.Decode(m.Data)
	if err != nil || e.Kind != envelope.Request || e.Capability != capabilitiesName {
		in.cfg.Logger.Warn("message ignored", "topic", m.Topic, "reason", "not a question for capabilities")
		return
	}
	call := &inboundCall{inbox: in, transport: t, request: e, start: time.Now()}
	if _, err := in.prover.verify(e); err != nil {
		call.unproven(err)
		return
	}
	if why := call.findReplyTopic(m.Reply); why != "" {
		in.cfg.Logger.Warn("request ignored", "from", e.From, "correlationId", e.CorrelationID, "reason", why)
		return
	}
	if err := call.addressed(); err != nil {
		_ = call.reply(errorReply(call.refuse(err))) // reply has logged what went wrong
		return
	}
	_ = call.reply(okReply(in.offer.Load().published))
}

// start registers call as running, unless there is no room for it.
func (in *Inbox) start(call *inboundCall) *Error {
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case in.closed:
		return newError(CodeBusy, nil, "%s is shutting down", in.cfg.Self)
	case len(in.running) >= in.cfg.MaxInFlight:
		return newError(CodeBusy, nil, "%s runs %d requests already", in.cfg.Self, in.cfg.MaxInFlight)
	case in.running[call.request.MessageID] != nil:
		return newError(CodeInvalidRequest, nil, "a request with this messageId is running already")
	}
	in.running[call.request.MessageID] = call
	in.done.Add(1)
	return nil
}

func (in *Inbox) forget(call *inboundCall) {
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.running, call.request.MessageID)
}

// control takes events that steer calls.
func (in *Inbox) control(m transport.Message) {
	e, err := envelope.Decode(m.Data)
	if err != nil {
		in.cfg.Logger.Warn("control message ignored", "topic", m.Topic, "reason", err.Error())
		return
	}
	what, _ := e.Headers.Get(envelope.HeaderControl)
	if e.Kind != envelope.Event || what != envelope.ControlCancel {
		in.cfg.Logger.Warn("control message ignored", "topic", m.Topic, "reason", "neither an event nor a cancellation")
		return
	}
	if _, err := in.prover.verify(e); err != nil {
		(&inboundCall{inbox: in, request: e}).unproven(err)
		return
	}
	in.mu.Lock()
	call := in.running[e.CausedBy]
	in.mu.Unlock()
	// Only the caller may cancel its call.
	if call != nil && call.request.From == e.From && call.request.CorrelationID == e.CorrelationID {
		call.ctx.end(ErrCallerCancelled)
	}
}

package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/skill"
	"github.com/agentd/agentd/skill/internal/wire"
)

// Defaults of a [Config].
const (
	DefaultConcurrency  = 256
	DefaultStartTimeout = 30 * time.Second
	DefaultPingInterval = 10 * time.Second
	DefaultPingTimeout  = 10 * time.Second
	DefaultWriteTimeout = 10 * time.Second
)

const (
	// maxRequests bounds the nested calls that one call has in progress.
	maxRequests = 64
	// framing is what a message has around an answer, at most.
	framing = 64 << 10
	// maxReplies bounds what waits until a worker reads it, of what it has asked for.
	maxReplies = 64 << 20
	// maxKept bounds the memory for messages that an instance keeps.
	maxKept = 1 << 20
	// maxPlaces is how often a call may be given to an instance that ends before it begins.
	maxPlaces = 5
)

// ErrRetired is the error of a pool that takes no more calls.
var ErrRetired = errors.New("worker: the workers have been replaced")

// A Caller makes nested calls.
type Caller interface {
	RequestAgent(context.Context, rpc.Request) (*rpc.Result, error)
}

// A Capability is one that a worker is to serve.
type Capability = wire.Capability

// A Config describes a [Pool]. The zero value of an optional field is its default.
type Config struct {
	// Name is the skill's, for logs. Required.
	Name string
	// Program is what runs. Required. Its MaxOutputBytes bounds an answer, its KillGrace how
	// long a worker may take to end a cancelled call, or itself. Its Calls gives each call
	// the token with which the program may use the API for skills.
	Program *skill.Process
	// Instances is how many processes there are. Default 1.
	Instances int
	// Concurrency bounds the calls that one instance serves at once, whatever it says of
	// itself. Default 256.
	Concurrency int
	// MaxCalls, MaxAge and MaxMemoryBytes are after how much an instance is replaced; 0 is
	// never. It serves on until another one does.
	MaxCalls       int
	MaxAge         time.Duration
	MaxMemoryBytes int64
	// IdleTimeout is after how long without a call an instance ends, until calls need it again;
	// 0 is never. The first Staying instances do not.
	IdleTimeout time.Duration
	Staying     int
	// StartTimeout bounds the time from the start to the answer to initialize. Default 30 s.
	StartTimeout time.Duration
	// PingInterval is how often an idle instance is asked whether it is there, PingTimeout
	// how long it may take to answer, and WriteTimeout how long it may leave unread what it
	// is sent. Default 10 s each.
	PingInterval, PingTimeout, WriteTimeout time.Duration
	// Capabilities are what the worker must serve. At least one.
	Capabilities []Capability
	// Agent, FleetRoot and URL are what it learns of where it is.
	Agent, FleetRoot, URL string
	// MaxPayloadBytes is what a payload may have, for the worker to know.
	MaxPayloadBytes int
	// Caller makes nested calls; nil refuses them.
	Caller Caller
	// ModelUsage takes what a call's request to a language model used, by the worker's word. It
	// is called by one goroutine of each instance, while the call runs, and returns at once. Nil
	// wants no reports.
	ModelUsage func(*rpc.Invocation, *rpc.ModelUsage)
	// Logger gets what happens to instances, and their standard error. Default: discarded.
	Logger *slog.Logger
	// Changed is called, by one goroutine at a time, when no instance can serve and the last
	// start has failed, with the reason, and with nil when one serves again. Optional.
	Changed func(down error)
}

// A Pool runs a skill in processes that stay. It is safe for concurrent use.
type Pool struct {
	cfg   Config
	log   *slog.Logger
	queue chan *call    // calls that wait for an instance
	wake  chan struct{} // has one when a call waits: an instance that has ended idle may be needed

	begin     sync.Once // the slots
	stopping  context.Context
	stop      context.CancelFunc
	kill      sync.Once
	killed    chan struct{} // closed when Close waits no longer
	slots     sync.WaitGroup
	instances sync.WaitGroup

	standing standing
	waiting  atomic.Int64 // calls
	running  atomic.Int64 // calls
	restarts atomic.Int64 // after faults
	recycled atomic.Int64
}

// New returns a pool. Nothing runs before [Pool.Begin] or the first call.
func New(cfg Config) (*Pool, error) {
	switch {
	case cfg.Program == nil || len(cfg.Program.Command) == 0:
		return nil, errors.New("worker: Config.Program is required")
	case len(cfg.Capabilities) == 0:
		return nil, errors.New("worker: Config.Capabilities is required")
	}
	cfg = cfg.withDefaults()
	p := &Pool{cfg: cfg, log: cfg.Logger.With("skill", cfg.Name), queue: make(chan *call), wake: make(chan struct{}, 1), killed: make(chan struct{})}
	p.stopping, p.stop = context.WithCancel(context.Background())
	p.standing.init(cfg.Instances, cfg.Changed)
	return p, nil
}

func (c Config) withDefaults() Config {
	program := *c.Program
	if program.MaxOutputBytes <= 0 {
		program.MaxOutputBytes = skill.DefaultMaxOutputBytes
	}
	orElse := func(value *time.Duration, other time.Duration) {
		if *value <= 0 {
			*value = other
		}
	}
	orElse(&program.KillGrace, skill.DefaultKillGrace)
	orElse(&c.StartTimeout, DefaultStartTimeout)
	orElse(&c.PingInterval, DefaultPingInterval)
	orElse(&c.PingTimeout, DefaultPingTimeout)
	orElse(&c.WriteTimeout, DefaultWriteTimeout)
	c.Program = &program
	c.Instances = max(c.Instances, 1)
	if c.Concurrency <= 0 {
		c.Concurrency = DefaultConcurrency
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Begin starts the instances, without waiting for them. Only the first call of it, or of
// Handle, does so.
func (p *Pool) Begin() {
	p.begin.Do(func() {
		p.standing.begin()
		for i := range p.cfg.Instances {
			p.slots.Go(func() { (&slot{pool: p, index: i}).run(p.stopping) })
		}
	})
}

// Serving begins, and waits until every instance serves. The error says why one does not, is
// ctx's, or [ErrRetired].
func (p *Pool) Serving(ctx context.Context) error {
	p.Begin()
	return p.standing.awaitAll(ctx, p.stopping.Done())
}

// Handle implements [rpc.Handler]. It returns [ErrRetired] for a call that has not begun when
// the pool is retired.
func (p *Pool) Handle(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
	p.Begin()
	for range maxPlaces {
		answer, err := p.serve(ctx, inv)
		if !errors.Is(err, errNotBegun) {
			return answer, err
		}
	}
	return nil, &rpc.SkillError{Message: "the skill's workers ended before they began the call", Retryable: true}
}

// serve gives a call to one instance, and waits for its outcome.
func (p *Pool) serve(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
	c := &call{ctx: ctx, inv: inv, done: make(chan outcome, 1), taken: make(chan struct{})}
	if calls := p.cfg.Program.Calls; calls != nil {
		var release func()
		c.token, release = calls.Register(ctx)
		defer release()
	}
	if err := p.place(c); err != nil {
		return nil, err
	}
	p.running.Add(1)
	defer p.running.Add(-1)
	return c.wait()
}

// place waits until an instance takes a call. It fails at once while there is none, and none
// is about to be.
func (p *Pool) place(c *call) error {
	if p.stopping.Err() != nil {
		return ErrRetired
	}
	select {
	case p.queue <- c:
		return nil
	default:
	}
	p.waiting.Add(1)
	defer p.waiting.Add(-1)
	p.rouse()
	for {
		changed, down := p.standing.look()
		if down != nil {
			return &rpc.SkillError{Message: "the skill's worker is not running", Retryable: true, Err: down}
		}
		select {
		case p.queue <- c:
			return nil
		case <-c.ctx.Done():
			return stopped(c.ctx)
		case <-p.stopping.Done():
			return ErrRetired
		case <-changed:
		}
	}
}

// rouse has one slot start an instance that has ended idle, if there is one.
func (p *Pool) rouse() {
	select {
	case p.wake <- struct{}{}:
	default: // one is being woken
	}
}

// Retire takes no more calls, and lets the instances finish those that they have. It does not
// wait: Close does.
func (p *Pool) Retire() {
	p.stop()
	p.begin.Do(func() {}) // nothing is started any more
}

// Close retires the pool, and waits until all processes are gone. When ctx ends they are
// killed.
func (p *Pool) Close(ctx context.Context) error {
	p.Retire()
	gone := make(chan struct{})
	go func() { // ends when the processes are gone
		defer close(gone)
		p.slots.Wait()
		p.instances.Wait()
	}()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		p.kill.Do(func() { close(p.killed) })
		<-gone
		return fmt.Errorf("worker: %s was killed: %w", p.cfg.Name, context.Cause(ctx))
	}
}

// A Status describes a pool.
type Status struct {
	// Instances is how many there should be, and Serving how many there are.
	Instances, Serving int
	// Asleep instances have ended idle.
	Asleep int
	// Running calls are served, and Waiting ones wait for an instance.
	Running, Waiting int64
	// Restarts counts instances that were replaced after a fault, Recycled those after
	// MaxCalls, MaxAge or MaxMemoryBytes.
	Restarts, Recycled int64
	// Down is why no instance serves, or nil.
	Down error
	// Begun is false for a pool that waits for its first call, HasServed for one of which no
	// instance has ever served.
	Begun, HasServed bool
}

// Status returns how the pool is.
func (p *Pool) Status() Status {
	s := p.standing.status()
	s.Running, s.Waiting = p.running.Load(), p.waiting.Load()
	s.Restarts, s.Recycled = p.restarts.Load(), p.recycled.Load()
	return s
}

// initializeParams are what an instance learns first.
func (p *Pool) initializeParams() *wire.InitializeParams {
	maxUsages := rpc.MaxModelUsages
	if p.cfg.ModelUsage == nil {
		maxUsages = 0
	}
	return &wire.InitializeParams{
		ProtocolVersions: []int{wire.Version}, Agent: p.cfg.Agent, Skill: p.cfg.Name, FleetRoot: p.cfg.FleetRoot, URL: p.cfg.URL,
		Capabilities: p.cfg.Capabilities,
		Limits: wire.Limits{
			Concurrency: p.cfg.Concurrency, MaxMessageBytes: p.maxMessage(), MaxPayloadBytes: p.cfg.MaxPayloadBytes,
			MaxProgressBytes: rpc.MaxProgressBytes, MaxRequests: maxRequests, MaxModelUsages: maxUsages, StartTimeoutMs: p.cfg.StartTimeout.Milliseconds(),
			GraceMs: p.grace().Milliseconds(), PingTimeoutMs: p.cfg.PingTimeout.Milliseconds(),
		},
	}
}

// maxMessage bounds a line of a worker: an answer, or a request with a payload.
func (p *Pool) maxMessage() int {
	return max(p.cfg.Program.MaxOutputBytes, p.cfg.MaxPayloadBytes) + rpc.MaxProgressBytes + framing
}

func (p *Pool) grace() time.Duration { return p.cfg.Program.KillGrace }

// requestAgent makes a nested call, and returns its result as JSON.
func (p *Pool) requestAgent(ctx context.Context, r rpc.Request) (json.RawMessage, error) {
	result, err := p.cfg.Caller.RequestAgent(ctx, r)
	if result == nil {
		return nil, err
	}
	return result.MarshalJSON() // an outcome, whatever the error says of it
}

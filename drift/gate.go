package drift

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/contain"
)

// A Mode is what the gate does about drift.
type Mode string

// The modes.
const (
	// Enforce refuses calls whose contracts have drifted. It is the default.
	Enforce Mode = "enforce"
	// Warn logs and records drift, and lets the call pass.
	Warn Mode = "warn"
	// Off disables the gate: no peer is asked.
	Off Mode = "off"
)

// Options configure a [Gate]. The zero value of a field is its default.
type Options struct {
	// Mode is Enforce by default; [Gate.SetMode] changes it.
	Mode Mode
	// Auditor keeps a record of each drift, once until it ends. Nil keeps none.
	Auditor Auditor
	// ProbeTimeout bounds how long the gate waits for a peer to describe its
	// capabilities. Default 2 s.
	ProbeTimeout time.Duration
	// Retry is how long the gate waits before it asks a peer again whose calls it
	// refuses or lets go on unproven. The wait doubles from one fruitless question to
	// the next, up to MaxRetry for refused calls and MaxUnproven for the others, and is
	// shortened by up to a half at random. Defaults 1 s, 2 min and 10 s.
	Retry, MaxRetry, MaxUnproven time.Duration
	// Refresh is after how long a proof is renewed, behind the calls' backs. Default
	// 5 min.
	Refresh time.Duration
	// Compile bounds the work of compiling what a peer publishes.
	Compile schema.CompileLimits
	// Budget bounds the work of a proof.
	Budget contain.Budget
	// Logger receives warnings. Default: none.
	Logger *slog.Logger
	// Changed is called when what [Gate.Refused] returns about a capability has become an error,
	// or is none any more. It is on the path of a call, and must not block. Nil is not called.
	Changed func()
}

func (o Options) withDefaults() Options {
	for _, d := range []struct {
		field    *time.Duration
		standard time.Duration
	}{
		{&o.ProbeTimeout, 2 * time.Second}, {&o.Retry, time.Second}, {&o.MaxRetry, 2 * time.Minute},
		{&o.MaxUnproven, 10 * time.Second}, {&o.Refresh, 5 * time.Minute},
	} {
		if *d.field <= 0 {
			*d.field = d.standard
		}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Budget.Logger == nil {
		o.Budget.Logger = o.Logger
	}
	return o
}

// backoff is the wait after a number of fruitless questions.
func (o *Options) backoff(failures int, most time.Duration) time.Duration {
	return policy.NewBackoff(&capability.RetryPolicy{InitialDelay: o.Retry, MaxDelay: max(most, o.Retry), BackoffMultiplier: 2}).
		Delay(failures, rand.Float64())
}

// jittered takes up to half of d away, so that agents that started together do not
// ask together.
func (o *Options) jittered(d time.Duration) time.Duration {
	return d - time.Duration(rand.Float64()*float64(d)/2)
}

// A Gate is layer 1: it checks contracts before calls. It is safe for concurrent
// use. Questions and proofs run on goroutines of the gate's own, which end by
// themselves; [Gate.Close] ends them at once.
type Gate struct {
	opts  Options
	mode  atomic.Pointer[Mode]
	tasks *tasks

	mu    sync.RWMutex
	peers map[envelope.Address]*peerState // guarded by mu
}

var _ caller.Gate = (*Gate)(nil)

// NewGate returns a gate that has not asked any peer yet.
func NewGate(opts Options) *Gate {
	g := &Gate{opts: opts.withDefaults(), tasks: newTasks(), peers: map[envelope.Address]*peerState{}}
	g.SetMode(g.opts.Mode)
	return g
}

// Close ends all questions and proofs and waits for their goroutines. Calls at the
// gate end with [caller.ErrGateClosed]. It may be called twice.
func (g *Gate) Close() { g.tasks.close() }

// Mode is what the gate does about drift now.
func (g *Gate) Mode() Mode { return *g.mode.Load() }

// SetMode changes what the gate does about drift, from the next call on. "" is
// Enforce.
func (g *Gate) SetMode(m Mode) {
	if m == "" {
		m = Enforce
	}
	g.mode.Store(&m)
}

// Notify tells the gate that a peer may serve another contract now. revision is that of
// what it serves, or "". It is a hint and believed in nothing: the next call has the
// peer asked, once a second at most.
func (g *Gate) Notify(peer envelope.Address, revision string) {
	g.mu.RLock()
	s := g.peers[peer]
	g.mu.RUnlock()
	if s != nil {
		s.notify(revision, pollGap)
	}
}

// Reset has every peer asked again by the next call to it, after a change of this
// agent's own files. peers are those that it has now. Others are forgotten, and so is
// what no call can meet any more because a contract of this agent has changed.
func (g *Gate) Reset(peers []rpc.Peer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	kept := map[envelope.Address]*peerState{}
	for i := range peers {
		p := &peers[i]
		if s := g.peers[p.Address]; s != nil && s.at(p) {
			s.forget(p.Contract)
			s.notify("", 0)
			kept[p.Address] = s
		}
	}
	g.peers = kept
}

// Check implements [caller.Gate].
func (g *Gate) Check(ctx context.Context, p caller.Probe) (caller.Clearance, error) {
	mode := g.Mode()
	if mode == Off {
		return caller.Clearance{}, nil
	}
	s := g.peer(&p.Peer)
	if c, ok := s.decided(&p, mode, time.Now()); ok {
		return c, nil
	}
	if !p.Deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, p.Deadline)
		defer cancel()
	}
	st, err := g.decide(ctx, s, p, mode)
	if err != nil {
		return caller.Clearance{}, err
	}
	return g.apply(ctx, s, p, mode, st)
}

// decide looks at the peer until the call has a decision, or gives up.
func (g *Gate) decide(ctx context.Context, s *peerState, p caller.Probe, mode Mode) (decision, error) {
	var before *task
	asked := false
	for {
		st, w, err := g.next(s, p, mode, before, asked)
		if err != nil || w.task == nil || w.patience == 0 {
			return st, err
		}
		if err := w.task.wait(ctx, p.Capability.Name, w.patience); err != nil {
			return decision{}, err
		}
		before, asked = nil, asked || w.task.asks
		if w.task.over() {
			before = w.task
		}
	}
}

// apply turns a decision into the result of Check, according to the mode.
func (g *Gate) apply(ctx context.Context, s *peerState, p caller.Probe, mode Mode, st decision) (caller.Clearance, error) {
	odd := false
	if p.Final && st.err == nil {
		// Other replicas may serve the call; the one that it met last does not.
		st.err = s.refusedBy(p)
		odd = st.err != nil
	}
	if st.err == nil {
		return st.clearance, nil
	}
	// The record comes first. If it cannot be written the call fails, in every mode.
	if err := g.report(ctx, s, p, mode, st.err, odd); err != nil {
		return caller.Clearance{}, err
	}
	if mode == Enforce {
		return caller.Clearance{}, st.err
	}
	return st.clearance, nil
}

// refusedBy returns what is wrong with the contract that refused a call, or nil.
func (s *peerState) refusedBy(p caller.Probe) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for at, v := range s.tools[p.Capability.Name].verdicts {
		if v.claimed == p.Stale && at.built == p.Capability.Digest && at.least == p.Peer.MinSchemaVersion && v.err != nil {
			return v.err
		}
	}
	return nil
}

// peer returns the state of a peer where it is reached now.
func (g *Gate) peer(p *rpc.Peer) *peerState {
	g.mu.RLock()
	s := g.peers[p.Address]
	g.mu.RUnlock()
	if s != nil && s.at(p) {
		return s
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if s = g.peers[p.Address]; s == nil || !s.at(p) {
		s = newPeerState(p)
		g.peers[p.Address] = s
	}
	return s
}

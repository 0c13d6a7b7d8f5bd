package drift

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/schema"
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

// A Record is one drift that the gate has detected.
type Record struct {
	// Peer is the agent that was to be called.
	Peer envelope.Address
	// Capability is the name of the function.
	Capability string
	// Err is a *SchemaDriftError, *UnsupportedSchemaError or *CapabilitiesContractError.
	Err error
	// Enforced is whether the call was refused for it.
	Enforced bool
}

// An Auditor keeps drift records. It is safe for concurrent use.
type Auditor interface {
	// RecordSchemaDrift returns once the record is durable.
	RecordSchemaDrift(ctx context.Context, r Record) error
}

// Options configure a [Gate]. The zero value of a field is its default.
type Options struct {
	// Mode is Enforce by default.
	Mode Mode
	// Auditor keeps a record of each drift, once per pair of contracts. Nil keeps
	// none.
	Auditor Auditor
	// ProbeTimeout bounds how long the gate waits for a peer to describe its
	// capabilities. Default 2 s.
	ProbeTimeout time.Duration
	// RetryAfter is how long the gate waits before it asks a peer again that did not
	// answer, or whose answer was malformed. Default 10 s.
	RetryAfter time.Duration
	// Budget bounds the work of a proof.
	Budget schema.Budget
	// Logger receives warnings. Default: none.
	Logger *slog.Logger
}

// A Gate is layer 1: it checks contracts before calls. It is safe for concurrent
// use.
type Gate struct {
	opts Options

	mu    sync.Mutex
	peers map[envelope.Address]*peerState // guarded by mu
}

var _ caller.Gate = (*Gate)(nil)

// NewGate returns a gate that has not asked any peer yet.
func NewGate(opts Options) *Gate {
	if opts.Mode == "" {
		opts.Mode = Enforce
	}
	if opts.ProbeTimeout <= 0 {
		opts.ProbeTimeout = 2 * time.Second
	}
	if opts.RetryAfter <= 0 {
		opts.RetryAfter = 10 * time.Second
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Budget.Logger == nil {
		opts.Budget.Logger = opts.Logger
	}
	return &Gate{opts: opts, peers: map[envelope.Address]*peerState{}}
}

// A peerState is what the gate knows about one peer.
//
// A call holds token while it asks the peer and proves. Asking takes as long as
// the network and a proof takes CPU time, so that a hundred first calls must not
// do either a hundred times. It is a channel and no mutex because the calls that
// wait must still be able to end with their contexts. mu guards the fields alone
// and is never held across a wait; the common case takes only its read lock.
type peerState struct {
	token chan struct{} // has one element while no call holds it

	mu       sync.RWMutex
	probed   bool                  // the peer has been asked; guarded by mu
	live     *capability.Published // nil: the peer did not answer; guarded by mu
	failure  error                 // the answer was malformed; guarded by mu
	askAgain time.Time             // zero: when the peer reports a change; guarded by mu
	verdicts map[pair]verdict      // guarded by mu
}

// A pair is the two contracts of one capability that a verdict is about.
type pair struct{ name, built, live string }

// A verdict is the outcome of comparing a pair.
type verdict struct {
	digest string // of the live capability
	err    error
}

// Check implements [caller.Gate].
func (g *Gate) Check(ctx context.Context, p caller.Probe) (string, error) {
	if g.opts.Mode == Off {
		return "", nil
	}
	state := g.peer(p.Peer.Address)
	if v, ok := state.known(p, time.Now()); ok {
		return g.apply(v)
	}
	select {
	case <-state.token:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	defer func() { state.token <- struct{}{} }()
	if v, ok := state.known(p, time.Now()); ok { // another call has done it meanwhile
		return g.apply(v)
	}
	if state.outdated(p, time.Now()) {
		if err := g.ask(ctx, p, state); err != nil {
			return "", err
		}
	}
	v := g.judge(ctx, p, state)
	if ctx.Err() != nil {
		// The proof may have been cut short: its verdict must not be cached.
		return "", context.Cause(ctx)
	}
	if v.err != nil {
		// The record comes first. If it cannot be written the call fails, in every
		// mode, and nothing is cached: the next call tries again.
		if err := g.report(ctx, p, v.err); err != nil {
			return "", err
		}
	}
	state.keep(p, v)
	return g.apply(v)
}

// apply turns a verdict into the result of Check, according to the mode.
func (g *Gate) apply(v verdict) (string, error) {
	if v.err != nil && g.opts.Mode == Enforce {
		return "", v.err
	}
	return v.digest, nil
}

func (g *Gate) peer(a envelope.Address) *peerState {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.peers[a]
	if s == nil {
		s = &peerState{token: make(chan struct{}, 1), verdicts: map[pair]verdict{}}
		s.token <- struct{}{}
		g.peers[a] = s
	}
	return s
}

// known returns the verdict that has been reached before, if it is still current.
func (s *peerState) known(p caller.Probe, now time.Time) (verdict, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if !s.current(p, now) {
		return verdict{}, false
	}
	v, ok := s.verdicts[s.pair(p)]
	return v, ok
}

// current reports whether the peer's last answer can still be relied on. The caller
// holds mu.
//
// There is no expiry: requests carry the digest of the contract that was proven,
// and a peer whose contract has changed refuses them, which sets Stale.
func (s *peerState) current(p caller.Probe, now time.Time) bool {
	if !s.probed || !s.askAgain.IsZero() && !now.Before(s.askAgain) {
		return false
	}
	return p.Stale == "" || s.liveDigest(p.Capability.Name) == p.Stale
}

func (s *peerState) outdated(p caller.Probe, now time.Time) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return !s.current(p, now)
}

// pair returns the contracts that p is about. The caller holds mu.
func (s *peerState) pair(p caller.Probe) pair {
	return pair{name: p.Capability.Name, built: p.Capability.Digest, live: s.liveDigest(p.Capability.Name)}
}

func (s *peerState) liveDigest(name string) string {
	if s.live == nil {
		return ""
	}
	return s.live.ToolSchemas[name].Digest
}

func (s *peerState) keep(p caller.Probe, v verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.verdicts[s.pair(p)] = v
}

// ask asks the peer what it serves and keeps the answer, or the fact that there is
// none. It returns an error only when ctx ends.
func (g *Gate) ask(ctx context.Context, p caller.Probe, s *peerState) error {
	probeCtx, cancel := context.WithTimeout(ctx, g.opts.ProbeTimeout)
	defer cancel()
	data, err := p.Published(probeCtx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var live *capability.Published
	var failure error
	if err == nil {
		live, err = capability.ParsePublished(data)
		if err == nil && live.Agent != p.Peer.Address {
			err = fmt.Errorf("it answers for %s", live.Agent)
		}
		if err != nil {
			live, failure = nil, &CapabilitiesContractError{Peer: p.Peer.Address, Err: err}
		}
	} else {
		g.opts.Logger.Warn("drift gate: the peer does not describe its capabilities; calls to it go on unproven",
			"peer", p.Peer.Address, "reason", err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.probed, s.live, s.failure, s.askAgain = true, live, failure, time.Time{}
	clear(s.verdicts)
	if live == nil {
		s.askAgain = time.Now().Add(g.opts.RetryAfter)
	}
	return nil
}

// judge compares the contracts of one capability.
func (g *Gate) judge(ctx context.Context, p caller.Probe, s *peerState) verdict {
	s.mu.RLock()
	live, failure := s.live, s.failure
	s.mu.RUnlock()
	switch {
	case failure != nil:
		return verdict{err: failure}
	case live == nil:
		return verdict{}
	}
	tool, ok := live.ToolSchemas[p.Capability.Name]
	if !ok {
		return verdict{err: &SchemaDriftError{
			Peer: p.Peer.Address, Capability: p.Capability.Name, Built: p.Capability.Digest,
			Reason: "the peer no longer offers it",
		}}
	}
	v := verdict{digest: tool.Digest}
	// Equal digests need no proof: every schema contains itself. The version is
	// checked even so, as a digest covers the name and the schemas alone.
	if v.err = checkVersion(p, tool); v.err == nil && tool.Digest != p.Capability.Digest {
		v.err = prove(ctx, p, tool, g.opts.Budget)
	}
	return v
}

// report logs and records drift.
func (g *Gate) report(ctx context.Context, p caller.Probe, err error) error {
	enforced := g.opts.Mode == Enforce
	g.opts.Logger.Warn("drift gate", "peer", p.Peer.Address, "capability", p.Capability.Name, "enforced", enforced, "reason", err.Error())
	if g.opts.Auditor == nil {
		return nil
	}
	rerr := g.opts.Auditor.RecordSchemaDrift(ctx, Record{
		Peer: p.Peer.Address, Capability: p.Capability.Name, Err: err, Enforced: enforced,
	})
	if rerr != nil {
		return errors.Join(err, fmt.Errorf("drift: the audit record could not be written: %w", rerr))
	}
	return nil
}

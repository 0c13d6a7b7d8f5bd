package drift

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/caller"
)

// A peerState is what the gate knows about one peer. mu is held for look-ups alone,
// never across a question, a proof or a record.
type peerState struct {
	address          envelope.Address
	transport, topic string
	refusals         *rate.Limiter // of the polls that the peer's refusals cause

	mu sync.RWMutex
	// What the newest poll has found out. generation counts what was learned; 0 means
	// that nothing ever was.
	generation uint64
	outcome    outcome
	why        error                   // for every outcome but answered
	answers    []*capability.Published // different ones of several replicas
	unusable   []string                // what the peer offers and this agent's copy of its file lacks
	reported   string                  // the revision for which that was logged

	poll   *task     // the poll under way, or nil
	ended  time.Time // when the last poll ended
	due    time.Time // when a call has the peer asked because of news; zero: there is none
	wanted string    // the revision that the news is about, or ""

	tools map[string]*toolState // by capability
}

const (
	// pollGap is the least time between a poll and the next one that news causes.
	// Anybody who may publish on the broker can send news.
	pollGap = time.Second
	// refusalBurst is how many polls in a row refusals may cause; one a second in the
	// long run.
	refusalBurst = 5
	// maxQuestions bounds one poll. Each question may meet another replica: with one odd
	// replica among three, one poll in seven hundred meets none of the others. A poll
	// that would overturn a proof asks more: one in sixty thousand.
	maxQuestions, maxDoubts = 6, 10
	// shortWait is how long a call that may go on waits for news about its peer.
	shortWait = 250 * time.Millisecond
)

func newPeerState(p *rpc.Peer) *peerState {
	return &peerState{
		address: p.Address, transport: p.Transport, topic: p.Topic,
		refusals: rate.NewLimiter(rate.Every(pollGap), refusalBurst), tools: map[string]*toolState{},
	}
}

// at reports whether the state is about the peer where it is reached now.
func (s *peerState) at(p *rpc.Peer) bool { return s.transport == p.Transport && s.topic == p.Topic }

// tool returns the state of a capability. The caller holds mu.
func (s *peerState) tool(name string) *toolState {
	t := s.tools[name]
	if t == nil {
		t = &toolState{verdicts: map[judged]verdict{}, proofs: map[contracts]error{}, reporting: make(chan struct{}, 1)}
		s.tools[name] = t
	}
	return t
}

// decided returns the clearance of a call to a capability that has been proven. It is
// the path of nearly every call.
func (s *peerState) decided(p *caller.Probe, mode Mode, now time.Time) (caller.Clearance, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t := s.tools[p.Capability.Name]
	if t == nil || p.Stale != "" || t.generation == 0 || t.generation != s.generation || !t.decision.proven() {
		return caller.Clearance{}, false
	}
	if t.key.built != p.Capability.Digest || t.key.least != p.Peer.MinSchemaVersion || t.key.mode != mode {
		return caller.Clearance{}, false
	}
	if !now.Before(t.due) || !s.due.IsZero() && !now.Before(s.due) {
		return caller.Clearance{}, false
	}
	return t.decision.clearance, true
}

// judge is the rule for each outcome of a question. ok is false while a proof is
// missing, and kept for a decision that may be remembered. The caller holds mu.
func (s *peerState) judge(t *toolState, transient map[string]verdict) (st decision, ok, kept bool) {
	//exhaustive:enforce
	switch s.outcome {
	case gaveUp:
		return decision{}, false, false // it is never learned
	case unreachable:
		// A peer that is silent for now may still serve what was proven: the digest
		// makes sure of it. One that has become too old to publish anything does not.
		var published *capability.PublishedError
		if len(t.accepted) > 0 && !errors.As(s.why, &published) {
			return decision{clearance: cleared(t.accepted)}, true, true
		}
		return decision{clearance: s.unproven()}, true, true
	case malformed, newerMajor:
		err := &CapabilitiesContractError{Peer: s.address, Err: s.why}
		return decision{err: err, clearance: caller.Clearance{Unproven: err.Error()}}, true, true
	case answered:
		return t.compare(s.answers, transient)
	}
	return decision{}, false, false
}

// A wait is what a call waits for before it looks again; a nil task is nothing.
type wait struct {
	task     *task
	patience time.Duration
}

// next is one look at a peer: it returns the decision of the call, or what the call
// must wait for first, or why neither can be had. before is the task that the call
// has waited for to its end, or nil, and asked whether it has waited for an answer of
// the peer.
func (g *Gate) next(s *peerState, p caller.Probe, mode Mode, before *task, asked bool) (decision, wait, error) {
	var tell []func()
	defer func() { // without the lock
		for _, f := range tell {
			f()
		}
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	now, name := time.Now(), p.Capability.Name
	t := s.tool(name)
	t.rekey(keyOf(p, mode))
	if s.generation == 0 {
		if before != nil && before.err != nil {
			return decision{}, wait{}, before.err
		}
		return s.waitFor(g.startPoll(s, t, p), whole)
	}
	st := t.decision
	if t.generation != s.generation {
		var transient map[string]verdict
		if before != nil && before.forTool == name {
			transient = before.transient
		}
		judged, ok, kept := s.judge(t, transient)
		if !ok {
			return s.waitFor(g.startProof(s, t, p), whole)
		}
		if st = judged; kept {
			earlier := t.decision
			t.decide(st, s, &g.opts, now)
			tell = g.changes(s, t, earlier, p, now)
		}
	}
	if asked {
		return st, wait{}, nil
	}
	if patience, ask := s.mustAsk(t, st, &p, now); ask {
		_, w, err := s.waitFor(g.startPoll(s, t, p), patience)
		return st, w, err
	}
	return st, wait{}, nil
}

func (s *peerState) waitFor(f *task, patience time.Duration) (decision, wait, error) {
	if f == nil {
		return decision{}, wait{}, caller.ErrGateClosed
	}
	return decision{}, wait{f, patience}, nil
}

// mustAsk reports whether the peer must be asked before or beside a call, and how
// long the call waits for that. What lets a call go on does not hold it up for long:
// the digests that it carries protect it. The caller holds mu.
func (s *peerState) mustAsk(t *toolState, st decision, p *caller.Probe, now time.Time) (patience time.Duration, ask bool) {
	news := !s.due.IsZero() && !now.Before(s.due)
	switch {
	case p.Stale != "":
		return whole, !p.Final && !st.accepts(p.Stale) && (s.poll != nil || s.refusals.AllowN(now, 1))
	case !news && now.Before(t.due):
		return 0, false
	case st.err != nil:
		return whole, true
	case news || !st.proven():
		return shortWait, true
	}
	return 0, true // a proof is renewed behind the calls' backs
}

// startProof begins to compare the contract of a call with the peer's answers.
func (g *Gate) startProof(s *peerState, t *toolState, p caller.Probe) *task {
	if t.proof != nil {
		return t.proof
	}
	f, answers := newTask(p.Capability.Name), s.answers
	p = p.Detached()
	if !g.tasks.run(f, g.opts.ProbeTimeout, func(ctx context.Context) {
		for _, live := range answers {
			g.verdictFor(ctx, s, f, p, live)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		t.proof = nil
	}) {
		return nil
	}
	t.proof = f
	return f
}

// verdictFor is verdictOn for those who wait for f: also a verdict that is not kept
// answers them.
func (g *Gate) verdictFor(ctx context.Context, s *peerState, f *task, p caller.Probe, live *capability.Published) verdict {
	v, kept := g.verdictOn(ctx, s, p, live)
	if !kept {
		if f.transient == nil {
			f.transient = map[string]verdict{}
		}
		f.transient[live.Revision] = v
	}
	return v
}

// forget ends what is known with respect to an earlier contract of this agent.
func (s *peerState) forget(contract *capability.Document) {
	s.mu.RLock()
	answers := s.answers
	s.mu.RUnlock()
	unusable := unknownTo(contract, answers) // without the lock, as in learn
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unusable = unusable
	for name, t := range s.tools {
		if contract != nil {
			if _, known := contract.Lookup(name); known {
				continue
			}
		}
		t.generation = 0 // calls that began with the earlier contract may still hold t
	}
}

// notify notes that the peer may serve something else now. revision is what it serves,
// if that is known, and gap the least time since the last poll.
func (s *peerState) notify(revision string, gap time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.outcome == answered && len(s.answers) == 1 && s.answers[0].Revision == revision
	if s.generation == 0 && s.poll == nil || known && revision != "" {
		return
	}
	now := time.Now()
	if s.due = s.ended.Add(gap); s.due.Before(now) {
		s.due = now
	}
	s.wanted = revision
	for _, t := range s.tools {
		t.failures = 0
	}
}

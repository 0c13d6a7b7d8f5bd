package drift

import (
	"context"
	"errors"
	"slices"
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
	told       string                  // the revision for which that was logged

	poll   *flight   // under way, or nil
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
		t = &toolState{verdicts: map[judged]verdict{}, proofs: map[contracts]error{}, telling: make(chan struct{}, 1)}
		s.tools[name] = t
	}
	return t
}

// settled returns the clearance of a call to a capability that has been proven. It is
// the path of nearly every call.
func (s *peerState) settled(p *caller.Probe, mode Mode, now time.Time) (caller.Clearance, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t := s.tools[p.Capability.Name]
	if t == nil || p.Stale != "" || t.generation == 0 || t.generation != s.generation || !t.standing.proven() {
		return caller.Clearance{}, false
	}
	if t.key.built != p.Capability.Digest || t.key.least != p.Peer.MinSchemaVersion || t.key.mode != mode {
		return caller.Clearance{}, false
	}
	if !now.Before(t.due) || !s.due.IsZero() && !now.Before(s.due) {
		return caller.Clearance{}, false
	}
	return t.standing.clearance, true
}

// judge is the rule for each outcome of a question. ok is false while a proof is
// missing, and kept for a standing that may be remembered. The caller holds mu.
func (s *peerState) judge(t *toolState, transient map[string]verdict) (st standing, ok, kept bool) {
	//exhaustive:enforce
	switch s.outcome {
	case gaveUp:
		return standing{}, false, false // it is never learned
	case unreachable:
		// A peer that is silent for now may still serve what was proven: the digest
		// makes sure of it. One that has become too old to publish anything does not.
		var published *capability.PublishedError
		if len(t.accepted) > 0 && !errors.As(s.why, &published) {
			return standing{clearance: cleared(t.accepted)}, true, true
		}
		return standing{clearance: s.unproven()}, true, true
	case malformed, newerMajor:
		err := &CapabilitiesContractError{Peer: s.address, Err: s.why}
		return standing{err: err, clearance: caller.Clearance{Unproven: err.Error()}}, true, true
	case answered:
		return t.compare(s.answers, transient)
	}
	return standing{}, false, false
}

// A wait is what a call waits for before it looks again; a nil flight is nothing.
type wait struct {
	flight   *flight
	patience time.Duration
}

// next is one look at a peer: it returns the standing of the call, or what the call
// must wait for first, or why neither can be had. before is the flight that the call
// has waited for to its end, or nil, and asked whether it has waited for an answer of
// the peer.
func (g *Gate) next(s *peerState, p caller.Probe, mode Mode, before *flight, asked bool) (standing, wait, error) {
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
			return standing{}, wait{}, before.err
		}
		return s.waitFor(g.startPoll(s, t, p), whole)
	}
	st := t.standing
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
			t.settle(st, s, &g.opts, now)
			tell = g.changes(s, t, p, now)
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

func (s *peerState) waitFor(f *flight, patience time.Duration) (standing, wait, error) {
	if f == nil {
		return standing{}, wait{}, caller.ErrGateClosed
	}
	return standing{}, wait{f, patience}, nil
}

// mustAsk reports whether the peer must be asked before or beside a call, and how
// long the call waits for that. What lets a call go on does not hold it up for long:
// the digests that it carries protect it. The caller holds mu.
func (s *peerState) mustAsk(t *toolState, st standing, p *caller.Probe, now time.Time) (patience time.Duration, ask bool) {
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

// startPoll begins to ask the peer what it serves, unless somebody does already. It
// returns nil when the gate is closed. The caller holds mu.
func (g *Gate) startPoll(s *peerState, t *toolState, p caller.Probe) *flight {
	if s.poll != nil {
		return s.poll
	}
	f := newFlight(p.Capability.Name)
	f.asks = true
	p = p.Detached()
	wanted := s.wanted
	if !g.crew.run(f, g.opts.ProbeTimeout, func(ctx context.Context) { g.ask(ctx, s, t, f, p, wanted) }) {
		return nil
	}
	s.poll, s.due, s.wanted = f, time.Time{}, ""
	return f
}

// startProof begins to compare the contract of a call with the peer's answers.
func (g *Gate) startProof(s *peerState, t *toolState, p caller.Probe) *flight {
	if t.proof != nil {
		return t.proof
	}
	f, answers := newFlight(p.Capability.Name), s.answers
	p = p.Detached()
	if !g.crew.run(f, g.opts.ProbeTimeout, func(ctx context.Context) {
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
func (g *Gate) verdictFor(ctx context.Context, s *peerState, f *flight, p caller.Probe, live *capability.Published) verdict {
	v, kept := g.verdictOn(ctx, s, p, live)
	if !kept {
		if f.transient == nil {
			f.transient = map[string]verdict{}
		}
		f.transient[live.Revision] = v
	}
	return v
}

// ask is a poll. It asks until an answer lets the call go on whose poll it is, and
// until it has met the contract that it looks for: each question may meet another
// replica.
func (g *Gate) ask(ctx context.Context, s *peerState, t *toolState, f *flight, p caller.Probe, wanted string) {
	var found []*capability.Published
	var last answer
	passes, met := false, wanted == "" && p.Stale == ""
	most := maxQuestions
	s.mu.RLock()
	if len(t.accepted) > 0 {
		most = maxDoubts
	}
	s.mu.RUnlock()
	for range most {
		data, err := p.Published(ctx)
		last = readAnswer(s.address, data, err)
		if last.outcome == gaveUp || last.outcome == unreachable {
			break // asking on would ask nobody
		}
		if last.outcome != answered {
			// The answer may have taken all the time there was; ctx may be about to end.
			if end, _ := ctx.Deadline(); !time.Now().Before(end) {
				break
			}
			continue
		}
		if !slices.ContainsFunc(found, func(have *capability.Published) bool { return have.Revision == last.live.Revision }) {
			if found = append(found, last.live); len(found) == 1 {
				s.learn(g, p, last, slices.Clone(found))
				f.landed() // other capabilities need not wait for this one's proof
			}
			v := g.verdictFor(ctx, s, f, p, last.live)
			passes = passes || v.err == nil
			met = met || last.live.Revision == wanted || p.Stale != "" && v.claimed == p.Stale
		}
		if passes && met {
			break
		}
	}
	switch {
	case len(found) > 1:
		s.learn(g, p, answer{outcome: answered}, found)
	case len(found) == 1: // learned already
	case g.crew.ctx.Err() != nil:
		f.err = caller.ErrGateClosed
	case last.outcome == gaveUp:
		f.err = last.err
	default:
		s.learn(g, p, last, nil)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.poll, s.ended, t.polled = nil, time.Now(), s.generation
	if next := s.ended.Add(pollGap); !s.due.IsZero() && s.due.Before(next) { // news that came meanwhile
		s.due = next
	}
}

// learn puts what the peer has answered in the place of what was known before.
func (s *peerState) learn(g *Gate, p caller.Probe, a answer, found []*capability.Published) {
	tell := false
	s.mu.Lock()
	defer func() {
		unusable := s.unusable
		s.mu.Unlock()
		if tell {
			g.opts.Logger.Info("drift gate: the peer offers capabilities that this agent's copy of its file lacks, so it cannot call them",
				"peer", s.address, "capabilities", unusable)
		}
	}()
	s.generation++
	s.outcome, s.why, s.answers, s.unusable = a.outcome, a.err, found, nil
	if p.Peer.Contract == nil {
		return
	}
	for _, live := range found {
		for name := range live.ToolSchemas {
			if _, known := p.Peer.Contract.Lookup(name); !known && !slices.Contains(s.unusable, name) {
				s.unusable = append(s.unusable, name)
			}
		}
	}
	slices.Sort(s.unusable)
	if len(s.unusable) > 0 && s.told != found[0].Revision {
		s.told, tell = found[0].Revision, true
	}
}

// hear notes that the peer may serve something else now. revision is what it serves,
// if that is known, and gap the least time since the last poll.
func (s *peerState) hear(revision string, gap time.Duration) {
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

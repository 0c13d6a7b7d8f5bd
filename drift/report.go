package drift

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc/caller"
)

// A Record is one drift that the gate has detected.
type Record struct {
	// Peer is the agent that was to be called.
	Peer envelope.Address
	// Capability is the name of the function.
	Capability string
	// Err is a *SchemaDriftError, *UnsupportedCloudToolSchema or
	// *CapabilitiesContractError.
	Err error
	// Enforced is whether the call was refused for it.
	Enforced bool
	// Call names the call that met it.
	Call caller.CallIDs
}

// An Auditor keeps drift records. It is safe for concurrent use.
type Auditor interface {
	// RecordSchemaDrift returns once the record is durable.
	RecordSchemaDrift(ctx context.Context, r Record) error
}

// report logs and records a refusal, once until it ends. odd marks that of a single
// replica, which is reported once for good: while a peer is deployed anew, such refusals
// come and go with every call.
func (g *Gate) report(ctx context.Context, s *peerState, p caller.Probe, mode Mode, refusal error, odd bool) error {
	s.mu.RLock()
	t := s.tools[p.Capability.Name]
	s.mu.RUnlock()
	text := string(mode) + " " + refusal.Error()
	reported := func() bool {
		s.mu.RLock()
		defer s.mu.RUnlock()
		return t.reported == text || odd && t.reportedOdd[text]
	}
	if reported() {
		return nil
	}
	// One call writes the record, and those that meet the same refusal meanwhile wait
	// until it is durable.
	select {
	case t.reporting <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-t.reporting }()
	if reported() {
		return nil
	}
	enforced, ids := mode == Enforce, p.IDs()
	g.opts.Logger.Warn("drift gate: the contracts disagree", "peer", p.Peer.Address, "capability", p.Capability.Name, "enforced", enforced,
		"reason", refusal.Error(), "correlationId", ids.CorrelationID, "traceId", ids.TraceID)
	if g.opts.Auditor != nil {
		r := Record{Peer: p.Peer.Address, Capability: p.Capability.Name, Err: refusal, Enforced: enforced, Call: ids}
		if err := g.opts.Auditor.RecordSchemaDrift(ctx, r); err != nil {
			return &caller.UnrecordedError{Found: refusal, Err: err}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if odd {
		if len(t.reportedOdd) >= maxVerdicts || t.reportedOdd == nil {
			t.reportedOdd = map[string]bool{}
		}
		t.reportedOdd[text] = true
	} else {
		t.reported, t.reportedAt = text, time.Now()
	}
	return nil
}

// changes returns what to log, without the peer's lock, about a decision that takes the
// place of an earlier one: that calls go on unproven, and that what kept them from being
// proven has ended. The caller holds the lock.
func (g *Gate) changes(s *peerState, t *toolState, earlier decision, p caller.Probe, now time.Time) (tell []func()) {
	st, log := t.decision, g.opts.Logger.With("peer", s.address, "capability", p.Capability.Name)
	if t.reported != "" && st.err == nil {
		after := now.Sub(t.reportedAt).Round(time.Millisecond)
		tell = append(tell, func() { log.Info("drift gate: the contracts no longer disagree", "after", after) })
		t.reported = ""
	}
	if (st.err == nil) != (earlier.err == nil) && g.opts.Changed != nil {
		tell = append(tell, g.opts.Changed)
	}
	switch {
	case st.degraded() && !earlier.degraded():
		why, ids := s.why.Error(), p.IDs()
		tell = append(tell, func() {
			log.Warn("drift gate: the peer does not describe its capabilities; calls to it go on unproven",
				"reason", why, "correlationId", ids.CorrelationID, "traceId", ids.TraceID)
		})
	case !st.degraded() && earlier.degraded():
		tell = append(tell, func() { log.Info("drift gate: the peer describes its capabilities again") })
	}
	return tell
}

// Refused returns why calls to a capability of a peer are refused, as far as earlier calls
// have found out, or nil. The next call may find that they no longer are.
func (g *Gate) Refused(peer envelope.Address, capability string) error {
	if g.Mode() != Enforce {
		return nil
	}
	g.mu.RLock()
	s := g.peers[peer]
	g.mu.RUnlock()
	if s == nil {
		return nil
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if t := s.tools[capability]; t != nil && t.generation != 0 {
		return t.decision.err
	}
	return nil
}

// Verdicts count the capabilities of a peer that have been called, by what is known of them.
type Verdicts struct {
	// Proven ones are compatible, calls of Unproven ones go on without a proof, and those of
	// Refused ones do not, unless the mode is Warn.
	Proven, Unproven, Refused int
}

// Verdicts returns what the gate knows, by peer.
func (g *Gate) Verdicts() map[envelope.Address]Verdicts {
	if g.Mode() == Off {
		return nil
	}
	g.mu.RLock()
	peers := slices.Collect(maps.Values(g.peers))
	g.mu.RUnlock()
	all := make(map[envelope.Address]Verdicts, len(peers))
	for _, s := range peers {
		all[s.address] = s.verdicts()
	}
	return all
}

func (s *peerState) verdicts() (v Verdicts) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, t := range s.tools {
		switch {
		case t.generation == 0: // nothing is known yet
		case t.decision.err != nil:
			v.Refused++
		case t.decision.degraded():
			v.Unproven++
		default:
			v.Proven++
		}
	}
	return v
}

// Warnings says which calls are refused or go on unproven, and what peers offer that
// this agent cannot use: one line each, for people.
func (g *Gate) Warnings() []string {
	if g.Mode() == Off {
		return nil
	}
	g.mu.RLock()
	peers := slices.Collect(maps.Values(g.peers))
	g.mu.RUnlock()
	slices.SortFunc(peers, func(a, b *peerState) int { return strings.Compare(string(a.address), string(b.address)) })
	var all []string
	for _, s := range peers {
		all = append(all, s.troubles(time.Now())...)
	}
	return all
}

func (s *peerState) troubles(now time.Time) (all []string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, name := range slices.Sorted(maps.Keys(s.tools)) {
		t := s.tools[name]
		again := "the next call has the peer asked again"
		if wait := t.due.Sub(now); wait > 0 {
			again = fmt.Sprintf("the peer is asked again in %s", wait.Round(time.Second))
		}
		since := t.since.UTC().Format(time.RFC3339)
		switch {
		case t.generation == 0:
		case t.decision.err != nil && t.key.mode == Enforce:
			all = append(all, fmt.Sprintf("calls are refused since %s: %s; %s", since, t.decision.err, again))
		case t.decision.clearance.Unproven != "":
			all = append(all, fmt.Sprintf("calls of %s go on unproven since %s: %s; %s", name, since, t.decision.clearance.Unproven, again))
		}
	}
	if len(s.unusable) > 0 {
		all = append(all, fmt.Sprintf("%s offers %s, which this agent's copy of its file lacks", s.address, fewOf(s.unusable)))
	}
	return all
}

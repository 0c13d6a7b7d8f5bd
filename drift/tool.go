package drift

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/schema/contain"
)

// A toolState is what the gate thinks about the calls to one capability of a peer.
// The peer's lock guards all fields, but for reporting.
type toolState struct {
	key        key      // what the decision rests on
	generation uint64   // the knowledge about the peer that it rests on; 0: none
	decision   decision // the rule for calls
	since      time.Time
	due        time.Time // when a call has the peer asked again
	failures   int       // judgements in a row that did not end in a proof
	polled     uint64    // the generation of the newest poll for this capability

	verdicts map[judged]verdict // on what the peer published
	proofs   map[contracts]error
	accepted []string // the peer's digests of contracts that were proven, newest first
	proof    *task    // under way, or nil

	reported    string          // the refusal that was logged and recorded last, until it ends
	reportedOdd map[string]bool // refusals of single replicas that were
	reportedAt  time.Time
	reporting   chan struct{} // held by the call that records
}

// A key is everything but the peer's answers that a decision rests on.
type key struct {
	built, least string
	mode         Mode
}

func keyOf(p caller.Probe, mode Mode) key {
	return key{built: p.Capability.Digest, least: p.Peer.MinSchemaVersion, mode: mode}
}

// judged is one published form, held against one contract of this agent.
type judged struct{ revision, built, least string }

// contracts are what a proof is about, and all that it depends on: whatever else the
// peer publishes, it stays true.
type contracts struct{ built, live, since, least string }

// A verdict is what came of comparing a pair of contracts.
type verdict struct {
	claimed string // the peer's own digest of the capability
	err     error  // nil if everything was proven
}

// A decision is the rule for calls to a capability. With an error they are refused
// or, in mode warn, go on with the clearance all the same.
type decision struct {
	clearance caller.Clearance
	err       error
}

func (s decision) proven() bool   { return s.err == nil && s.clearance.Unproven == "" }
func (s decision) degraded() bool { return s.err == nil && s.clearance.Unproven != "" }

// accepts reports whether requests name a digest of the peer's.
func (s decision) accepts(digest string) bool {
	return s.clearance.Digest == digest || slices.Contains(strings.Fields(s.clearance.Also), digest)
}

// Bounds on what is remembered of one capability.
const (
	maxVerdicts = 32
	maxAccepted = 4
)

// rekey forgets a decision that rests on something else than key.
func (t *toolState) rekey(k key) {
	if t.key == k {
		return
	}
	if t.key.built != k.built || t.key.least != k.least {
		t.accepted, t.reportedOdd = nil, nil
	}
	t.key, t.generation, t.failures, t.polled = k, 0, 0, 0
}

// accept remembers digests that the peer gave to contracts that were proven.
func (t *toolState) accept(claimed []string) {
	// Without a digest a request cannot make sure that the contract is still served.
	all := slices.DeleteFunc(slices.Clone(claimed), func(d string) bool { return d == "" })
	for _, old := range t.accepted {
		if !slices.Contains(all, old) {
			all = append(all, old)
		}
	}
	t.accepted = all[:min(len(all), maxAccepted)]
}

// cleared is the clearance under digests of the peer's, the newest first.
func cleared(claimed []string) (c caller.Clearance) {
	if len(claimed) > 0 {
		c.Digest, c.Also = claimed[0], strings.Join(claimed[1:], " ")
	}
	return c
}

// compare is the rule for a peer that has answered. Its replicas may serve different
// contracts: as long as one of the contracts is proven, calls go on under those that
// are, and a replica that serves another refuses them unrun. ok is false while a
// verdict is missing. transient are verdicts that are not kept.
func (t *toolState) compare(answers []*capability.Published, transient map[string]verdict) (st decision, ok, kept bool) {
	var proven, served []string
	var refused error
	kept = true
	for _, live := range answers {
		v, known := t.verdicts[judged{live.Revision, t.key.built, t.key.least}]
		if !known {
			if v, known = transient[live.Revision]; !known {
				return decision{}, false, false
			}
			kept = false
		}
		if v.claimed != "" {
			served = append(served, v.claimed)
		}
		if v.err == nil {
			proven = append(proven, v.claimed)
		} else {
			refused = v.err
		}
	}
	if len(proven) > 0 {
		t.accept(proven)
		return decision{clearance: cleared(t.accepted)}, true, true
	}
	// The digests are for mode warn: such a call, too, is refused by a peer that
	// changes meanwhile, and judged anew.
	st = decision{clearance: cleared(served), err: refused}
	st.clearance.Unproven = refused.Error()
	return st, true, kept
}

// verdictOn compares the contract of a call with what the peer publishes. kept is
// false if want of time alone kept it from a verdict.
func (g *Gate) verdictOn(ctx context.Context, s *peerState, p caller.Probe, live *capability.Published) (v verdict, kept bool) {
	at := judged{live.Revision, p.Capability.Digest, p.Peer.MinSchemaVersion}
	s.mu.RLock()
	t := s.tools[p.Capability.Name]
	v, known := t.verdicts[at]
	s.mu.RUnlock()
	if known {
		return v, true
	}
	tool, offered := live.ToolSchemas[p.Capability.Name]
	v.claimed = claimOf(tool.Digest)
	digest, err := tool.ContractDigest(p.Capability.Name)
	pair := contracts{p.Capability.Digest, digest, tool.Since, p.Peer.MinSchemaVersion}
	switch {
	case !offered:
		v.err = &SchemaDriftError{
			Peer: p.Peer.Address, Capability: p.Capability.Name, Built: p.Capability.Digest, Reason: "the peer no longer offers it",
		}
	case tool.Fault != nil || err != nil:
		v.err = &CapabilitiesContractError{Peer: p.Peer.Address, Capability: p.Capability.Name, Err: errors.Join(tool.Fault, err)}
	default:
		v.err, kept = g.proveOnce(ctx, s, t, p, tool, pair)
		if !kept {
			return v, false
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(t.verdicts) >= maxVerdicts {
		clear(t.verdicts) // a peer that changes so often is judged again
	}
	t.verdicts[at] = v
	return v, true
}

// proveOnce compares a pair of contracts, unless that was done before: a form may
// change in its words alone. kept is false for a proof that ran out of time.
func (g *Gate) proveOnce(ctx context.Context, s *peerState, t *toolState, p caller.Probe, tool capability.ToolSchema, pair contracts) (err error, kept bool) {
	s.mu.RLock()
	err, known := t.proofs[pair]
	s.mu.RUnlock()
	if known {
		return err, true
	}
	// Equal digests need no proof: every schema contains itself. The version is
	// checked even so, as a digest covers the name and the schemas alone.
	if err = checkVersion(p, tool, pair.live); err == nil && pair.live != pair.built {
		err = prove(ctx, p, tool, pair.live, g.opts.Compile, g.opts.Budget)
	}
	var undecided *UnsupportedCloudToolSchema
	if errors.As(err, &undecided) && (undecided.Reason == contain.ReasonTime || ctx.Err() != nil) {
		return err, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(t.proofs) >= maxVerdicts {
		clear(t.proofs)
	}
	t.proofs[pair] = err
	return err, true
}

// maxClaim bounds a digest that a peer has chosen.
const maxClaim = 128

// claimOf returns a peer's digest of its own contract, if it can travel in a header.
// It names the contract to the peer, and proves nothing.
func claimOf(digest string) string {
	unfit := func(r rune) bool { return r <= ' ' || r > '~' }
	if len(digest) > maxClaim || strings.ContainsFunc(digest, unfit) {
		return ""
	}
	return digest
}

// decide puts a decision in force, and determines when the peer is asked again. Every
// decision ends: one that refuses or lets calls go on unproven soon, and later each
// time; a proof after a while, because a peer of another implementation may change
// without refusing the digest that requests carry.
func (t *toolState) decide(st decision, s *peerState, opts *Options, now time.Time) {
	if t.since.IsZero() || t.decision.proven() != st.proven() || t.decision.degraded() != st.degraded() {
		t.since = now
	}
	t.decision, t.generation = st, s.generation
	switch {
	case st.proven():
		t.failures, t.due = 0, now.Add(opts.jittered(opts.Refresh))
	case st.err != nil && s.outcome == answered && t.polled != s.generation && t.failures == 0:
		// The answer came for a call to another capability, and perhaps from the one
		// replica that differs.
		t.due = now
	case st.err != nil:
		t.failures++
		t.due = now.Add(opts.backoff(t.failures, opts.MaxRetry))
	default:
		t.failures++
		t.due = now.Add(opts.backoff(t.failures, opts.MaxUnproven))
	}
}

func (s *peerState) unproven() caller.Clearance {
	return caller.Clearance{Unproven: fmt.Sprintf("%s does not say what it serves: %s", s.address, s.why)}
}

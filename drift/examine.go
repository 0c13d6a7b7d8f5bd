package drift

import (
	"context"
	"slices"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/rpc/caller"
)

// An Examination is what a peer serves now, held against the contract of it that this
// agent has.
type Examination struct {
	// Err is why the peer did not say what it serves, or why it makes no sense; nil if
	// it did.
	Err error
	// Answered is whether the peer has said anything.
	Answered bool
	// Live are the forms that were met: of several replicas there may be several.
	Live []*capability.Published
	// Findings are the capabilities that cannot be called, of any replica that was met.
	Findings []Finding
	// Unusable are the capabilities that the peer offers, and this agent's copy of its
	// file lacks.
	Unusable []string
}

// A Finding is one capability that cannot be called.
type Finding struct {
	// Capability is its name.
	Capability string
	// Err is a *SchemaDriftError, *UnsupportedCloudToolSchema or
	// *CapabilitiesContractError.
	Err error
}

// maxExamined bounds the questions of an examination.
const maxExamined = 32

// Examine asks a peer what it serves now, whatever is remembered of it, and proves
// every capability of the contract that this agent has. Calls go by what it finds.
// announced are the digests that the peer's replicas are known to serve, one for each
// replica: it asks until it has met all of them, or has tried.
func (g *Gate) Examine(ctx context.Context, p caller.Probe, announced []string) Examination {
	s := g.peer(&p.Peer)
	found, last := g.collect(ctx, p, announced)
	if len(found) == 0 {
		if last.outcome == malformed || last.outcome == newerMajor {
			s.learn(g, p, last, nil)
			return Examination{Answered: true, Err: &CapabilitiesContractError{Peer: p.Peer.Address, Err: last.err}}
		}
		s.notify("", 0)
		return Examination{Err: last.err}
	}
	s.learn(g, p, answer{outcome: answered}, found)
	e := Examination{Answered: true, Live: found}
	s.mu.RLock()
	e.Unusable = slices.Clone(s.unusable)
	s.mu.RUnlock()
	if p.Peer.Contract == nil {
		return e
	}
	for _, c := range p.Peer.Contract.Capabilities {
		p.Capability = c
		s.mu.Lock()
		s.tool(c.Name)
		s.mu.Unlock()
		for _, live := range found {
			if v, _ := g.verdictOn(ctx, s, p, live); v.err != nil {
				e.Findings = append(e.Findings, Finding{c.Name, v.err})
				break
			}
		}
	}
	return e
}

// collect asks until all announced digests have been met, or has tried in vain.
func (g *Gate) collect(ctx context.Context, p caller.Probe, announced []string) (found []*capability.Published, last answer) {
	ctx, cancel := context.WithTimeout(ctx, g.opts.ProbeTimeout)
	defer cancel()
	for range min(max(maxQuestions, 4*len(announced)), maxExamined) {
		data, err := p.Published(ctx)
		a := readAnswer(p.Peer.Address, data, err)
		if len(found) == 0 || a.outcome == answered {
			last = a
		}
		if a.outcome == gaveUp || a.outcome == unreachable {
			break
		}
		met := func(digest string) bool {
			return slices.ContainsFunc(found, func(have *capability.Published) bool { return have.Digest == digest })
		}
		if a.outcome == answered && !slices.ContainsFunc(found, func(have *capability.Published) bool { return have.Revision == a.live.Revision }) {
			found = append(found, a.live)
		}
		if len(found) > 0 && !slices.ContainsFunc(announced, func(digest string) bool { return !met(digest) }) {
			break
		}
	}
	return found, last
}

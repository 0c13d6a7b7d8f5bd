package drift

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/rpc/caller"
)

// A poll is one round of questions to a peer, for a call to one of its capabilities.
// It asks until an answer lets the call go on, and until it has met the contract that
// it looks for: each question may meet another replica.
type poll struct {
	gate   *Gate
	peer   *peerState
	tool   *toolState
	task   *task
	probe  caller.Probe // of the call, without the call
	wanted string       // the revision that it looks for, or ""

	last   answer
	found  []*capability.Published // different ones
	passes bool                    // the call may go on
	met    bool                    // what it looks for was found
}

// startPoll begins to ask the peer what it serves, unless somebody does already. It
// returns nil when the gate is closed. The caller holds mu.
func (g *Gate) startPoll(s *peerState, t *toolState, p caller.Probe) *task {
	if s.poll != nil {
		return s.poll
	}
	f := newTask(p.Capability.Name)
	f.asks = true
	q := &poll{gate: g, peer: s, tool: t, task: f, probe: p.Detached(), wanted: s.wanted, met: s.wanted == "" && p.Stale == ""}
	most := maxQuestions
	if len(t.accepted) > 0 {
		most = maxDoubts
	}
	if !g.tasks.run(f, g.opts.ProbeTimeout, func(ctx context.Context) { q.run(ctx, most) }) {
		return nil
	}
	s.poll, s.due, s.wanted = f, time.Time{}, ""
	return f
}

// run asks at most so many questions.
func (q *poll) run(ctx context.Context, most int) {
	for range most {
		if !q.ask(ctx) || q.passes && q.met {
			break
		}
	}
	q.end()
}

// ask asks once. It returns false when another question is of no use.
func (q *poll) ask(ctx context.Context) bool {
	data, err := q.probe.Published(ctx)
	q.last = readAnswer(q.peer.address, data, err)
	switch q.last.outcome {
	case gaveUp, unreachable:
		return false
	case malformed, newerMajor:
		// The answer may have taken all the time there was; ctx may be about to end.
		end, _ := ctx.Deadline()
		return time.Now().Before(end)
	}
	live := q.last.live
	if slices.ContainsFunc(q.found, func(have *capability.Published) bool { return have.Revision == live.Revision }) {
		return true
	}
	if q.found = append(q.found, live); len(q.found) == 1 {
		q.peer.learn(q.gate, q.probe, q.last, slices.Clone(q.found))
		q.task.firstKnown() // other capabilities need not wait for this one's proof
	}
	v := q.gate.verdictFor(ctx, q.peer, q.task, q.probe, live)
	q.passes = q.passes || v.err == nil
	q.met = q.met || live.Revision == q.wanted || q.probe.Stale != "" && v.claimed == q.probe.Stale
	return true
}

// end leaves what was found with the peer.
func (q *poll) end() {
	switch {
	case len(q.found) > 1:
		q.peer.learn(q.gate, q.probe, answer{outcome: answered}, q.found)
	case len(q.found) == 1: // learned already
	case q.gate.tasks.ctx.Err() != nil:
		q.task.err = caller.ErrGateClosed
	case q.last.outcome == gaveUp:
		q.task.err = q.last.err
	default:
		q.peer.learn(q.gate, q.probe, q.last, nil)
	}
	s := q.peer
	s.mu.Lock()
	defer s.mu.Unlock()
	s.poll, s.ended, q.tool.polled = nil, time.Now(), s.generation
	if next := s.ended.Add(pollGap); !s.due.IsZero() && s.due.Before(next) { // news that came meanwhile
		s.due = next
	}
}

// learn puts what the peer has answered in the place of what was known before.
func (s *peerState) learn(g *Gate, p caller.Probe, a answer, found []*capability.Published) {
	unusable := unknownTo(p.Peer.Contract, found) // without the lock: the peer determines how many there are
	s.mu.Lock()
	s.generation++
	s.outcome, s.why, s.answers, s.unusable = a.outcome, a.err, found, unusable
	tell := len(unusable) > 0 && s.reported != found[0].Revision
	if tell {
		s.reported = found[0].Revision
	}
	s.mu.Unlock()
	if tell {
		g.opts.Logger.Info("drift gate: the peer offers capabilities that this agent's copy of its file lacks, so it cannot call them",
			"peer", s.address, "capabilities", fewOf(unusable))
	}
}

// unknownTo returns the names, sorted, that a peer offers and the contract of it that
// this agent holds lacks. Nil without a contract.
func unknownTo(contract *capability.Document, found []*capability.Published) []string {
	if contract == nil {
		return nil
	}
	names := map[string]bool{}
	for _, live := range found {
		for name := range live.ToolSchemas {
			if _, known := contract.Lookup(name); !known && len(name) <= capability.MaxNameBytes {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// fewOf lists names of which a peer determines how many there are.
func fewOf(names []string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

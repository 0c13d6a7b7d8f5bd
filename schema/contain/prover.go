package contain

import (
	"context"
	"encoding/binary"
	"math"
	"slices"

	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/internal/identity"
	"github.com/agentd/agentd/schema/internal/ir"
	"github.com/agentd/agentd/schema/internal/jsontree"
	"github.com/agentd/agentd/schema/internal/regular"
)

// prover searches for a value that satisfies a goal. It belongs to one
// question and one goroutine.
//
// A goal is a set of terms. Containment of a in b is the question whether the
// goal {a, not b} has no value; a sample of s is a value of the goal {s}.
// Values are finite, so satisfiability is a least fixpoint: a goal that is met
// again below itself adds no value, because the smallest value of the inner one
// would be a smaller value of the outer. The inner goal may therefore be
// assumed unsatisfiable. What was found under such an assumption is kept only
// while the assumption stands, and for good once the goal that it was made for
// turns out unsatisfiable itself. Keeping it regardless is a classic mistake:
// the answer is then wrong wherever the goal is asked about outside of the
// recursion.
//
// The maps whose makers are elsewhere are made there, when they are first needed: most
// questions need none of them.
type prover struct {
	schemas []*schema.Schema
	forms   []form
	roots   []int32 // the form of each schema

	classifier *classifier // knows the form of every node

	names    []string
	nameIDs  map[string]nameID
	lits     identity.Table
	ident    identity.Identifier
	values   map[uint32]*jsontree.Tree // by number in lits
	ruleSets map[*ir.EnumRule]*literalSet

	terms   []term
	termIDs map[string]termID
	key     []byte
	asking  map[[2]termID]bool

	memo  map[string]*memory
	trail []*memory // provisional entries, in the order of their making
	depth int
	low   int // the highest goal that has been assumed unsatisfiable; see sat

	languages map[string]*regular.Language

	// full asks for values with their optional members, for samples.
	full bool

	budget Budget
	steps  int
	floor  int // where steps end for the search in progress
	ctx    context.Context
	spent  Reason // why the prover gave up for good
}

// status is an answer about a goal. A conjunction of independent parts has no
// value if one part has none; it may have one if one part may; a disjunction is
// the other way round. No rule may turn statusMaybe into statusUnsat, since a
// proof of containment is an unsatisfiable goal.
type status uint8

const (
	statusUnsat status = iota + 1
	statusSat
	statusMaybe
)

// result is the answer about one goal, with the witness or the reason.
type result struct {
	status status
	value  []byte // where a value was asked for and exists
	reason Reason // why not
	at     place
	placed bool // at is known
}

func unsat() result { return result{status: statusUnsat} }

func satisfied(value []byte) result { return result{status: statusSat, value: value} }

// memory is what is known about a goal. An open entry stands on the stack.
type memory struct {
	key    string
	result result
	open   bool
	depth  int // of an open entry
	// low is the assumption that an unsatisfiable goal rests on: the depth of
	// a goal still open, or noLow.
	low int
}

const noLow = math.MaxInt

// newProver prepares to reason about schemas.
func newProver(ctx context.Context, budget Budget, schemas ...*schema.Schema) *prover {
	p := &prover{
		schemas: schemas, budget: budget.orDefault(), ctx: ctx, low: noLow,
		termIDs: map[string]termID{}, memo: map[string]*memory{},
	}
	p.steps = p.budget.Steps
	p.ident.Table = &p.lits
	p.classify()
	// Most questions take few terms beyond the forms, and terms are large.
	p.terms = make([]term, firstForm, int(firstForm)+6*len(p.forms)+8)
	p.terms[termFalse] = term{op: opFalse, known: true}
	p.terms[termTrue] = term{op: opTrue, may: allSorts, must: allSorts, known: true}
	for range 2 * len(p.forms) {
		p.terms = append(p.terms, term{op: opForm})
	}
	return p
}

// spend uses up steps and reports whether any are left. Everything that can
// repeat calls it, so that the answer depends on the schemas and the budget and
// not on the machine. The context is checked every 64 steps.
func (p *prover) spend(n int) bool {
	before := p.steps
	p.steps -= n
	switch {
	case p.spent != "":
		return false
	case p.steps < p.floor:
		p.spent = ReasonSteps
	case before>>6 != p.steps>>6 && p.ctx.Err() != nil:
		p.spent = ReasonTime
	}
	return p.spent == ""
}

// limited asks a question with at most some of the steps that are left. cut
// reports that they did not suffice; the prover can then go on, which it cannot
// once the whole budget is used up.
func (p *prover) limited(steps int, ask func() result) (r result, cut bool) {
	outer := p.floor
	p.floor = max(outer, p.steps-steps)
	r = ask()
	p.floor = outer
	if p.spent == ReasonSteps && p.steps >= outer {
		p.spent = ""
		return r, true
	}
	return r, false
}

// unknown returns an undecided answer. If the prover has given up for good,
// that is the reason and not what the caller supposes.
func (p *prover) unknown(reason Reason) result {
	if p.spent != "" {
		reason = p.spent
	}
	return result{status: statusMaybe, reason: reason}
}

// worse combines the answers about alternatives of which none has a value so far:
// the first reason not to know is kept.
func worse(was, is result) result {
	if was.status == statusMaybe || is.status != statusMaybe {
		return was
	}
	return is
}

// conjunction adds terms to a goal: an ascending set without conjunctions, so
// that equal goals are equal lists and the memo finds them. The old set is not
// changed.
func (p *prover) conjunction(goal []termID, add ...termID) []termID {
	fresh := goal[:len(goal):len(goal)]
	for _, t := range add {
		switch {
		case t == termTrue:
			continue
		case p.terms[t].op == opAnd:
			fresh = append(fresh, p.terms[t].args...)
		default:
			fresh = append(fresh, t)
		}
	}
	if len(fresh) > len(goal) {
		slices.Sort(fresh)
		fresh = slices.Compact(fresh)
	}
	return fresh
}

// sat looks for a value that satisfies a goal, through the memo. A goal that
// holds a form and its negation needs no search: this is what most of two
// versions of one schema come down to.
func (p *prover) sat(goal []termID) result {
	for i, t := range goal {
		if t == termFalse || i > 0 && goal[i-1] == t^1 && p.isForm(t) {
			return unsat()
		}
	}
	key := make([]byte, 0, 64)
	for _, t := range goal {
		key = binary.LittleEndian.AppendUint32(key, uint32(t))
	}
	if m := p.memo[string(key)]; m != nil {
		if m.open { // assume that the goal has no value
			p.low = min(p.low, m.depth)
			return unsat()
		}
		p.low = min(p.low, m.low)
		return m.result
	}
	if !p.spend(1 + len(goal)) {
		return p.unknown(ReasonSteps)
	}
	const tooDeep = 1000
	if p.depth >= tooDeep {
		return p.unknown(ReasonDepth)
	}
	// The entry is open while the search below it runs, so that it is found if
	// the goal comes up again.
	m := &memory{key: string(key), open: true, depth: p.depth, low: noLow}
	p.memo[m.key] = m
	outer, start := p.low, len(p.trail)
	p.low = noLow
	p.depth++
	m.result = p.search(goal)
	p.depth--
	m.open = false
	p.retain(m, outer, start)
	return m.result
}

// retain decides how long an answer stands, and with it those that were found on
// the way to it. p.low is the outermost open goal that the answer assumed to be
// unsatisfiable, as in Tarjan's algorithm for strongly connected components: if
// no assumption reaches beyond this goal, its component is complete, and what
// is unsatisfiable in it stays so.
func (p *prover) retain(m *memory, outer, start int) {
	used := p.low
	p.low = outer
	switch {
	case m.result.status != statusUnsat:
		// What rested on this goal being unsatisfiable is void.
		for _, e := range p.trail[start:] {
			delete(p.memo, e.key)
		}
		p.trail = p.trail[:start]
		switch {
		case m.result.status == statusSat:
		case p.spent != "": // more steps may tell
			delete(p.memo, m.key)
		case used < m.depth:
			m.low = used
			p.trail = append(p.trail, m)
		}
	case used >= m.depth:
		for _, e := range p.trail[start:] {
			e.low = noLow
		}
		p.trail = p.trail[:start]
	default:
		for _, e := range p.trail[start:] {
			e.low = min(e.low, used)
		}
		m.low = used
		p.trail = append(p.trail, m)
		p.low = min(outer, used)
	}
}

// aside answers a question that is no step of the argument in progress: about
// the same value, or about none of its parts. The assumption that a goal has no
// value below itself holds only for parts, so that an answer which rests on one
// must not be used here. closed reports that it rests on none.
func (p *prover) aside(ask func() result) (r result, closed bool) {
	outer := p.low
	p.low = noLow
	r = ask()
	closed = p.low == noLow
	p.low = outer
	return r, closed
}

// search tries one sort of value after the other, since hardly any keyword is
// about more than one. For a sample, values from the annotations come first,
// because people chose them; otherwise they come last, to decide what reasoning
// could not.
func (p *prover) search(goal []termID) result {
	may := sorts(allSorts)
	for _, t := range goal {
		m, _ := p.bounds(t)
		may &= m
	}
	if p.full {
		if value := p.exampleOf(goal); value != nil {
			return satisfied(value)
		}
	}
	best := unsat()
	for s := sorts(1); s <= may; s <<= 1 {
		if may&s == 0 {
			continue
		}
		st := &state{sort: s}
		st.init()
		if !st.pushAll(p, goal) {
			continue
		}
		r := p.solve(st)
		if r.status == statusSat {
			return r
		}
		best = worse(best, r)
	}
	if best.status == statusMaybe && !p.full {
		if value := p.exampleOf(goal); value != nil {
			return satisfied(value)
		}
	}
	return p.placed(best, goal)
}

// placed adds where an answer got stuck, unless that is known more closely:
// the first schema of the goal.
func (p *prover) placed(r result, goal []termID) result {
	if r.status != statusMaybe || r.placed {
		return r
	}
	for _, t := range goal {
		if p.isForm(t) {
			f := &p.forms[(t-firstForm)/2]
			r.at, r.placed = place{f.side, f.node.Pointer}, true
			break
		}
	}
	return r
}

// exampleOf returns the first value in examples or default of the goal's schemas
// that satisfies the goal, or nil. It looks at sixteen values at most.
func (p *prover) exampleOf(goal []termID) []byte {
	const most = 16
	tried := 0
	for _, t := range goal {
		if !p.isForm(t) || (t-firstForm)%2 != 0 {
			continue
		}
		for _, n := range p.forms[(t-firstForm)/2].like {
			for _, raw := range annotated(n) {
				if tried++; tried > most {
					return nil
				}
				v, _ := jsontree.Build(raw, 0)
				if p.holdAll(goal, v) {
					return raw
				}
			}
		}
	}
	return nil
}

// annotated returns the values in a schema's examples and default.
func annotated(n *ir.Node) [][]byte {
	all := n.Notes.Examples
	if n.Notes.Fallback != nil {
		all = append(all[:len(all):len(all)], n.Notes.Fallback)
	}
	return all
}

package contain

import (
	"cmp"
	"slices"

	"github.com/agentd/agentd/schema/internal/ir"
)

// A gap is a range of numbers that a state rules out: those that neither below nor
// above allows. It is what a disjunction such as "less than 10, or more than 19"
// leaves out, and what is left of a range that was negated.
type gap struct{ below, above *term }

// fewGaps is how many disjunctions about ranges a search decides like any others.
// Beyond that their number would enter its cost twice, as the disjunctions to look
// at and as the decisions to take, where a sorted list of gaps is read once.
const fewGaps = 8

// gather turns the disjunctions of a state that only rule out a range of numbers
// into gaps, if there are many: the rest of a value space that hundreds of adjacent
// ranges cover is found, or found empty, in one pass over them.
func (p *prover) gather(st *state) *state {
	if st.sort&sortNumber == 0 || len(st.ors) <= fewGaps {
		return st
	}
	var gaps []gap
	var left, gathered []termID
	for _, or := range st.ors {
		g, ok := p.gapOf(or, st.sort)
		if !ok {
			left = append(left, or)
			continue
		}
		gathered = append(gathered, or)
		if g.below.limit.Decimal.Compare(g.above.limit.Decimal) <= 0 {
			gaps = append(gaps, g) // otherwise every number is on one side or the other
		}
	}
	if len(gathered) <= fewGaps || !p.spend(len(gaps)) {
		return st
	}
	c := st.clone()
	c.ors, c.apart = left, append(c.apart, gathered...)
	c.gaps = append(slices.Clip(c.gaps), gaps...)
	slices.SortStableFunc(c.gaps, func(a, b gap) int { return compareHigh(a.below, b.below) })
	return c
}

// compareHigh orders upper limits by what they allow: of two at the same number, the
// open one allows less.
func compareHigh(a, b *term) int {
	order := a.limit.Decimal.Compare(b.limit.Decimal)
	if order == 0 && a.open != b.open {
		order = 1
		if a.open {
			order = -1
		}
	}
	return order
}

// gapOf returns the range that a disjunction rules out, if each arm is one limit,
// and both sides have one. Of several arms on one side, the one that allows most
// counts.
func (p *prover) gapOf(or termID, s sorts) (g gap, ok bool) {
	for _, arm := range p.terms[or].args {
		limit := p.limitOf(arm, s)
		switch {
		case limit == nil:
			return gap{}, false
		case limit.op == opHigh && (g.below == nil || stricter(g.below, limit, -1)):
			g.below = limit
		case limit.op == opLow && (g.above == nil || stricter(g.above, limit, 1)):
			g.above = limit
		}
	}
	return g, g.below != nil && g.above != nil
}

// limitOf returns the limit that an arm comes down to for numbers of a sort, or nil
// if it says anything else.
func (p *prover) limitOf(arm termID, s sorts) *term {
	parts := []termID{arm}
	if p.terms[arm].op == opAnd {
		parts = p.terms[arm].args
	}
	var limit *term
	for _, part := range parts {
		t := p.terms[part] // a copy: terms may move
		switch {
		case t.op == opSorts && t.may&s == s:
		case (t.op == opLow || t.op == opHigh) && limit == nil:
			limit = &t
		default:
			return nil
		}
	}
	return limit
}

// checkNumber looks for a number in what the gaps of a state leave, from the lowest
// stretch up.
func (p *prover) checkNumber(st *state) result {
	find := p.checkFraction
	if st.sort == sortInteger {
		find = p.checkInteger
	}
	if len(st.gaps) == 0 {
		return find(st)
	}
	if !p.spend(len(st.gaps) / 16) {
		return p.unknown(ReasonSteps)
	}
	best := unsat()
	stretch := *st
	stretch.gaps = nil
	for i := 0; i <= len(st.gaps); i++ {
		stretch.high = st.high
		// The gaps are sorted by where they begin, so that none of those to come
		// reaches into the stretch below this one.
		if i < len(st.gaps) && (st.high == nil || stricter(st.gaps[i].below, st.high, -1)) {
			stretch.high = st.gaps[i].below
		}
		if !stretch.crossed() {
			r := find(&stretch)
			if r.status == statusSat {
				return r
			}
			best = worse(best, r)
		}
		if i < len(st.gaps) && (stretch.low == nil || stricter(st.gaps[i].above, stretch.low, 1)) {
			stretch.low = st.gaps[i].above
		}
	}
	return best
}

// An interval is what a branch says about numbers: at least what it accepts.
type interval struct {
	branch    int
	low, high *ir.Bound // nil without
	// Whether the limits themselves are outside.
	lowOpen, highOpen bool
}

// intervals returns those of branches that, within some sorts, accept numbers only;
// ok is false if others are accepted.
func (p *prover) intervals(branches []int32, within sorts) (all []interval, ok bool) {
	for i, b := range branches {
		n := p.forms[b].node
		if s := sortsOf(n.Types) & within; s&^sortNumber != 0 || n.Num == nil {
			return nil, false
		}
		in := interval{branch: i, low: n.Num.Min, high: n.Num.Max}
		if a := n.Num.Above; a != nil && (in.low == nil || a.Decimal.Compare(in.low.Decimal) >= 0) {
			in.low, in.lowOpen = a, true
		}
		if b := n.Num.Below; b != nil && (in.high == nil || b.Decimal.Compare(in.high.Decimal) <= 0) {
			in.high, in.highOpen = b, true
		}
		all = append(all, in)
	}
	return all, true
}

// before reports whether an interval ends before another begins.
func (a interval) before(b interval) bool {
	if a.high == nil || b.low == nil {
		return false
	}
	order := a.high.Decimal.Compare(b.low.Decimal)
	return order < 0 || order == 0 && (a.highOpen || b.lowOpen)
}

// meetings returns the pairs of branches that one value within some sorts might pass
// together, as far as their limits of numbers tell: of adjacent ranges there are none.
// It sweeps over the intervals in order, where comparing all pairs would cost the
// square of their number. ok is false if the branches are few, or about more than
// numbers.
func (p *prover) meetings(branches []int32, within sorts) (pairs []pairOfForms, ok bool) {
	if len(branches) <= fewGaps {
		return nil, false
	}
	all, ok := p.intervals(branches, within)
	if !ok || !p.spend(len(all)) {
		return nil, false
	}
	slices.SortStableFunc(all, func(a, b interval) int {
		switch {
		case a.low == nil || b.low == nil:
			return cmp.Compare(present(a.low), present(b.low))
		default:
			return a.low.Decimal.Compare(b.low.Decimal)
		}
	})
	for i, a := range all {
		for _, b := range all[i+1:] {
			if a.before(b) {
				if a.high.Decimal.Compare(b.low.Decimal) < 0 {
					break // all that follow begin no lower
				}
				continue
			}
			if !p.spend(1) {
				return nil, false
			}
			if !b.before(a) {
				pairs = append(pairs, pairOfForms{min(a.branch, b.branch), max(a.branch, b.branch)})
			}
		}
	}
	slices.SortFunc(pairs, func(a, b pairOfForms) int {
		return cmp.Or(cmp.Compare(a.second, b.second), cmp.Compare(a.first, b.first))
	})
	return pairs, true
}

// present is 0 for no limit and 1 for one, in the order of the intervals.
func present(b *ir.Bound) int {
	if b == nil {
		return 0
	}
	return 1
}

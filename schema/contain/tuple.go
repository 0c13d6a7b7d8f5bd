package contain

import (
	"encoding/binary"
	"slices"

	"github.com/agentd/agentd/schema/internal/ir"
	"github.com/agentd/agentd/schema/internal/jsontree"
)

// holdsFrom is holds for terms about the elements from an index on.
func (p *prover) holdsFrom(t term, items []*jsontree.Tree) bool {
	count := 0
	for _, item := range items {
		if p.holds(t.args[0], item) {
			count++
		}
	}
	if t.op == opFrom {
		return count == len(items)
	}
	return t.low <= count && count <= t.high
}

// Bounds of what is told apart in arrays with terms about places or numbers of elements.
const (
	maxPlaces  = 64   // with demands of their own
	maxTallies = 4    // terms that count elements
	maxCounts  = 4096 // combinations of the counts
	maxLength  = 4096 // of an array that is looked for
)

// tupleSearch looks for an array element by element. What it remembers of those it has
// is how many of them each counting term has seen, up to the number that matters: from
// equal counts the search goes on in the same way.
type tupleSearch struct {
	p       *prover
	st      *state
	places  int     // from here on, all elements must satisfy the same
	tallies []*term // the counting terms
	caps    []int   // the count up to which each is told apart
	kinds   map[int][]elementKind
	unsure  result
}

// elementKind is a kind of element that is possible at some place: which tallies it
// counts for, and what it satisfies.
type elementKind struct {
	counts uint
	goal   []termID
	value  []byte
}

// partial is the beginning of an array.
type partial struct {
	counts []int
	kind   elementKind
	before *partial
	length int
}

// checkTuple is checkArray for states with terms about places, or about how many elements
// satisfy something.
func (p *prover) checkTuple(st *state) result {
	s := &tupleSearch{p: p, st: st, kinds: map[int][]elementKind{}, unsure: unsat()}
	combinations := 1
	add := func(t *term) {
		s.tallies = append(s.tallies, t)
		most := t.low
		if t.high != ir.Unbounded {
			most = t.high + 1
		}
		s.caps = append(s.caps, most)
		combinations = min(combinations, maxCounts) * min(most+1, maxCounts+1)
		s.places = max(s.places, t.from)
	}
	for _, t := range st.tuples {
		switch t.op {
		case opTally:
			add(t)
		case opAt:
			s.places = max(s.places, t.from+1)
		default:
			s.places = max(s.places, t.from)
		}
	}
	for _, each := range st.some {
		add(&term{op: opTally, low: 1, high: ir.Unbounded, args: []termID{each}})
	}
	if s.places > maxPlaces || len(s.tallies) > maxTallies || combinations > maxCounts || st.count.low > maxLength {
		return p.unknown(ReasonArray)
	}
	if r := s.tooFew(); r.status == statusUnsat {
		return r
	}
	r := s.walk(combinations)
	switch {
	case r.status == statusSat:
		return r
	case p.spent != "":
		return p.unknown(ReasonSteps)
	}
	return worse(s.unsure, r)
}

// tooFew decides the most frequent conflict with uniqueItems: fewer values satisfy a
// counting term than it asks for.
func (s *tupleSearch) tooFew() result {
	if !s.st.unique {
		return satisfied(nil)
	}
	for _, t := range s.tallies {
		if t.low < 2 || t.low > maxDistinct {
			continue
		}
		d := s.p.domain(s.p.conjunction(s.st.each, t.args[0]), t.low)
		if len(d.values) < t.low && d.unknown.status != statusMaybe {
			return unsat()
		}
	}
	return satisfied(nil)
}

// goalAt is what an element at a place satisfies, the tallies left aside.
func (s *tupleSearch) goalAt(at int) []termID {
	goal := slices.Clip(s.st.each)
	for _, t := range s.st.tuples {
		if t.op == opAt && t.from == at || t.op == opFrom && t.from <= at {
			goal = s.p.conjunction(goal, t.args[0])
		}
	}
	return goal
}

// kindsAt returns the kinds of element that are possible at a place. A tally without an
// upper limit may leave elements uncounted; one with a limit has to count right.
func (s *tupleSearch) kindsAt(at int) []elementKind {
	at = min(at, s.places)
	if kinds, known := s.kinds[at]; known {
		return kinds
	}
	var kinds []elementKind
	var choose func(i int, k elementKind)
	choose = func(i int, k elementKind) {
		r := s.p.sat(k.goal)
		if r.status != statusSat {
			s.unsure = worse(s.unsure, r)
			return
		}
		if i == len(s.tallies) {
			k.value = r.value
			kinds = append(kinds, k)
			return
		}
		t := s.tallies[i]
		if t.from > at {
			choose(i+1, k)
			return
		}
		out := k
		if t.high != ir.Unbounded {
			out.goal = s.p.conjunction(k.goal, s.p.negate(t.args[0]))
		}
		choose(i+1, out)
		choose(i+1, elementKind{counts: k.counts | 1<<i, goal: s.p.conjunction(k.goal, t.args[0])})
	}
	choose(0, elementKind{goal: s.goalAt(at)})
	s.kinds[at] = kinds
	return kinds
}

// walk looks for an array of each length in turn. Behind the places with demands of their
// own, each step is like the last, so that what can be reached at all is reached in as
// many steps as there are combinations.
func (s *tupleSearch) walk(combinations int) result {
	front := []*partial{{counts: make([]int, len(s.tallies))}}
	longest := min(s.st.count.high, max(s.st.count.low, s.places)+combinations+s.p.excludedOf(s.st)+2)
	for length := 0; ; length++ {
		for _, a := range front {
			if length >= s.st.count.low && s.accepts(a) {
				if r := s.build(a); r.status == statusSat {
					return r
				}
			}
		}
		if length == longest || len(front) == 0 {
			return unsat()
		}
		front = s.extend(front, length)
		if !s.p.spend(1 + len(front)) {
			return s.p.unknown(ReasonSteps)
		}
	}
}

// extend returns the beginnings that are one element longer, one for each combination of
// counts.
func (s *tupleSearch) extend(front []*partial, at int) (next []*partial) {
	seen := map[string]bool{}
	for _, a := range front {
	kinds:
		for _, k := range s.kindsAt(at) {
			counts := slices.Clone(a.counts)
			key := make([]byte, 0, 2*len(counts))
			for i, t := range s.tallies {
				if k.counts>>i&1 != 0 {
					counts[i] = min(counts[i]+1, s.caps[i])
				}
				if counts[i] > t.high {
					continue kinds
				}
				key = binary.AppendUvarint(key, uint64(counts[i]))
			}
			if !seen[string(key)] {
				seen[string(key)] = true
				next = append(next, &partial{counts, k, a, at + 1})
			}
		}
	}
	return next
}

// accepts reports whether all tallies are satisfied.
func (s *tupleSearch) accepts(a *partial) bool {
	for i, t := range s.tallies {
		if a.counts[i] < t.low {
			return false
		}
	}
	return true
}

// build makes an array of a beginning. What concerns the array as a whole may ask for
// other values.
func (s *tupleSearch) build(a *partial) result {
	kinds := make([]elementKind, a.length)
	size := 2
	for b := a; b.before != nil; b = b.before {
		kinds[b.length-1] = b.kind
		size += len(b.kind.value) + 1
	}
	if size > s.p.budget.Witness {
		return s.give(s.p.unknown(ReasonWitness))
	}
	items := make([][]byte, 0, len(kinds))
	for _, k := range kinds {
		items = append(items, k.value)
	}
	raw := joinArray(items)
	if !s.st.unique && !s.st.repeat && !s.p.excluded(s.st, raw) {
		return satisfied(raw)
	}
	if s.st.repeat {
		return s.repeating(kinds)
	}
	return s.choose(kinds)
}

// give records a reason not to know and returns it.
func (s *tupleSearch) give(r result) result {
	s.unsure = worse(s.unsure, r)
	return r
}

// repeating looks for an array of some kinds in which two elements are equal. Without
// tallies each length has one list of kinds, so that all pairs of places are tried.
func (s *tupleSearch) repeating(kinds []elementKind) result {
	for q := range kinds {
		for k := range q {
			if !s.p.spend(1) {
				return s.p.unknown(ReasonSteps)
			}
			r := s.p.sat(s.p.conjunction(kinds[k].goal, kinds[q].goal...))
			if r.status != statusSat {
				s.unsure = worse(s.unsure, r)
				continue
			}
			items := make([][]byte, 0, len(kinds))
			for i := range kinds {
				items = append(items, kinds[i].value)
			}
			items[k], items[q] = r.value, r.value
			if raw := joinArray(items); !s.p.excluded(s.st, raw) {
				return satisfied(raw)
			}
			s.give(s.p.unknown(ReasonArray))
		}
	}
	if len(s.tallies) > 0 {
		return s.give(s.p.unknown(ReasonArray)) // other kinds might repeat
	}
	return unsat()
}

// choose looks for values of some kinds that differ, or that do not make an excluded
// array. As in chooseArray, a few values for each place are enough.
func (s *tupleSearch) choose(kinds []elementKind) result {
	n := s.p.excludedOf(s.st) + 1
	if s.st.unique {
		n += len(kinds)
	}
	if n > maxDistinct || len(kinds) > maxDistinct {
		return s.give(s.p.unknown(ReasonArray))
	}
	c := chooser{p: s.p, st: s.st, slots: make([]domain, len(kinds)), chosen: make([]uint32, len(kinds))}
	for i := range kinds {
		c.slots[i] = s.p.domain(kinds[i].goal, n)
		if c.slots[i].unknown.status == statusMaybe {
			return s.give(c.slots[i].unknown)
		}
	}
	if c.choose(0) {
		return satisfied(c.array())
	}
	if len(s.tallies) > 0 {
		return s.give(s.p.unknown(ReasonArray)) // other kinds might do
	}
	return unsat()
}

// checkHidden decides a state with terms that are beyond proof: what the others rule out
// is ruled out, and a value that they allow is one if the validator agrees.
func (p *prover) checkHidden(st *state) result {
	r := p.checkSort(st, true)
	if r.status != statusSat {
		return r
	}
	v, _ := jsontree.Build(r.value, 0)
	if p.holdAll(st.hidden, v) {
		return r
	}
	return p.unknown(ReasonKeyword)
}

package contain

import "slices"

// maxGroups bounds the demands that are distributed over elements. The ways to
// partition n demands into groups are Bell's numbers: 203 for six, four million
// for twelve.
const maxGroups = 6

// maxDistinct bounds how many different elements are looked for: each costs a
// search of its own, which must avoid the ones found before.
const maxDistinct = 256

// checkArray looks for an array. Each demand "some element satisfies" needs an
// element that also satisfies what all elements must. The demands get an
// element each, or share one where maxItems leaves no room. Both ways are
// tried: elements of their own may be impossible with uniqueItems, and a shared
// one impossible because two demands contradict each other.
func (p *prover) checkArray(st *state, build bool) result {
	best := unsat()
	for _, demand := range st.some {
		r := p.sat(p.conjunction(st.each, demand))
		if r.status == statusUnsat {
			return r
		}
		best = worse(best, r)
	}
	goals := make([][]termID, 0, len(st.some))
	for _, demand := range st.some {
		goals = append(goals, p.conjunction(st.each, demand))
	}
	// Beyond maxGroups, only the arrangement without sharing is tried. It can
	// show that a value exists, but not that there is none.
	if len(goals) > maxGroups {
		if r := p.arrayOf(st, goals, build); r.status == statusSat {
			return r
		}
		return p.unknown(ReasonArray)
	}
	p.groupings(goals, nil, func(groups [][]termID) bool {
		r := p.arrayOf(st, groups, build)
		if r.status != statusUnsat {
			best = worse(best, r)
		}
		if r.status == statusSat {
			best = r
		}
		return r.status != statusSat
	})
	return best
}

// groupings calls yield with every way to partition the goals into elements,
// until yield returns false. Elements of their own come first: they contradict
// each other the least, and most arrays have room for them.
func (p *prover) groupings(left [][]termID, groups [][]termID, yield func([][]termID) bool) bool {
	if len(left) == 0 {
		return yield(groups)
	}
	if !p.groupings(left[1:], append(groups[:len(groups):len(groups)], left[0]), yield) {
		return false
	}
	for i := range groups {
		merged := slices.Clone(groups)
		merged[i] = p.conjunction(groups[i], left[0]...)
		if !p.groupings(left[1:], merged, yield) {
			return false
		}
	}
	return true
}

// arrayOf looks for an array in which each group has an element. The array is as
// short as the counts allow; a longer one could only be needed to avoid an
// excluded value, which chooseArray sees to.
func (p *prover) arrayOf(st *state, groups [][]termID, build bool) result {
	size := max(st.count.low, len(groups))
	if st.repeat {
		size = max(size, len(groups)+1, 2)
	}
	// maxItems leaves no room for these groups; another grouping shares more.
	if size > st.count.high {
		return unsat()
	}
	fill := result{status: statusSat}
	if size > len(groups) {
		if fill = p.sat(st.each); fill.status == statusUnsat {
			return fill
		}
	}
	best := worse(unsat(), fill)
	members := make([][]byte, 0, len(groups))
	for _, g := range groups {
		r := p.sat(g)
		if r.status == statusUnsat {
			return r
		}
		best = worse(best, r)
		members = append(members, r.value)
	}
	if best.status == statusMaybe {
		return best
	}
	// The parts are possible. What remains concerns the array as a whole.
	exclusions := p.excludedOf(st)
	if !st.unique && exclusions == 0 {
		if !build {
			return satisfied(nil)
		}
		return p.fillArray(members, fill.value, size, st.repeat)
	}
	if !st.unique {
		if r := p.fillArray(members, fill.value, size, st.repeat); r.status != statusSat || !p.excluded(st, r.value) {
			return r
		}
	}
	return p.chooseArray(st, groups, size, exclusions)
}

// fillArray completes an array by repeating an element. The size is checked
// first, since minItems may ask for more elements than fit any memory.
func (p *prover) fillArray(members [][]byte, fill []byte, size int, repeat bool) result {
	total := 2
	for _, m := range members {
		total += len(m) + 1
	}
	if free := size - len(members); free > 0 && (total > p.budget.Witness || free > (p.budget.Witness-total)/(len(fill)+1)) {
		return p.unknown(ReasonWitness)
	}
	// uniqueItems is negated: two elements must be equal.
	if repeat && len(members) > 0 {
		members = append(members, members[0])
	}
	for len(members) < size {
		members = append(members, fill)
	}
	return satisfied(joinArray(members))
}

// joinArray writes an array of JSON values.
func joinArray(items [][]byte) []byte {
	raw := []byte{'['}
	for i, item := range items {
		if i > 0 {
			raw = append(raw, ',')
		}
		raw = append(raw, item...)
	}
	return append(raw, ']')
}

// chooseArray looks for an array whose elements must differ, or that must not
// equal certain arrays. It is exact although it looks at few candidates: an
// element can be in conflict with at most size-1 others, and each exclusion
// rules out at most one more value, so that of size+exclusions candidates one
// is always left. Fewer candidates than that are all that exist.
func (p *prover) chooseArray(st *state, groups [][]termID, size, exclusions int) result {
	if size > maxDistinct || exclusions > maxDistinct || size+2*exclusions > maxDistinct {
		return p.manyDistinct(st, groups, size, exclusions)
	}
	// An array with more elements avoids the exclusions, of which each has one
	// length: beyond size+exclusions nothing new can come.
	longest := min(st.count.high, size+exclusions)
	best := unsat()
	for ; size <= longest; size++ {
		slots := make([]domain, size)
		fill := domain{}
		if size > len(groups) {
			fill = p.domain(st.each, size+exclusions)
		}
		for i := range slots {
			slots[i] = fill
			if i < len(groups) {
				slots[i] = p.domain(groups[i], size+exclusions)
			}
			if slots[i].unknown.status == statusMaybe {
				return slots[i].unknown
			}
		}
		if st.unique && size > len(groups) && len(fill.values) < size {
			continue // fewer values than places: all elements come from fill
		}
		c := chooser{p: p, st: st, slots: slots, chosen: make([]uint32, size)}
		if c.choose(0) {
			return satisfied(c.array())
		}
		if p.spent != "" || exclusions > 0 && (st.repeat || len(groups) > 0) {
			best = worse(best, p.unknown(ReasonArray)) // the order of elements was not varied
		}
	}
	return best
}

// manyDistinct is for arrays too large for chooseArray. It can still show that
// there is no such array, if the elements have fewer values than places: a set
// of 200 booleans does not exist.
func (p *prover) manyDistinct(st *state, groups [][]termID, size, exclusions int) result {
	if st.unique && exclusions == 0 && size > len(groups) {
		d := p.domain(st.each, maxDistinct)
		if d.unknown.status != statusMaybe && len(d.values) < maxDistinct && len(d.values) < size {
			return unsat()
		}
	}
	return p.unknown(ReasonArray)
}

// domain holds different values of a goal: as many as were asked for, or all of
// them if there are fewer.
type domain struct {
	values  []uint32 // as identified
	unknown result   // set where the search gave up
}

// domain looks for up to n different values. Each search excludes the values
// found so far, so that the end of the search is a proof that there are no more.
func (p *prover) domain(goal []termID, n int) domain {
	var d domain
	for len(d.values) < n {
		next := goal
		if len(d.values) > 0 {
			next = p.conjunction(goal, p.intern(term{op: opOut, lits: p.newLiteralSet(slices.Clone(d.values))}))
		}
		r := p.sat(next)
		if r.status == statusMaybe {
			d.unknown = r
		}
		if r.status != statusSat {
			return d
		}
		d.values = append(d.values, p.identify(r.value))
	}
	return d
}

// chooser assigns a value of its domain to each element, by backtracking.
type chooser struct {
	p      *prover
	st     *state
	slots  []domain
	chosen []uint32
}

// choose assigns values to the elements from i on. It reports false if there is
// no assignment or the steps are used up, which the caller tells apart by
// spent.
func (c *chooser) choose(i int) bool {
	if i == len(c.slots) {
		return c.accepts()
	}
	for _, v := range c.slots[i].values {
		if !c.p.spend(1) {
			return false
		}
		if c.st.unique && slices.Contains(c.chosen[:i], v) {
			continue
		}
		c.chosen[i] = v
		if c.choose(i + 1) {
			return true
		}
	}
	return false
}

// accepts checks what concerns the array as a whole.
func (c *chooser) accepts() bool {
	if c.st.repeat {
		sorted := slices.Clone(c.chosen)
		slices.Sort(sorted)
		if len(slices.Compact(sorted)) == len(c.chosen) {
			return false
		}
	}
	return !c.p.excluded(c.st, c.array())
}

func (c *chooser) array() []byte {
	items := make([][]byte, 0, len(c.chosen))
	for _, id := range c.chosen {
		items = append(items, c.p.values[id].Raw)
	}
	return joinArray(items)
}

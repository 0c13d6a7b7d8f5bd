package schema

import "slices"

// maxGroups bounds how many elements with demands of their own are matched
// with each other: the ways to do so are Bell's numbers.
const maxGroups = 6

// maxDistinct bounds how many different elements are looked for.
const maxDistinct = 256

// checkArray looks for an array. Each demand "some element satisfies" gets an
// element of its own, or shares one where there is no room.
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

// groupings calls yield with every way to let goals share elements, those with
// many groups first where it can, until yield returns false.
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

// arrayOf looks for an array in which each group has an element.
func (p *prover) arrayOf(st *state, groups [][]termID, build bool) result {
	size := max(st.count.low, len(groups))
	if st.repeat {
		size = max(size, len(groups)+1, 2)
	}
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

// fillArray completes an array by repeating an element.
func (p *prover) fillArray(members [][]byte, fill []byte, size int, repeat bool) result {
	total := 2
	for _, m := range members {
		total += len(m) + 1
	}
	if free := size - len(members); free > 0 && (total > p.budget.Witness || free > (p.budget.Witness-total)/(len(fill)+1)) {
		return p.unknown(ReasonWitness)
	}
	if repeat && len(members) > 0 {
		members = append(members, members[0])
	}
	for len(members) < size {
		members = append(members, fill)
	}
	return satisfied(joinArray(members))
}

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

// chooseArray looks for an array whose elements must differ, or that is not
// to equal one of some arrays. It needs no more candidates for an element than
// there are elements and exclusions: from so many, one is always left.
func (p *prover) chooseArray(st *state, groups [][]termID, size, exclusions int) result {
	if size > maxDistinct || exclusions > maxDistinct || size+2*exclusions > maxDistinct {
		return p.manyDistinct(st, groups, size, exclusions)
	}
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

// manyDistinct shows at least that there are too few different elements.
func (p *prover) manyDistinct(st *state, groups [][]termID, size, exclusions int) result {
	if st.unique && exclusions == 0 && size > len(groups) {
		d := p.domain(st.each, maxDistinct)
		if d.unknown.status != statusMaybe && len(d.values) < maxDistinct && len(d.values) < size {
			return unsat()
		}
	}
	return p.unknown(ReasonArray)
}

// domain holds different values of a goal: all of them, or as many as were
// asked for.
type domain struct {
	values  []uint32 // as identified
	unknown result   // set where the search gave up
}

// domain looks for up to n different values.
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

// chooser assigns a value to each element, by search.
type chooser struct {
	p      *prover
	st     *state
	slots  []domain
	chosen []uint32
}

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
		items = append(items, c.p.values[id].raw)
	}
	return joinArray(items)
}

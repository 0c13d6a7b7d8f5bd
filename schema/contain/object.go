package contain

import (
	"slices"
	"strconv"
)

// checkObject looks for an object. What a member must satisfy does not depend
// on the other members, so that each is a goal of its own: an object with n
// properties costs n small searches and not one over all combinations. Two
// things break this independence, demands that some unnamed member exists and
// excluded objects, and both come later.
func (p *prover) checkObject(st *state, build bool) result {
	best := unsat()
	for i := range st.members {
		m := &st.members[i]
		if !m.has {
			continue
		}
		r := p.memberOf(m)
		if r.status == statusUnsat {
			return r
		}
		best = worse(best, r)
	}
	var fresh [][]byte
	if len(st.others) > 0 {
		c := st.clone()
		// The demands may change members, and the state is still needed as it
		// was.
		placed := p.place(c, st.others, &fresh)
		if placed.status == statusUnsat {
			return placed
		}
		best = worse(best, placed)
		st = c
	}
	// Some member may or may not be possible: without it there is no object to
	// build.
	if best.status == statusMaybe {
		return best
	}
	// A negated const or enum names whole objects, so that the members depend
	// on each other after all.
	if n := p.excludedOf(st); n > 0 {
		return p.chooseObject(st, fresh, n)
	}
	if !build {
		return satisfied(nil)
	}
	return p.buildObject(st, fresh)
}

// memberOf returns the answer about a member's goal, which the state keeps.
func (p *prover) memberOf(m *memberState) result {
	if !m.answered {
		m.answer, m.answered = p.sat(m.goal), true
	}
	return m.answer
}

// place finds a member for each demand "some member with another name than these
// satisfies a term", as a negated additionalProperties makes it. A member with a
// name that no schema mentions is tried first: there are infinitely many such
// names, so that it can never get in the way of another demand.
func (p *prover) place(st *state, others []*term, fresh *[][]byte) result {
	if len(others) == 0 {
		return satisfied(nil)
	}
	t := others[0]
	best := p.sat(p.conjunction(st.rest, t.args[0]))
	if best.status == statusSat {
		*fresh = append(*fresh, best.value)
		return p.place(st, others[1:], fresh)
	}
	return p.placeNamed(st, t, others[1:], fresh, best)
}

// spares reports whether a member can serve a demand: the demand does not except
// its name, and the member may exist.
func (t *term) spares(m *memberState) bool {
	_, named := slices.BinarySearch(t.names, m.name)
	return !named && !m.lacks
}

// placeNamed tries each named member for a demand, and for each the remaining
// demands. The state changes only if a place is found for all of them.
func (p *prover) placeNamed(st *state, t *term, others []*term, fresh *[][]byte, best result) result {
	for i := range st.members {
		if !t.spares(&st.members[i]) {
			continue
		}
		c := st.clone()
		m := &c.members[i]
		// The member gets a further condition, so that its answer is void.
		m.has, m.answered = true, false
		m.goal = p.conjunction(m.goal, t.args[0])
		r := p.memberOf(m)
		if r.status != statusSat {
			best = worse(best, r)
			continue
		}
		// The attempt may fail further on; then its members must not remain.
		free := slices.Clone(*fresh)
		if r = p.place(c, others, &free); r.status == statusSat {
			*st, *fresh = *c, free
			return r
		}
		best = worse(best, r)
	}
	return best
}

// maxFull bounds the bytes up to which a sample gets its optional members. In a
// schema that refers to itself often, the full value would be exponential.
const maxFull = 4096

// buildObject writes an object with the members that it must have and, for a
// sample, those that it may have.
func (p *prover) buildObject(st *state, fresh [][]byte) result {
	var parts []objectPart
	total := 0
	for i := range st.members {
		m := &st.members[i]
		if m.lacks || !m.has && (!p.full || total >= maxFull) {
			continue
		}
		r := p.memberOf(m)
		if r.status != statusSat || !m.has && total+len(r.value) > maxFull {
			continue
		}
		total += len(r.value)
		parts = append(parts, objectPart{p.names[m.name], r.value})
	}
	for i, value := range fresh {
		total += len(value)
		parts = append(parts, objectPart{p.freshName(i), value})
	}
	// A value that the caller could not use is none.
	if total > p.budget.Witness {
		return p.unknown(ReasonWitness)
	}
	return satisfied(joinObject(parts))
}

// objectPart is one member of an object under construction.
type objectPart struct {
	name  string
	value []byte
}

// joinObject writes an object of members whose values are JSON.
func joinObject(parts []objectPart) []byte {
	raw := []byte{'{'}
	for i, part := range parts {
		if i > 0 {
			raw = append(raw, ',')
		}
		raw = append(append(append(raw, quoteJSON(part.name)...), ':'), part.value...)
	}
	return append(raw, '}')
}

// freshName returns the i-th name that no schema mentions, counting from 0.
func (p *prover) freshName(i int) string {
	for n := 1; ; n++ {
		name := "extra"
		if n > 1 {
			name += strconv.Itoa(n)
		}
		if _, known := p.nameIDs[name]; known {
			continue
		}
		if i--; i < 0 {
			return name
		}
	}
}

// chooseObject looks for an object that differs from n excluded ones. If members
// with unmentioned names are possible, adding one after the other gives n+1
// objects that differ from each other, and one of them is not excluded.
// Otherwise the objects are the combinations of absent members and values;
// n+1 values for each member are enough, as for the elements of an array.
func (p *prover) chooseObject(st *state, fresh [][]byte, n int) result {
	r := p.buildObject(st, fresh)
	if r.status != statusSat || !p.excluded(st, r.value) {
		return r
	}
	if free := p.sat(st.rest); free.status != statusUnsat {
		if free.status == statusMaybe {
			return free
		}
		// Each of n+1 objects has one more free member than the one before.
		for range n + 1 {
			fresh = append(fresh, free.value)
			if r = p.buildObject(st, fresh); r.status != statusSat || !p.excluded(st, r.value) {
				return r
			}
		}
	}
	// No member with an unmentioned name is possible: each would have made an
	// object that is not excluded.
	v := objectVariation{p: p, st: st}
	for i := range st.members {
		m := &st.members[i]
		d := p.domain(m.goal, n+1)
		if d.unknown.status == statusMaybe {
			return d.unknown
		}
		if !m.lacks {
			v.domains = append(v.domains, d)
			v.members = append(v.members, m)
		}
	}
	if v.vary(0) {
		return satisfied(v.found)
	}
	if p.spent != "" || len(st.others) > 0 {
		return p.unknown(ReasonObject) // other members might have served the demands
	}
	return unsat()
}

// objectVariation goes through the objects of a state until one is not excluded.
type objectVariation struct {
	p       *prover
	st      *state
	members []*memberState
	domains []domain
	parts   []objectPart
	found   []byte
}

// vary decides the members from i on: absent if possible, then each value.
func (v *objectVariation) vary(i int) bool {
	if !v.p.spend(1) {
		return false
	}
	if i == len(v.members) {
		raw := joinObject(v.parts)
		if !v.p.excluded(v.st, raw) {
			v.found = raw
		}
		return v.found != nil
	}
	m := v.members[i]
	// First without the member, if it may be absent.
	if !m.has && v.vary(i+1) {
		return true
	}
	for _, id := range v.domains[i].values {
		v.parts = append(v.parts, objectPart{v.p.names[m.name], v.p.values[id].Raw})
		done := v.vary(i + 1)
		v.parts = v.parts[:len(v.parts)-1]
		if done {
			return true
		}
	}
	return false
}

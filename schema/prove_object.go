package schema

import (
	"slices"
	"strconv"
)

// checkObject looks for an object. What a member must satisfy does not depend
// on the other members, so each is a goal of its own.
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
		placed := p.place(c, st.others, &fresh)
		if placed.status == statusUnsat {
			return placed
		}
		best = worse(best, placed)
		st = c
	}
	if best.status == statusMaybe {
		return best
	}
	if n := p.excludedOf(st); n > 0 {
		return p.chooseObject(st, fresh, n)
	}
	if !build {
		return satisfied(nil)
	}
	return p.buildObject(st, fresh)
}

// memberOf returns the answer about a member's goal.
func (p *prover) memberOf(m *memberState) result {
	if !m.answered {
		m.answer, m.answered = p.sat(m.goal), true
	}
	return m.answer
}

// place finds a member for each demand that some member, not among certain
// names, satisfies a term. A member that no schema names is always free and
// stands in nobody's way, so it is tried first.
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

// spares reports whether a member is among those of which a demand speaks.
func (t *term) spares(m *memberState) bool {
	_, named := slices.BinarySearch(t.names, m.name)
	return !named && !m.lacks
}

// placeNamed tries each named member for a demand.
func (p *prover) placeNamed(st *state, t *term, others []*term, fresh *[][]byte, best result) result {
	for i := range st.members {
		if !t.spares(&st.members[i]) {
			continue
		}
		c := st.clone()
		m := &c.members[i]
		m.has, m.answered = true, false
		m.goal = p.conjunction(m.goal, t.args[0])
		r := p.memberOf(m)
		if r.status != statusSat {
			best = worse(best, r)
			continue
		}
		free := slices.Clone(*fresh)
		if r = p.place(c, others, &free); r.status == statusSat {
			*st, *fresh = *c, free
			return r
		}
		best = worse(best, r)
	}
	return best
}

// maxFull bounds the bytes up to which a sample gets its optional members.
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
	if total > p.budget.Witness {
		return p.unknown(ReasonWitness)
	}
	return satisfied(joinObject(parts))
}

type objectPart struct {
	name  string
	value []byte
}

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

// freshName returns the i-th name that no schema mentions.
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

// chooseObject looks for an object that differs from n others. A member whose
// name is free makes one; otherwise the members that may be absent, and the
// different values of the others, are tried until they run out.
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
	v := objectVariation{p: p, st: st, fresh: fresh}
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

// objectVariation goes through the objects of a state.
type objectVariation struct {
	p       *prover
	st      *state
	fresh   [][]byte
	members []*memberState
	domains []domain
	parts   []objectPart
	found   []byte
}

func (v *objectVariation) vary(i int) bool {
	if !v.p.spend(1) {
		return false
	}
	if i == len(v.members) {
		parts := slices.Clone(v.parts)
		for k, value := range v.fresh {
			parts = append(parts, objectPart{v.p.freshName(k), value})
		}
		raw := joinObject(parts)
		if !v.p.excluded(v.st, raw) {
			v.found = raw
		}
		return v.found != nil
	}
	m := v.members[i]
	if !m.has && v.vary(i+1) {
		return true
	}
	for _, id := range v.domains[i].values {
		v.parts = append(v.parts, objectPart{v.p.names[m.name], v.p.values[id].raw})
		done := v.vary(i + 1)
		v.parts = v.parts[:len(v.parts)-1]
		if done {
			return true
		}
	}
	return false
}

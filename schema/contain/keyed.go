package contain

import (
	"slices"

	"github.com/agentd/agentd/schema/internal/ir"
	"github.com/agentd/agentd/schema/internal/jsontree"
)

// isKeyed reports whether members are chosen by what their names satisfy, or counted.
func (st *state) isKeyed() bool {
	return len(st.keyed) > 0 || st.size.low > 0 || st.size.high != ir.Unbounded
}

// holdsName is holds for the name of a member, which a term sees as a string.
func (p *prover) holdsName(id termID, name string) bool {
	return p.holds(id, &jsontree.Tree{Kind: jsontree.String, Raw: quoteJSON(name), Text: name})
}

// nameClass is the names that satisfy the same of the conditions in a state, and what
// their values must then satisfy. No named member is in one.
type nameClass struct{ name, value []termID }

// demand asks for a member: some name and some value.
type demand struct{ name, value termID }

// freshMember is a member of a class that serves demands.
type freshMember struct{ name, value []termID }

// keyedSearch looks for an object in which conditions on names choose what values must
// satisfy. A demand is served by a named member, or by a fresh one of some class; which
// is decided by backtracking.
type keyedSearch struct {
	p       *prover
	st      *state
	classes []nameClass
	demands []demand
	members []memberState // a copy of the state's, with all that their names imply
	fresh   []freshMember
	unsure  result // why finding nothing would prove nothing
}

// maxConditions bounds the conditions on names: there can be a class for every set.
const (
	maxConditions = 6
	maxDemands    = 6
)

// checkKeyed is checkObject for states with terms about names, or about the number of
// members.
func (p *prover) checkKeyed(st *state) result {
	s := &keyedSearch{p: p, st: st, unsure: unsat()}
	var conditions []*term
	for _, t := range st.keyed {
		if t.op == opEvery {
			conditions = append(conditions, t)
		} else {
			s.demands = append(s.demands, demand{t.args[0], t.args[1]})
		}
	}
	for _, t := range st.others {
		s.demands = append(s.demands, demand{p.outNames(t.names), t.args[0]})
	}
	if len(conditions) > maxConditions || len(s.demands) > maxDemands {
		return p.unknown(ReasonObject)
	}
	if r := s.named(conditions); r.status == statusUnsat {
		return r
	}
	ids := make([]nameID, 0, len(s.members))
	for i := range s.members {
		ids = append(ids, s.members[i].name)
	}
	free := p.conjunction(nil, p.ofSorts(sortString), p.outNames(ids))
	s.classify(conditions, free, slices.Clip(st.rest))
	r := s.place(0)
	switch {
	case r.status == statusSat:
		return r
	case p.spent != "":
		return p.unknown(ReasonSteps)
	}
	return worse(s.unsure, r)
}

// doubt notes that finding nothing would not show that there is nothing.
func (s *keyedSearch) doubt(r result) { s.unsure = worse(s.unsure, r) }

// named completes what the named members must satisfy by what their names imply.
func (s *keyedSearch) named(conditions []*term) result {
	p := s.p
	s.members = slices.Clone(s.st.members)
	for i := range s.members {
		m := &s.members[i]
		for _, t := range conditions {
			if p.holdsName(t.args[0], p.names[m.name]) {
				m.goal, m.answered = p.conjunction(m.goal, t.args[1]), false
			}
		}
		if !m.has {
			continue
		}
		r := p.memberOf(m)
		if r.status == statusUnsat {
			return r
		}
		s.doubt(r)
	}
	return satisfied(nil)
}

// classify finds the classes of names in which members can exist.
func (s *keyedSearch) classify(conditions []*term, name, value []termID) {
	if s.p.spent != "" {
		return
	}
	if r := s.p.sat(name); r.status != statusSat {
		s.doubt(r)
		return
	}
	if len(conditions) == 0 {
		r := s.p.sat(value)
		s.doubt(r)
		if r.status == statusSat {
			s.classes = append(s.classes, nameClass{name, value})
		}
		return
	}
	t := conditions[0]
	s.classify(conditions[1:], s.p.conjunction(name, t.args[0]), s.p.conjunction(value, t.args[1]))
	s.classify(conditions[1:], s.p.conjunction(name, s.p.negate(t.args[0])), value)
}

// place serves the demands from one number on, and completes the object.
func (s *keyedSearch) place(i int) result {
	if !s.p.spend(1) {
		return s.p.unknown(ReasonSteps)
	}
	if i == len(s.demands) {
		return s.complete()
	}
	d := s.demands[i]
	for _, c := range s.classes {
		s.fresh = append(s.fresh, freshMember{s.p.conjunction(c.name, d.name), s.p.conjunction(c.value, d.value)})
		r := s.tryFresh(len(s.fresh)-1, i)
		if r.status == statusSat {
			return r
		}
		s.fresh = s.fresh[:len(s.fresh)-1]
	}
	for k := range s.fresh {
		was := s.fresh[k]
		s.fresh[k] = freshMember{s.p.conjunction(was.name, d.name), s.p.conjunction(was.value, d.value)}
		r := s.tryFresh(k, i)
		if r.status == statusSat {
			return r
		}
		s.fresh[k] = was
	}
	return s.placeNamed(d, i)
}

// tryFresh goes on with the next demand if a fresh member is possible.
func (s *keyedSearch) tryFresh(k, i int) result {
	for _, goal := range [][]termID{s.fresh[k].name, s.fresh[k].value} {
		if r := s.p.sat(goal); r.status != statusSat {
			s.doubt(r)
			return r
		}
	}
	return s.place(i + 1)
}

// placeNamed tries the named members for a demand.
func (s *keyedSearch) placeNamed(d demand, i int) result {
	for k := range s.members {
		was := s.members[k]
		if was.lacks || !s.p.holdsName(d.name, s.p.names[was.name]) {
			continue
		}
		m := &s.members[k]
		m.has, m.answered = true, false
		m.goal = s.p.conjunction(m.goal, d.value)
		r := s.p.memberOf(m)
		s.doubt(r)
		if r.status == statusSat {
			if r = s.place(i + 1); r.status == statusSat {
				return r
			}
		}
		s.members[k] = was
	}
	return unsat()
}

// object is an object under construction.
type object struct {
	parts []objectPart
	names []uint32 // those of fresh members, as identified
	size  int
}

// complete builds the object, with as many members as it must have.
func (s *keyedSearch) complete() result {
	var o object
	for i := range s.members {
		m := &s.members[i]
		if !m.has {
			continue
		}
		r := s.p.memberOf(m)
		if r.status != statusSat {
			s.doubt(r)
			return r
		}
		o.add(s.p.names[m.name], r.value)
	}
	for _, f := range s.fresh {
		if !s.addFresh(&o, f.name, f.value) {
			// Another choice of names might have left one.
			s.doubt(s.p.unknown(ReasonObject))
			return unsat()
		}
	}
	if len(o.parts) > s.st.size.high {
		return unsat()
	}
	const most = 1000
	if s.st.size.low > most {
		return s.give(s.p.unknown(ReasonWitness))
	}
	if !s.fill(&o, max(s.st.size.low, len(o.parts))) {
		return unsat() // there are not as many names
	}
	return s.finish(o)
}

// give records a reason not to know and returns it.
func (s *keyedSearch) give(r result) result {
	s.doubt(r)
	return r
}

// add adds a member.
func (o *object) add(name string, value []byte) {
	o.parts = append(o.parts, objectPart{name, value})
	o.size += len(name) + len(value) + 4
}

// addFresh adds a member with a new name that satisfies a goal. It reports false if there
// is no such name left.
func (s *keyedSearch) addFresh(o *object, name, value []termID) bool {
	if len(o.names) > 0 {
		name = s.p.conjunction(name, s.p.intern(term{op: opOut, lits: s.p.newLiteralSet(slices.Clone(o.names))}))
	}
	n, v := s.p.sat(name), s.p.sat(value)
	if n.status != statusSat || v.status != statusSat {
		s.doubt(n)
		s.doubt(v)
		return false
	}
	id := s.p.identify(n.value)
	o.names = append(o.names, id)
	o.add(s.p.values[id].Text, v.value)
	return true
}

// fill adds members that may be absent until there are so many.
func (s *keyedSearch) fill(o *object, size int) bool {
	for i := range s.members {
		m := &s.members[i]
		if m.has || m.lacks || len(o.parts) >= size && (!s.p.full || o.size > maxFull || len(o.parts) >= s.st.size.high) {
			continue
		}
		r := s.p.memberOf(m)
		s.doubt(r)
		if r.status == statusSat {
			o.add(s.p.names[m.name], r.value)
		}
	}
	for _, c := range s.classes {
		for len(o.parts) < size && s.addFresh(o, c.name, c.value) {
			if !s.p.spend(1) {
				return false
			}
		}
	}
	return len(o.parts) >= size
}

// finish returns the object unless it is excluded. Then more members are tried, of which
// each makes another object; other values are not, so that finding none is no proof.
func (s *keyedSearch) finish(o object) result {
	for range s.p.excludedOf(s.st) + 1 {
		raw := joinObject(o.parts)
		if len(raw) > s.p.budget.Witness {
			return s.give(s.p.unknown(ReasonWitness))
		}
		if !s.p.excluded(s.st, raw) {
			return satisfied(raw)
		}
		before := len(o.parts)
		if before >= s.st.size.high || !s.fill(&o, before+1) {
			break
		}
	}
	return s.give(s.p.unknown(ReasonObject))
}

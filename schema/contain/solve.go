package contain

import "slices"

// solve looks for a value in a state, with ever more effort: first what needs no
// decision; then pruning, which asks of each arm whether it can hold at all
// beside what is certain, and answers most questions about unions; then one
// quick dive for a value; and only then a search, which is exponential in the
// worst case.
func (p *prover) solve(st *state) result {
	if r, done := p.simple(st); done {
		return r
	}
	if gathered := p.gather(st); gathered != st {
		return p.solve(gathered)
	}
	// Pruning is the step that decides most unions.
	st, possible := p.propagate(st)
	if !possible {
		return unsat()
	}
	if r, done := p.simple(st); done {
		return r
	}
	if r := p.dive(st); r.status == statusSat {
		return r
	}
	return p.compete(p.dropImplied(st))
}

// simple answers where no disjunction is left to decide, or where what is certain
// is contradictory already. A state with listed values is simple too, since each
// value can be tried.
func (p *prover) simple(st *state) (r result, done bool) {
	switch {
	case !p.spend(1):
		return p.unknown(ReasonSteps), true
	case len(st.in) > 0:
		return p.tryLiterals(st), true
	case len(st.ors) == 0:
		return p.check(st, true), true
	}
	r = p.check(st, false)
	return r, r.status == statusUnsat
}

// propagate drops arms that cannot hold and takes in those that must, until
// nothing changes: unit propagation, as in solvers for propositional logic. It
// reports false if some disjunction has no arm left.
func (p *prover) propagate(st *state) (*state, bool) {
	for {
		if p.spent != "" {
			return st, true
		}
		// A disjunction without any arm is the most frequent end: look for
		// one before asking about all arms.
		first := make([]int, len(st.ors))
		for i, or := range st.ors {
			arms := p.terms[or].args
			for first[i] < len(arms) && !p.possible(st, i, arms[first[i]]) {
				first[i]++
			}
			if first[i] == len(arms) {
				return st, false
			}
		}
		// No disjunction is empty. Now all arms are asked about, and a
		// disjunction of one arm is taken in, which may empty others.
		ors, only := p.prune(st, first)
		if only < 0 {
			if !slices.Equal(ors, st.ors) {
				st = st.clone()
				st.ors = ors
			}
			return st, true
		}
		next := p.take(st, only, p.terms[st.ors[only]].args[first[only]])
		if next == nil {
			return st, false
		}
		if st = next; len(st.in) > 0 {
			return st, true
		}
	}
}

// prune drops the arms that cannot hold, given the first that can of each
// disjunction. only is a disjunction that has no other, or -1.
func (p *prover) prune(st *state, first []int) (ors []termID, only int) {
	ors = make([]termID, len(st.ors))
	for i, or := range st.ors {
		arms := p.terms[or].args
		live := []termID{arms[first[i]]}
		for _, arm := range arms[first[i]+1:] {
			if p.possible(st, i, arm) {
				live = append(live, arm)
			}
		}
		if len(live) == 1 {
			return nil, i
		}
		ors[i] = or
		if len(live) < len(arms) {
			ors[i] = p.or(live...)
		}
	}
	return ors, -1
}

// take returns the state with one arm of disjunction i taken in, or nil if
// that contradicts itself at once.
func (p *prover) take(st *state, i int, arm termID) *state {
	p.spend((len(st.ors) + len(st.members)) / 64) // a copy of many takes its time
	c := st.clone()
	// The full slice expression makes append copy: the original keeps its
	// disjunctions.
	c.ors = append(c.ors[:i:i], c.ors[i+1:]...)
	if !c.push(p, arm) {
		return nil
	}
	return c
}

// possible reports whether an arm of disjunction i can hold beside what is
// certain, the other disjunctions left aside. True may be wrong, false may not.
func (p *prover) possible(st *state, i int, arm termID) bool {
	// The common case: the arm is about one member, and only that member needs
	// a look.
	if m, ok := p.aboutMember(st, arm); ok {
		return p.memberPossible(st, m)
	}
	c := p.take(st, i, arm)
	// A state with listed values is only decided by trying them, which is left
	// to the search.
	return c != nil && (len(c.in) > 0 || p.check(c, false).status != statusUnsat)
}

// claim is what a term says about a single member of an object. Most arms about
// objects are claims, and asking about the one member is far cheaper than
// asking about an object with all its members.
type claim struct {
	name       nameID
	has, lacks bool
	value      termID
}

// aboutMember reads a term as a claim. It reports false where it is none, or
// where members depend on each other, so that a look at one is not enough.
func (p *prover) aboutMember(st *state, id termID) (claim, bool) {
	if st.sort != sortObject || len(st.others) > 0 || len(st.out) > 0 || st.isKeyed() || len(st.hidden) > 0 {
		return claim{}, false
	}
	if p.isForm(id) {
		if slices.Contains(st.seen, id^1) {
			return claim{}, false
		}
		id = p.open(id)
	}
	// All parts must be about the same member, or about being an object.
	c := claim{name: -1, value: termTrue}
	parts := []termID{id}
	if p.terms[id].op == opAnd {
		parts = p.terms[id].args
	}
	for _, part := range parts {
		t := &p.terms[part]
		switch {
		case t.op == opSorts && t.may&sortObject != 0:
			continue
		case t.op == opHas:
			c.has = true
		case t.op == opLacks:
			c.lacks = true
		case t.op == opRow && len(t.names) == 1 && t.args[1] == termTrue && c.value == termTrue:
			c.value = t.args[0]
		default:
			return claim{}, false
		}
		if c.name >= 0 && c.name != t.names[0] {
			return claim{}, false
		}
		c.name = t.names[0]
	}
	return c, c.name >= 0
}

// memberPossible reports whether a claim can hold in a state.
func (p *prover) memberPossible(st *state, c claim) bool {
	m := st.known(c.name)
	switch {
	case (c.has || m.has) && (c.lacks || m.lacks):
		return false
	// The member may be absent, which satisfies any claim about its value.
	case !c.has && !m.has:
		return true
	}
	return p.sat(p.conjunction(m.goal, c.value)).status != statusUnsat
}

// dropImplied leaves out the disjunctions that hold anyway. Each would multiply
// the cases of a search by its arms. To find out costs a proof for each arm,
// which is why it happens only once, before the search.
func (p *prover) dropImplied(st *state) *state {
	left := make([]termID, 0, len(st.ors))
	for _, or := range st.ors {
		if !slices.ContainsFunc(p.terms[or].args, func(arm termID) bool { return p.implied(st, arm) }) {
			left = append(left, or)
		}
	}
	if len(left) < len(st.ors) {
		st = st.clone()
		st.ors = left
	}
	return st
}

// implied reports whether a term holds in every value of a state, its
// disjunctions left aside.
func (p *prover) implied(st *state, id termID) bool {
	if p.isForm(id) {
		id = p.open(id)
	}
	if c, ok := p.aboutMember(st, id); ok {
		return p.memberImplied(st, c)
	}
	parts := []termID{id}
	if p.terms[id].op == opAnd {
		parts = p.terms[id].args
	}
	const most = 8
	// Too many parts to prove one by one for a disjunction that is only in the
	// way.
	if len(parts) > most {
		return false
	}
	for _, part := range parts {
		c := st.clone()
		c.ors = nil
		not := p.negate(part)
		if !c.push(p, not) {
			continue
		}
		if r, closed := p.aside(func() result { return p.solve(c) }); r.status != statusUnsat || !closed {
			return false
		}
	}
	return true
}

// memberImplied reports whether a claim holds in every value of a state.
func (p *prover) memberImplied(st *state, c claim) bool {
	m := st.known(c.name)
	if c.has && !m.has || c.lacks && !m.lacks {
		return false
	}
	if c.value == termTrue || m.lacks {
		return true
	}
	goal := p.conjunction(m.goal, p.negate(c.value))
	r, closed := p.aside(func() result { return p.sat(goal) })
	return r.status == statusUnsat && closed
}

// check looks for a value in a state, its disjunctions left aside, by the theory
// of its sort. The value of an array or object is built only on demand: most
// questions are whether there is one.
func (p *prover) check(st *state, build bool) result {
	if !p.spend(1) {
		return p.unknown(ReasonSteps)
	}
	if len(st.hidden) > 0 {
		return p.checkHidden(st)
	}
	return p.checkSort(st, build)
}

// checkSort asks the theory of a sort.
func (p *prover) checkSort(st *state, build bool) result {
	switch st.sort {
	case sortNull:
		return p.firstOf(st, "null")
	case sortBoolean:
		return p.firstOf(st, "true", "false")
	case sortInteger, sortFraction:
		return p.checkNumber(st)
	case sortString:
		return p.checkString(st)
	case sortArray:
		if len(st.tuples) > 0 {
			return p.checkTuple(st)
		}
		return p.checkArray(st, build)
	default:
		if st.isKeyed() {
			return p.checkKeyed(st)
		}
		return p.checkObject(st, build)
	}
}

// firstOf returns the first value that is not excluded.
func (p *prover) firstOf(st *state, values ...string) result {
	for _, v := range values {
		if !p.excluded(st, []byte(v)) {
			return satisfied([]byte(v))
		}
	}
	return unsat()
}

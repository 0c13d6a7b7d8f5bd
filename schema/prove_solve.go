package schema

// solve looks for a value in a state. Disjunctions are pruned first by asking
// of each arm whether it can hold at all beside what is certain; that settles
// most questions about unions without a search.
func (p *prover) solve(st *state) result {
	if !p.spend(1) {
		return p.unknown(ReasonSteps)
	}
	if len(st.in) > 0 {
		return p.tryLiterals(st)
	}
	if len(st.ors) == 0 {
		return p.check(st, true)
	}
	if r := p.check(st, false); r.status == statusUnsat {
		return r
	}
	st, arms, possible := p.propagate(st)
	switch {
	case !possible:
		return unsat()
	case len(st.in) > 0 || len(st.ors) == 0:
		return p.solve(st)
	}
	if len(arms) > 1 {
		arms = p.dropImplied(st, arms)
		if len(arms) == 0 {
			c := st.clone()
			c.ors = nil
			return p.check(c, true)
		}
	}
	return p.branch(arms)
}

// disjunction is one of a state's, with the states that its live arms lead to.
type disjunction struct {
	term   termID
	arms   []termID
	states []*state
}

// propagate drops arms that cannot hold and takes in those that must, until
// nothing changes. It returns the new state and its disjunctions.
func (p *prover) propagate(st *state) (*state, []disjunction, bool) {
next:
	for {
		var open []disjunction
		for i, or := range st.ors {
			d := disjunction{term: or}
			for _, arm := range p.terms[or].args {
				if c := p.probe(st, i, arm); c != nil {
					d.arms = append(d.arms, arm)
					d.states = append(d.states, c)
				}
			}
			switch len(d.arms) {
			case 0:
				return nil, nil, false
			case 1:
				if st = d.states[0]; len(st.in) > 0 {
					return st, nil, true
				}
				continue next
			}
			open = append(open, d)
		}
		return st, open, true
	}
}

// probe returns the state with one arm of disjunction i taken in, or nil if
// that cannot hold.
func (p *prover) probe(st *state, i int, arm termID) *state {
	c := st.clone()
	c.ors = append(c.ors[:i:i], c.ors[i+1:]...)
	c.roots = append(c.roots, arm)
	if !c.push(p, arm) {
		return nil
	}
	if len(c.in) > 0 || p.check(c, false).status != statusUnsat {
		return c
	}
	return nil
}

// dropImplied leaves out the disjunctions that hold anyway. It happens only
// before a search, which they would multiply.
func (p *prover) dropImplied(st *state, open []disjunction) []disjunction {
	var left []disjunction
	for _, d := range open {
		implied := false
		for _, arm := range d.arms {
			if implied = p.implied(st, arm); implied {
				break
			}
		}
		if !implied {
			left = append(left, d)
		}
	}
	if len(left) == len(open) {
		return open
	}
	// The states of the arms still hold the disjunctions that were dropped.
	ors := make([]termID, 0, len(left))
	for _, d := range left {
		ors = append(ors, d.term)
	}
	for k := range left {
		for i, arm := range left[k].arms {
			c := st.clone()
			c.ors = append(append([]termID{}, ors[:k]...), ors[k+1:]...)
			c.roots = append(c.roots, arm)
			if !c.push(p, arm) {
				continue // it was possible before; nothing is lost by keeping the old state
			}
			left[k].states[i] = c
		}
	}
	return left
}

// implied reports whether a term holds in every value of a state, its
// disjunctions left aside.
func (p *prover) implied(st *state, id termID) bool {
	t := &p.terms[id]
	if t.op == opForm {
		id = p.open(id)
		t = &p.terms[id]
	}
	parts := []termID{id}
	if t.op == opAnd {
		parts = t.args
	}
	const most = 8
	if len(parts) > most {
		return false
	}
	for _, part := range parts {
		c := st.clone()
		c.ors = nil
		not := p.negate(part)
		c.roots = append(c.roots, not)
		if !c.push(p, not) {
			continue
		}
		if len(c.in) > 0 {
			return false // its values would be tried against the disjunctions too
		}
		if r, closed := p.aside(func() result { return p.solve(c) }); r.status != statusUnsat || !closed {
			return false
		}
	}
	return true
}

// branch tries the arms of the smallest disjunction.
func (p *prover) branch(open []disjunction) result {
	smallest := open[0]
	for _, d := range open[1:] {
		if len(d.arms) < len(smallest.arms) {
			smallest = d
		}
	}
	best := unsat()
	for _, c := range smallest.states {
		r := p.solve(c)
		if r.status == statusSat {
			return r
		}
		best = worse(best, r)
	}
	return best
}

// check looks for a value in a state, its disjunctions left aside. The value
// itself is built only on demand.
func (p *prover) check(st *state, build bool) result {
	if !p.spend(1) {
		return p.unknown(ReasonSteps)
	}
	switch st.sort {
	case sortNull:
		return p.firstOf(st, "null")
	case sortBoolean:
		return p.firstOf(st, "true", "false")
	case sortInteger:
		return p.checkInteger(st)
	case sortFraction:
		return p.checkFraction(st)
	case sortString:
		return p.checkString(st)
	case sortArray:
		return p.checkArray(st, build)
	default:
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

package contain

import "slices"

// compete searches from one disjunction after the other, with four times the
// steps in each round. Where one start leads into exponentially many cases,
// another often ends at once, and no rule predicts which. The rounds cost at
// most a third more than the last of them.
func (p *prover) compete(st *state) result {
	if r, done := p.simple(st); done {
		return r
	}
	// At most four starts compete, because each costs its share of the steps.
	ors := p.candidates(st.ors)
	for steps := 1000; ; steps *= 4 {
		best, more := unsat(), false
		for _, or := range ors {
			r, cut := p.limited(steps, func() result {
				return p.branchOn(p.survivors(st, slices.Index(st.ors, or)))
			})
			// An answer from any start is the answer.
			if !cut && r.status != statusMaybe {
				return r
			}
			best, more = worse(best, r), more || cut
		}
		if !more {
			return best
		}
	}
}

// dive takes the first arm of each disjunction that can hold, without ever
// turning back. Where values abound, which is where schemas are far from
// contained, it finds one in linear time. It never shows that there is none.
func (p *prover) dive(st *state) result {
	for {
		i := p.choice(st)
		var next *state
		for _, arm := range p.terms[st.ors[i]].args {
			c := p.take(st, i, arm)
			if c == nil {
				continue
			}
			if len(c.in) > 0 {
				return p.tryLiterals(c)
			}
			if c, possible := p.propagate(c); possible {
				next = c
				break
			}
		}
		if next == nil {
			return p.unknown(ReasonSteps)
		}
		if r, done := p.simple(next); done {
			return r
		}
		st = next
	}
}

// choice returns the disjunction to decide next. An alternative that a schema
// writes as oneOf or anyOf says much about the value, each arm being a whole
// schema. Disjunctions that come from negating a conjunction say little: that
// some keyword of many fails.
func (p *prover) choice(st *state) int {
	for i, or := range st.ors {
		if p.isChoice(or) {
			return i
		}
	}
	return 0
}

// isChoice reports whether a disjunction is an alternative of a schema: one of
// its arms is a form that is not negated.
func (p *prover) isChoice(or termID) bool {
	return slices.ContainsFunc(p.terms[or].args, func(arm termID) bool {
		if p.terms[arm].op == opAnd {
			arm = p.terms[arm].args[0] // forms stand first
		}
		return p.isForm(arm) && (arm-firstForm)%2 == 0
	})
}

// branch tries the arms of the disjunction that has the fewest, counting only
// those that survive propagation.
func (p *prover) branch(st *state) result {
	if r, done := p.simple(st); done {
		return r
	}
	var fewest []*state
	for i, or := range p.choicesFirst(st.ors) {
		at := slices.Index(st.ors, or)
		live := p.survivors(st, at)
		if len(live) <= 1 || i == 0 || len(live) < len(fewest) {
			fewest = live
		}
		// A disjunction with one arm left costs no branching, so nothing can be
		// better.
		if len(live) <= 1 || p.spent != "" {
			break
		}
	}
	return p.branchOn(fewest)
}

// branchOn tries the states that the arms of one disjunction lead to.
func (p *prover) branchOn(states []*state) result {
	best := unsat()
	for _, c := range states {
		r := p.branch(c)
		if r.status == statusSat {
			return r
		}
		best = worse(best, r)
	}
	if p.spent != "" {
		return p.unknown(ReasonSteps)
	}
	return best
}

// candidates are the disjunctions from which a search may start: the smallest
// and the largest, of alternatives and of the others.
func (p *prover) candidates(ors []termID) []termID {
	ors = p.choicesFirst(ors)
	choices := 0
	for choices < len(ors) && p.isChoice(ors[choices]) {
		choices++
	}
	var some []termID
	for _, group := range [][]termID{ors[:choices], ors[choices:]} {
		if len(group) > 0 {
			some = append(some, group[0])
		}
		if len(group) > 1 {
			some = append(some, group[len(group)-1])
		}
	}
	return some
}

// choicesFirst sorts disjunctions: alternatives of the schemas first, and the
// shorter ones first among each kind.
func (p *prover) choicesFirst(ors []termID) []termID {
	sorted := slices.Clone(ors)
	slices.SortStableFunc(sorted, func(a, b termID) int {
		switch x, y := p.isChoice(a), p.isChoice(b); {
		case x == y:
			return len(p.terms[a].args) - len(p.terms[b].args)
		case x:
			return -1
		}
		return 1
	})
	return sorted
}

// survivors returns the states that the arms of a disjunction lead to, without
// those in which propagation finds a contradiction.
func (p *prover) survivors(st *state, i int) []*state {
	var live []*state
	for _, arm := range p.terms[st.ors[i]].args {
		c := p.take(st, i, arm)
		if c == nil {
			continue
		}
		possible := true
		if len(c.in) == 0 {
			c, possible = p.propagate(c)
		}
		if possible {
			live = append(live, c)
		}
	}
	return live
}

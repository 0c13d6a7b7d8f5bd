package contain

import (
	"slices"
	"unicode/utf8"

	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/internal/decimal"
	"github.com/agentd/agentd/schema/internal/jsontree"
)

// tryLiterals decides a state that allows only listed values. It judges each of
// them, which is exact however complicated the rest of the state is, and much
// cheaper than to reason about it. The shortest list suffices, since a value
// must be in all of them.
func (p *prover) tryLiterals(st *state) result {
	// The value is in every list, so the shortest has all candidates.
	fewest := st.in[0]
	for _, set := range st.in[1:] {
		if len(set.ids) < len(fewest.ids) {
			fewest = set
		}
	}
	for _, id := range fewest.ids {
		v := p.values[id]
		listed := sortOf(v) == st.sort
		for _, set := range st.in {
			listed = listed && set.has(id)
		}
		if !listed {
			continue
		}
		// Judging a literal takes time in proportion to its size.
		if !p.spend(1 + len(v.Raw)/64) {
			return p.unknown(ReasonSteps)
		}
		if p.holdAll(st.atoms, v) && p.holdAll(st.ors, v) && p.holdAll(st.apart, v) {
			return satisfied(v.Raw)
		}
	}
	return unsat()
}

// excluded reports whether a state rules out a value by name: a negated const or
// enum.
func (p *prover) excluded(st *state, raw []byte) bool {
	if len(st.out) == 0 {
		return false
	}
	id := p.identify(raw)
	return slices.ContainsFunc(st.out, func(set *literalSet) bool { return set.has(id) })
}

// excludedOf counts the values of a state's sort that it rules out by name. This
// bounds how many candidates a search must try before one is left.
func (p *prover) excludedOf(st *state) int {
	n := 0
	for _, set := range st.out {
		for _, id := range set.ids {
			if sortOf(p.values[id]) == st.sort {
				n++
			}
		}
	}
	return n
}

// holdAll reports whether a value satisfies all of some terms.
func (p *prover) holdAll(terms []termID, v *jsontree.Tree) bool {
	for _, t := range terms {
		if !p.holds(t, v) {
			return false
		}
	}
	return true
}

// holds reports whether a value satisfies a term. It is the plain meaning of
// terms, by recursion over the value, and the reference for what the searches
// find. Forms are judged by the production validator, so that the prover cannot
// have an opinion of its own about listed values.
func (p *prover) holds(id termID, v *jsontree.Tree) bool {
	p.spend(1)
	t := &p.terms[id]
	// A keyword about another type of value is satisfied.
	if s := sortOfOp(t.op); s != 0 && s&sortOf(v) == 0 {
		return true
	}
	switch t.op {
	case opFalse, opTrue:
		return id == termTrue
	case opForm:
		return p.passes(int(id-firstForm)/2, v) == ((id-firstForm)%2 == 0)
	case opAnd:
		return p.holdAll(t.args, v)
	case opOr:
		return slices.ContainsFunc(t.args, func(a termID) bool { return p.holds(a, v) })
	case opSorts:
		return t.may&sortOf(v) != 0
	case opIn, opOut:
		return t.lits.has(p.identify(v.Raw)) == (t.op == opIn)
	case opLow, opHigh:
		return t.allows(decimal.Parse(v.Raw))
	case opMultiple, opNotMultiple:
		return t.divisor.Divides(decimal.Parse(v.Raw)) == (t.op == opMultiple)
	case opPasses, opFails:
		return p.passes(t.from, v) == (t.op == opPasses)
	case opLength, opMatch, opMiss, opFormat, opNoFormat:
		return t.reads(v.Text)
	case opCount, opItems, opSome, opUnique, opRepeat, opAt, opFrom, opTally:
		return p.holdsArray(*t, v)
	default:
		return p.holdsObject(*t, v)
	}
}

// passes reports whether a value passes a form. One that takes the validator more steps
// than it may shows nothing about the schema, so that the prover gives up.
func (p *prover) passes(form int, v *jsontree.Tree) bool {
	verdict := p.forms[form].check(p.ctx, v.Raw)
	if verdict == schema.Exceeded && p.spent == "" {
		p.spent = ReasonWitness
		if p.ctx.Err() != nil {
			p.spent = ReasonTime
		}
	}
	return verdict == schema.Valid
}

// allows reports whether a number lies on the right side of a limit.
func (t *term) allows(d decimal.Decimal) bool {
	order := d.Compare(t.limit.Decimal)
	if t.op == opHigh {
		order = -order
	}
	return order > 0 || order == 0 && !t.open
}

// reads reports whether the characters of a string satisfy a term.
func (t *term) reads(text string) bool {
	switch t.op {
	case opLength:
		n := utf8.RuneCountInString(text)
		return t.low <= n && n <= t.high
	case opMatch, opMiss:
		return t.pattern.Match([]byte(text)) == (t.op == opMatch)
	default:
		return t.format.Match([]byte(text)) == (t.op == opFormat)
	}
}

// holdsArray is holds for terms about arrays.
func (p *prover) holdsArray(t term, v *jsontree.Tree) bool {
	switch t.op {
	case opCount:
		return t.low <= len(v.Items) && len(v.Items) <= t.high
	case opItems:
		return !slices.ContainsFunc(v.Items, func(i *jsontree.Tree) bool { return !p.holds(t.args[0], i) })
	case opSome:
		return slices.ContainsFunc(v.Items, func(i *jsontree.Tree) bool { return p.holds(t.args[0], i) })
	case opAt:
		return t.from >= len(v.Items) || p.holds(t.args[0], v.Items[t.from])
	case opFrom, opTally:
		return p.holdsFrom(t, v.Items[min(t.from, len(v.Items)):])
	}
	// opUnique and opRepeat: equal elements have equal numbers.
	seen := map[uint32]bool{}
	for _, i := range v.Items {
		seen[p.identify(i.Raw)] = true
	}
	return (len(seen) == len(v.Items)) == (t.op == opUnique)
}

// holdsObject is holds for terms about objects.
func (p *prover) holdsObject(t term, v *jsontree.Tree) bool {
	switch t.op {
	case opHas, opLacks:
		return (v.Get(p.names[t.names[0]]) != nil) == (t.op == opHas)
	case opOther:
		return slices.ContainsFunc(v.Members, func(m jsontree.Member) bool {
			return !t.namesMember(p, m.Name) && p.holds(t.args[0], m.Value)
		})
	case opSize:
		return t.low <= len(v.Members) && len(v.Members) <= t.high
	case opEvery, opExists:
		// The two differ in what would decide: a member that fails, or one that passes.
		return slices.ContainsFunc(v.Members, func(m jsontree.Member) bool {
			return p.holdsName(t.args[0], m.Name) && p.holds(t.args[1], m.Value) == (t.op == opExists)
		}) == (t.op == opExists)
	}
	// opRow: the arguments go by name, and the last is for all other members.
	for _, m := range v.Members {
		value := t.args[len(t.names)]
		if t.namesMember(p, m.Name) {
			value = t.value(p.nameIDs[m.Name])
		}
		if !p.holds(value, m.Value) {
			return false
		}
	}
	return true
}

// namesMember reports whether a term speaks of a member by name. A name that no
// schema mentions has no number.
func (t *term) namesMember(p *prover, name string) bool {
	// Only names that occur in a schema have numbers.
	id, known := p.nameIDs[name]
	if !known {
		return false
	}
	_, found := slices.BinarySearch(t.names, id)
	return found
}

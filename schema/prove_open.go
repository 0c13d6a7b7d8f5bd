package schema

import "slices"

// open returns what a form, or the negation of one, says about a value and its
// parts. The parts stay closed.
func (p *prover) open(id termID) termID {
	index := (id - firstForm) / 2
	negative := (id - firstForm) % 2
	if f := &p.forms[index]; f.isOpen[negative] {
		return f.opened[negative]
	}
	var meaning termID
	var settled bool
	if negative == 0 {
		meaning, settled = p.asserts(index)
	} else {
		meaning, settled = p.denies(index)
	}
	if settled {
		f := &p.forms[index]
		f.opened[negative], f.isOpen[negative] = meaning, true
	}
	return meaning
}

// asserts says what it takes to pass a form. It reports false when a better
// answer is possible later.
func (p *prover) asserts(index termID) (termID, bool) {
	f := p.forms[index]
	args := p.ownTerms(&f)
	for _, b := range f.allOf {
		args = append(args, p.formOf(b, false))
	}
	if len(f.anyOf) > 0 {
		args = append(args, p.or(p.formsOf(f.anyOf, false)...))
	}
	if f.not >= 0 {
		args = append(args, p.formOf(f.not, true))
	}
	settled := true
	if len(f.oneOf) > 0 {
		var overlaps []pairOfForms
		overlaps, settled = p.overlaps(f.node.oneOf, f.oneOf)
		arms := p.formsOf(f.oneOf, false)
		for _, o := range overlaps {
			arms[o.first] = p.and(arms[o.first], p.formOf(f.oneOf[o.second], true))
			arms[o.second] = p.and(arms[o.second], p.formOf(f.oneOf[o.first], true))
		}
		args = append(args, p.or(arms...))
	}
	return p.and(args...), settled
}

// denies says what it takes to fail a form.
func (p *prover) denies(index termID) (termID, bool) {
	f := p.forms[index]
	var arms []termID
	for _, t := range p.ownTerms(&f) {
		arms = append(arms, p.negate(t))
	}
	for _, b := range f.allOf {
		arms = append(arms, p.formOf(b, true))
	}
	if len(f.anyOf) > 0 {
		arms = append(arms, p.and(p.formsOf(f.anyOf, true)...))
	}
	if f.not >= 0 {
		arms = append(arms, p.formOf(f.not, false))
	}
	settled := true
	if len(f.oneOf) > 0 {
		var overlaps []pairOfForms
		overlaps, settled = p.overlaps(f.node.oneOf, f.oneOf)
		arms = append(arms, p.and(p.formsOf(f.oneOf, true)...))
		for _, o := range overlaps {
			arms = append(arms, p.and(p.formOf(f.oneOf[o.first], false), p.formOf(f.oneOf[o.second], false)))
		}
	}
	return p.or(arms...), settled
}

func (p *prover) formsOf(forms []int32, negative bool) []termID {
	terms := make([]termID, 0, len(forms))
	for _, f := range forms {
		terms = append(terms, p.formOf(f, negative))
	}
	return terms
}

// pairOfForms are two branches of oneOf, by index.
type pairOfForms struct{ first, second int }

// overlaps returns the pairs of branches that one value might pass together.
// The others need no exclusion, which keeps a oneOf of disjoint branches as
// cheap as an anyOf.
func (p *prover) overlaps(comb *combinator, branches []int32) (pairs []pairOfForms, settled bool) {
	if comb.tagged() {
		return nil, true
	}
	settled = true
	for i := range branches {
		for j := range i {
			a, b := p.formOf(branches[j], false), p.formOf(branches[i], false)
			disjoint, sure := p.disjoint(a, b)
			settled = settled && sure
			if !disjoint {
				pairs = append(pairs, pairOfForms{j, i})
			}
		}
	}
	return pairs, settled
}

// tagged reports whether every branch requires an object with a member whose
// values belong to that branch alone.
func (c *combinator) tagged() bool {
	if c.dispatch == nil {
		return false
	}
	for _, b := range c.to {
		at := -1
		if b.obj != nil {
			at = b.obj.index.find(b.obj.props, []byte(c.dispatch.property))
		}
		if b.types != typeObject || at < 0 || !b.obj.props[at].required {
			return false
		}
	}
	return true
}

// disjoint reports whether no value satisfies both terms. sure is false when
// the question is already being asked further up.
func (p *prover) disjoint(a, b termID) (disjoint, sure bool) {
	if a == termFalse || b == termFalse {
		return true, true
	}
	pair := [2]termID{min(a, b), max(a, b)}
	switch {
	case p.asking[pair]:
		return false, false
	case a == termTrue || b == termTrue || a == b:
		return false, true
	}
	p.asking[pair] = true
	defer delete(p.asking, pair)
	mayA, _ := p.bounds(a)
	mayB, _ := p.bounds(b)
	if mayA&mayB == 0 {
		return true, true
	}
	r, closed := p.aside(func() result { return p.sat(p.conjunction(nil, a, b)) })
	if r.status == statusUnsat {
		return closed, closed
	}
	return false, p.spent == ""
}

// ownTerms says what a form asserts by itself.
func (p *prover) ownTerms(f *form) []termID {
	n := f.node
	args := []termID{p.ofSorts(sortsOf(n.types))}
	for _, set := range []*literalSet{f.constant, f.enum} {
		if set != nil {
			args = append(args, p.intern(term{op: opIn, lits: set}))
		}
	}
	if n.num != nil {
		args = p.appendNumber(args, n.num)
	}
	if n.str != nil {
		args = p.appendString(args, n.str, place{f.side, n.pointer})
	}
	if n.arr != nil {
		args = p.appendArray(args, f)
	}
	if n.obj != nil {
		args = p.appendObject(args, f)
	}
	return slices.DeleteFunc(args, func(t termID) bool { return t == termTrue })
}

func (p *prover) appendNumber(args []termID, r *numberRule) []termID {
	for _, b := range []struct {
		limit *bound
		op    op
		open  bool
	}{{r.min, opLow, false}, {r.above, opLow, true}, {r.max, opHigh, false}, {r.below, opHigh, true}} {
		if b.limit != nil {
			args = append(args, p.intern(term{op: b.op, open: b.open, limit: b.limit}))
		}
	}
	return args
}

func (p *prover) appendString(args []termID, r *stringRule, at place) []termID {
	if r.min > 0 || r.max != unbounded {
		args = append(args, p.intern(term{op: opLength, low: r.min, high: r.max}))
	}
	if r.pattern != nil {
		args = append(args, p.intern(term{op: opMatch, pattern: r.pattern, origin: at}))
	}
	if r.format != "" {
		args = append(args, p.intern(term{op: opFormat, format: r.format, origin: at}))
	}
	return args
}

func (p *prover) appendArray(args []termID, f *form) []termID {
	r := f.node.arr
	if r.min > 0 || r.max != unbounded {
		args = append(args, p.intern(term{op: opCount, low: r.min, high: r.max}))
	}
	args = append(args, p.items(p.formOf(f.items, false)))
	if r.unique {
		args = append(args, p.intern(term{op: opUnique}))
	}
	return args
}

func (p *prover) appendObject(args []termID, f *form) []termID {
	names := make([]nameID, 0, len(f.props))
	values := make([]termID, 0, len(f.props)+1)
	for _, prop := range f.props {
		names = append(names, prop.name)
		values = append(values, p.formOf(prop.form, false))
	}
	values = append(values, p.formOf(f.additional, false))
	args = append(args, p.row(names, values))
	for _, name := range f.node.obj.required {
		args = append(args, p.has(p.name(name)))
	}
	return args
}

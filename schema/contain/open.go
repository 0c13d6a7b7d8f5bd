package contain

import (
	"slices"

	"github.com/agentd/agentd/schema/internal/ir"
)

// open returns what a form, or the negation of one, says about a value and its
// parts, as a term over the forms of the parts. It goes one level deep: a
// recursive schema would otherwise be opened without end, and most proofs end
// before they look at most parts.
func (p *prover) open(id termID) termID {
	index := (id - firstForm) / 2
	negative := (id - firstForm) % 2
	if f := &p.forms[index]; f.isOpen[negative] {
		return f.opened[negative]
	}
	var meaning termID
	var final bool
	if negative == 0 {
		meaning, final = p.asserts(index)
	} else {
		meaning, final = p.denies(index)
	}
	if final {
		f := &p.forms[index]
		f.opened[negative], f.isOpen[negative] = meaning, true
	}
	return meaning
}

// asserts returns what it takes to pass a form: its own keywords, all of allOf,
// one of anyOf, exactly one of oneOf, and not the negated schema. final is
// false if a later call may return a simpler term, see disjoint.
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
	args = append(args, p.assertsFull(index)...)
	final := true
	if len(f.oneOf) > 0 {
		var overlaps []pairOfForms
		overlaps, final = p.overlaps(f.node.OneOf, f.oneOf, sortsOf(f.node.Types))
		arms := p.formsOf(f.oneOf, false)
		for _, o := range overlaps {
			// Each of the two excludes the other, so that the arms are exactly
			// "this one alone".
			arms[o.first] = p.and(arms[o.first], p.formOf(f.oneOf[o.second], true))
			arms[o.second] = p.and(arms[o.second], p.formOf(f.oneOf[o.first], true))
		}
		args = append(args, p.or(arms...))
	}
	return p.and(args...), final
}

// denies returns what it takes to fail a form, which is the negation of asserts
// with the negations pushed inwards: one of its own keywords fails, or one
// branch of allOf, or all of anyOf. A value fails oneOf if it passes no branch,
// or two.
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
	arms = append(arms, p.deniesFull(index)...)
	final := true
	if len(f.oneOf) > 0 {
		var overlaps []pairOfForms
		overlaps, final = p.overlaps(f.node.OneOf, f.oneOf, sortsOf(f.node.Types))
		arms = append(arms, p.and(p.formsOf(f.oneOf, true)...))
		for _, o := range overlaps {
			arms = append(arms, p.and(p.formOf(f.oneOf[o.first], false), p.formOf(f.oneOf[o.second], false)))
		}
	}
	return p.or(arms...), final
}

// formsOf returns the terms of several forms, or of their negations.
func (p *prover) formsOf(forms []int32, negative bool) []termID {
	terms := make([]termID, 0, len(forms))
	for _, f := range forms {
		terms = append(terms, p.formOf(f, negative))
	}
	return terms
}

// pairOfForms are two branches of oneOf, by index.
type pairOfForms struct{ first, second int }

// overlaps returns the pairs of branches of a oneOf that one value might pass
// together. Only these need to exclude each other in asserts, and only these
// can fail a oneOf by passing twice. With tagged branches, which are the rule,
// there are none: such a oneOf costs what an anyOf costs.
//
// within are the sorts that the keywords beside oneOf leave: a value of another sort
// fails these, whatever it passes here.
func (p *prover) overlaps(comb *ir.Combinator, branches []int32, within sorts) (pairs []pairOfForms, final bool) {
	if tagged(comb) {
		return nil, true
	}
	candidates, ok := p.meetings(branches, within)
	if !ok {
		for i := range branches {
			for j := range i {
				candidates = append(candidates, pairOfForms{j, i})
			}
		}
	}
	final = true
	for _, c := range candidates {
		a, b := p.formOf(branches[c.first], false), p.formOf(branches[c.second], false)
		disjoint, sure := p.disjoint(a, b)
		final = final && sure
		if !disjoint {
			pairs = append(pairs, c)
		}
	}
	return pairs, final
}

// tagged reports whether every branch requires an object with a member whose
// values belong to that branch alone, so that no two branches can match. It
// spares a union of n tagged branches n² questions about pairs.
func tagged(c *ir.Combinator) bool {
	if c.Dispatch == nil {
		return false
	}
	for _, b := range c.To {
		at := -1
		if b.Obj != nil {
			at = b.Obj.Index.Find(b.Obj.Props, []byte(c.Dispatch.Property))
		}
		if b.Types != ir.TypeObject || at < 0 || !b.Obj.Props[at].Required {
			return false
		}
	}
	return true
}

// disjoint reports whether no value satisfies both terms. The question is a
// search of its own, beside the argument in progress. In a recursive schema it
// can come up again inside itself; it then counts as "not disjoint", which is
// always safe, and sure is false so that nobody keeps this answer.
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
	if p.asking == nil {
		p.asking = map[[2]termID]bool{}
	}
	p.asking[pair] = true
	defer delete(p.asking, pair)
	// Branches of different types are disjoint without any search.
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

// ownTerms returns what the keywords of a form assert, apart from combinators.
// Each is a term of its own, so that a keyword that two schemas share is the
// same term on both sides and needs no proof.
func (p *prover) ownTerms(f *form) []termID {
	n := f.node
	args := []termID{p.ofSorts(sortsOf(n.Types))}
	for _, set := range []*literalSet{f.constant, f.enum} {
		if set != nil {
			args = append(args, p.intern(term{op: opIn, lits: set}))
		}
	}
	if n.Num != nil {
		args = p.appendNumber(args, n.Num)
	}
	if n.Str != nil {
		args = p.appendString(args, n.Str, place{f.side, n.Pointer})
	}
	if n.Arr != nil {
		args = p.appendArray(args, f)
	}
	if n.Obj != nil {
		args = p.appendObject(args, f)
	}
	return slices.DeleteFunc(args, func(t termID) bool { return t == termTrue })
}

// appendNumber appends the terms for the four bounds of numbers.
func (p *prover) appendNumber(args []termID, r *ir.NumberRule) []termID {
	for _, b := range []struct {
		limit *ir.Bound
		op    op
		open  bool
	}{{r.Min, opLow, false}, {r.Above, opLow, true}, {r.Max, opHigh, false}, {r.Below, opHigh, true}} {
		if b.limit != nil {
			args = append(args, p.intern(term{op: b.op, open: b.open, limit: b.limit}))
		}
	}
	if r.Multiple != nil {
		args = append(args, p.intern(term{op: opMultiple, divisor: r.Multiple}))
	}
	return args
}

// appendString appends the terms for lengths, pattern and format. at is where a
// proof about them would get stuck.
func (p *prover) appendString(args []termID, r *ir.StringRule, at place) []termID {
	if r.Min > 0 || r.Max != ir.Unbounded {
		args = append(args, p.intern(term{op: opLength, low: r.Min, high: r.Max}))
	}
	if r.Pattern != nil {
		args = append(args, p.intern(term{op: opMatch, pattern: r.Pattern, origin: at}))
	}
	if r.Format != "" {
		args = append(args, p.intern(term{op: opFormat, format: r.Format, origin: at}))
	}
	return args
}

// appendArray appends the terms for the keywords about arrays.
func (p *prover) appendArray(args []termID, f *form) []termID {
	r := f.node.Arr
	if r.Min > 0 || r.Max != ir.Unbounded {
		args = append(args, p.intern(term{op: opCount, low: r.Min, high: r.Max}))
	}
	if r.Full != nil {
		args = p.appendTuple(args, f)
	} else {
		args = append(args, p.items(p.formOf(f.items, false)))
	}
	if r.Unique {
		args = append(args, p.intern(term{op: opUnique}))
	}
	return args
}

// appendObject appends the terms for the keywords about objects: one row for
// properties and additionalProperties together, because what the latter says
// depends on the names in the former, and one term for each required name.
func (p *prover) appendObject(args []termID, f *form) []termID {
	names := make([]nameID, 0, len(f.props))
	values := make([]termID, 0, len(f.props)+1)
	for _, prop := range f.props {
		names = append(names, prop.name)
		values = append(values, p.formOf(prop.form, false))
	}
	rest := p.formOf(f.additional, false)
	if f.full != nil && len(f.full.patterns) > 0 {
		// Patterns take names away from additionalProperties.
		args = append(args, p.every(p.beside(names, f.full.patterns), rest))
		rest = termTrue
	}
	values = append(values, rest)
	args = append(args, p.row(names, values))
	if f.full != nil {
		args = p.appendKeyed(args, f)
	}
	for _, name := range f.node.Obj.Required {
		args = append(args, p.has(p.name(name)))
	}
	return args
}

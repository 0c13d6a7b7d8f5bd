package contain

import (
	"slices"

	"github.com/agentd/agentd/schema/internal/ir"
)

// assertsFull returns what it takes to pass the keywords of a form that are outside of
// the subset and about the value as a whole.
func (p *prover) assertsFull(index termID) (args []termID) {
	f := p.forms[index].full
	if f == nil {
		return nil
	}
	for _, c := range f.conditionals {
		args = append(args, p.or(
			p.and(p.formOf(c.cond, false), p.formOf(c.then, false)),
			p.and(p.formOf(c.cond, true), p.formOf(c.other, false))))
	}
	if f.members >= 0 {
		passes, _ := p.leftMembers(index)
		args = append(args, passes)
	}
	if f.elements >= 0 {
		passes, _ := p.leftElements(index)
		args = append(args, passes)
	}
	return args
}

// deniesFull returns the ways to fail these keywords.
func (p *prover) deniesFull(index termID) (arms []termID) {
	f := p.forms[index].full
	if f == nil {
		return nil
	}
	for _, c := range f.conditionals {
		arms = append(arms,
			p.and(p.formOf(c.cond, false), p.deny(c.then)),
			p.and(p.formOf(c.cond, true), p.deny(c.other)))
	}
	if f.members >= 0 {
		_, fails := p.leftMembers(index)
		arms = append(arms, fails)
	}
	if f.elements >= 0 {
		_, fails := p.leftElements(index)
		arms = append(arms, fails)
	}
	return arms
}

// deny is the negation of a form; an absent one cannot fail.
func (p *prover) deny(form int32) termID {
	if form < 0 {
		return termFalse
	}
	return p.formOf(form, true)
}

// every returns the term of an object in which each member whose name satisfies one term
// has a value that satisfies another.
func (p *prover) every(name, value termID) termID {
	if value == termTrue || name == termFalse {
		return termTrue
	}
	return p.intern(term{op: opEvery, args: []termID{name, value}})
}

// beside returns the term of a name that is not among some, and matches none of the
// patterns.
func (p *prover) beside(names []nameID, patterns []formPattern) termID {
	args := []termID{p.outNames(names)}
	for _, pt := range patterns {
		args = append(args, p.intern(term{op: opMiss, pattern: pt.pattern}))
	}
	return p.and(args...)
}

// outNames returns the term of a name that is not among some.
func (p *prover) outNames(names []nameID) termID {
	if len(names) == 0 {
		return termTrue
	}
	ids := make([]uint32, 0, len(names))
	for _, n := range names {
		ids = append(ids, p.identify(quoteJSON(p.names[n])))
	}
	return p.intern(term{op: opOut, lits: p.newLiteralSet(ids)})
}

// appendTuple appends the terms for items in an array with keywords outside of the
// subset.
func (p *prover) appendTuple(args []termID, f *form) []termID {
	full, r := f.full, f.node.Arr.Full
	for i, e := range full.prefix {
		if t := p.formOf(e, false); t != termTrue {
			args = append(args, p.intern(term{op: opAt, from: i, args: []termID{t}}))
		}
	}
	args = append(args, p.from(len(full.prefix), p.formOf(f.items, false)))
	if full.contains >= 0 {
		args = append(args, p.tally(p.formOf(full.contains, false), r.Least, r.Most))
	}
	return args
}

// from returns the term of an array whose elements from an index on satisfy a term.
func (p *prover) from(index int, each termID) termID {
	switch {
	case each == termTrue:
		return termTrue
	case index == 0:
		return p.items(each)
	}
	return p.intern(term{op: opFrom, from: index, args: []termID{each}})
}

// tally returns the term of an array in which so many elements satisfy a term.
func (p *prover) tally(each termID, least, most int) termID {
	switch {
	case least == 0 && most == ir.Unbounded:
		return termTrue
	case least > most:
		return p.ofSorts(allSorts &^ sortArray)
	}
	return p.intern(term{op: opTally, low: least, high: most, args: []termID{each}})
}

// appendKeyed appends the terms for the keywords about objects outside of the subset.
func (p *prover) appendKeyed(args []termID, f *form) []termID {
	for _, pt := range f.full.patterns {
		name := p.intern(term{op: opMatch, pattern: pt.pattern, origin: place{f.side, f.node.Pointer}})
		args = append(args, p.every(name, p.formOf(pt.form, false)))
	}
	if f.full.names >= 0 {
		args = append(args, p.every(p.formOf(f.full.names, true), termFalse))
	}
	o := f.node.Obj.Full
	if o == nil {
		return args
	}
	if o.Min > 0 || o.Max != ir.Unbounded {
		if o.Min > o.Max {
			return append(args, p.ofSorts(allSorts&^sortObject))
		}
		args = append(args, p.intern(term{op: opSize, low: o.Min, high: o.Max}))
	}
	for _, d := range o.Dependents {
		var all []termID
		for _, name := range d.Required {
			all = append(all, p.has(p.name(name)))
		}
		args = append(args, p.or(p.lacks(p.name(d.Name)), p.and(all...)))
	}
	return args
}

// cover is what one schema in a form evaluates, and when: where cond holds.
type cover struct {
	cond     termID
	all      bool
	names    []nameID
	patterns []formPattern
	prefix   int
	contains []termID
}

// maxCovers bounds the conditions that a proof about what is unevaluated tells apart:
// there is a case for every set of them. maxWalked bounds how many schemas are gone
// through to collect them.
const (
	maxCovers = 5
	maxWalked = 200
)

// covers collects what the schemas of a form evaluate in objects, or in arrays. It
// reports false where there are too many.
func (p *prover) covers(index termID, objects bool) ([]cover, bool) {
	var all []cover
	walked := 0
	var walk func(form int32, cond termID, asks bool)
	walk = func(form int32, cond termID, asks bool) {
		if walked++; walked > maxWalked || form < 0 {
			return
		}
		f := &p.forms[form]
		if c := p.coverOf(f, objects, asks); c.all || len(c.names)+len(c.patterns)+c.prefix+len(c.contains) > 0 {
			c.cond = cond
			all = append(all, c)
		}
		for _, b := range f.allOf {
			walk(b, cond, false)
		}
		for _, branches := range [][]int32{f.anyOf, f.oneOf} {
			for _, b := range branches {
				walk(b, p.and(cond, p.formOf(b, false)), false)
			}
		}
		if full := p.forms[form].full; full != nil {
			for _, k := range full.conditionals {
				holds := p.and(cond, p.formOf(k.cond, false))
				walk(k.cond, holds, false)
				walk(k.then, holds, false)
				walk(k.other, p.and(cond, p.formOf(k.cond, true)), false)
			}
		}
	}
	walk(int32(index), termTrue, true)
	return all, walked <= maxWalked
}

// coverOf returns what the keywords of one form evaluate by themselves. asks says that
// it is the form whose own unevaluated keywords are in question.
func (p *prover) coverOf(f *form, objects, asks bool) (c cover) {
	full := f.full
	switch {
	case objects:
		c.all = f.additional >= 0 || !asks && full != nil && full.members >= 0
		for _, prop := range f.props {
			c.names = append(c.names, prop.name)
		}
		if full != nil {
			c.patterns = full.patterns
		}
	default:
		c.all = f.items >= 0 || !asks && full != nil && full.elements >= 0
		if full != nil {
			c.prefix = len(full.prefix)
			if full.contains >= 0 && f.node.Arr.Full.Counts {
				c.contains = []termID{p.formOf(full.contains, false)}
			}
		}
	}
	return c
}

// leftMembers returns the terms of passing and of failing the unevaluatedProperties of a
// form, for a value that passes its other keywords. Which members are left depends on
// which branches the value passes, so that there is a case for each set of branches.
func (p *prover) leftMembers(index termID) (passes, fails termID) {
	left := p.formOf(p.forms[index].full.members, false)
	return p.leftovers(index, true, func(c cover) (all, some termID) {
		slices.Sort(c.names)
		c.names = slices.Compact(c.names)
		if len(c.patterns) > 0 {
			all = p.every(p.beside(c.names, c.patterns), left)
		} else {
			args := make([]termID, len(c.names)+1)
			for i := range args {
				args[i] = termTrue
			}
			args[len(c.names)] = left
			all = p.row(c.names, args)
		}
		return all, p.negate(all)
	})
}

// leftElements is leftMembers for unevaluatedItems.
func (p *prover) leftElements(index termID) (passes, fails termID) {
	left := p.formOf(p.forms[index].full.elements, false)
	return p.leftovers(index, false, func(c cover) (all, some termID) {
		all = p.from(c.prefix, p.or(append(slices.Clone(c.contains), left)...))
		return all, p.negate(all)
	})
}

// leftovers goes through the cases. judge returns, for what is evaluated in one of
// them, the terms that all parts left over pass and that some of them fails.
func (p *prover) leftovers(index termID, objects bool, judge func(c cover) (all, some termID)) (passes, fails termID) {
	only := p.ofSorts(sortArray)
	if objects {
		only = p.ofSorts(sortObject)
	}
	covers, ok := p.covers(index, objects)
	certain, conds, byCond := p.byCondition(covers)
	if !ok || len(conds) > maxCovers {
		hidden := p.intern(term{op: opPasses, from: int(index)})
		return p.or(p.negate(only), hidden), p.and(only, p.negate(hidden))
	}
	var pass, fail []termID
	for set := range 1 << len(conds) {
		c := certain
		args := []termID{only}
		for i, cond := range conds {
			if set>>i&1 == 0 {
				args = append(args, p.negate(cond))
				continue
			}
			args = append(args, cond)
			c = c.with(byCond[i])
		}
		all, some := termTrue, termFalse
		if !c.all {
			all, some = judge(c)
		}
		pass = append(pass, p.and(append(slices.Clone(args), all)...))
		fail = append(fail, p.and(append(args, some)...))
	}
	return p.or(append(pass, p.negate(only))...), p.or(fail...)
}

// with returns what two covers evaluate together.
func (c cover) with(d cover) cover {
	c.all = c.all || d.all
	c.names = append(c.names[:len(c.names):len(c.names)], d.names...)
	c.patterns = append(c.patterns[:len(c.patterns):len(c.patterns)], d.patterns...)
	c.contains = append(c.contains[:len(c.contains):len(c.contains)], d.contains...)
	c.prefix = max(c.prefix, d.prefix)
	return c
}

// byCondition merges what is evaluated in any case, and what is under the same condition.
// Conditions that add nothing to what is certain are left out.
func (p *prover) byCondition(covers []cover) (certain cover, conds []termID, merged []cover) {
	for _, c := range covers {
		if c.cond == termTrue {
			certain = certain.with(c)
		}
	}
	for _, c := range covers {
		if c.cond == termTrue || c.cond == termFalse || certain.all || certain.includes(c) {
			continue
		}
		i := slices.Index(conds, c.cond)
		if i < 0 {
			i = len(conds)
			conds, merged = append(conds, c.cond), append(merged, cover{})
		}
		merged[i] = merged[i].with(c)
	}
	return certain, conds, merged
}

// includes reports whether all that d evaluates is evaluated by c as well.
func (c cover) includes(d cover) bool {
	if d.all || d.prefix > c.prefix {
		return false
	}
	for _, n := range d.names {
		if !slices.Contains(c.names, n) {
			return false
		}
	}
	for _, pt := range d.patterns {
		if !slices.ContainsFunc(c.patterns, func(o formPattern) bool { return o.pattern.RE2 == pt.pattern.RE2 }) {
			return false
		}
	}
	for _, t := range d.contains {
		if !slices.Contains(c.contains, t) {
			return false
		}
	}
	return true
}

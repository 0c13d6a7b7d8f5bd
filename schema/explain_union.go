package schema

import "slices"

// union is a oneOf or an anyOf. Both offer alternatives; they differ in what
// happens to a value that matches two.
type union struct {
	*combinator
	pointer string
	one     bool // oneOf
}

// unions returns the oneOf and anyOf of a schema and of its allOf branches.
func (v view) unions() []union {
	var all []union
	for _, n := range v.nodes {
		if n.oneOf != nil {
			all = append(all, union{n.oneOf, child(n.pointer, "oneOf"), true})
		}
		if n.anyOf != nil {
			all = append(all, union{n.anyOf, child(n.pointer, "anyOf"), false})
		}
	}
	return all
}

// unions compares oneOf and anyOf. If each side has one of the same kind, the
// branches are compared one by one. Otherwise it is enough to report that the
// unions as a whole differ: a list of differences between branches that do not
// correspond would only distract.
func (e *explainer) unions(x, y view, at site) {
	before, after := x.unions(), y.unions()
	found := Finding{Rule: RuleUnionChanged, Direction: Changed, A: x.base.pointer, B: y.base.pointer}
	if len(before) > 0 {
		found.A = before[0].pointer
	}
	if len(after) > 0 {
		found.B = after[0].pointer
	}
	violation := e.outsideOf(after)
	switch {
	case len(before) == 0 && len(after) == 0:
		return
	case len(before) == 1 && len(after) == 1 && before[0].one == after[0].one:
		e.branches(before[0], after[0], at)
		return
	case len(before) == 0:
		found.Rule, found.Direction, found.Message = RuleUnionAdded, Narrowed, "a value must match a branch now"
	case len(after) == 0:
		found.Rule, found.Direction, found.Message = RuleUnionRemoved, Widened, "a value no longer needs to match a branch"
	default:
		if e.p.negate(e.outsideOf(before)) == e.p.negate(violation) {
			return
		}
		found.Message = "the branches are combined in another way"
	}
	e.report(found, at, violation)
}

// outsideOf is the term of a value that breaks one of several unions: it
// matches no branch, or, for oneOf, two branches at once. The pairs are what
// makes this quadratic in the number of branches.
func (e *explainer) outsideOf(unions []union) termID {
	p := e.p
	var arms []termID
	for _, u := range unions {
		forms := p.classifier.branches(u.combinator)
		none := p.and(p.formsOf(forms, true)...)
		arms = append(arms, none)
		if !u.one {
			continue
		}
		for i := range forms {
			for j := range i {
				arms = append(arms, p.and(p.formOf(forms[j], false), p.formOf(forms[i], false)))
			}
		}
	}
	return p.or(arms...)
}

// branches compares two unions branch by branch. A witness for a difference
// inside a branch must match that branch of the first schema, hence given: the
// same values may be accepted through another branch of the second, and then
// nothing breaks.
func (e *explainer) branches(before, after union, at site) {
	p := e.p
	pairs, gone, fresh := e.match(before.branches, after.branches)
	for _, pair := range pairs {
		e.compare(pair[0], pair[1], at.given(p.formOf(p.classifier.of(pair[0]), false)))
	}
	for _, b := range gone {
		e.report(Finding{
			Rule: RuleBranchRemoved, Direction: Narrowed, A: b.pointer, B: after.pointer, Message: "a branch is gone",
		}, at, p.formOf(p.classifier.of(b), false))
	}
	for _, b := range fresh {
		violation := termFalse
		f := Finding{Rule: RuleBranchAdded, Direction: Widened, A: before.pointer, B: b.pointer, Message: "a branch is new"}
		if after.one {
			// What matched one branch before may match two now.
			f.Direction, violation = Changed, p.formOf(p.classifier.of(b), false)
		}
		e.report(f, at, violation)
	}
}

// match pairs the branches of two unions: equal ones first, which have no
// findings, then those that a property marks with the same string, then those
// without such a mark that accept the same types. The strict criteria come
// first so that a loose one cannot take the partner of an exact match.
func (e *explainer) match(before, after []*node) (pairs [][2]*node, gone, fresh []*node) {
	gone, fresh = slices.Clone(before), slices.Clone(after)
	criteria := []func(a, b *node) bool{
		func(a, b *node) bool { return e.p.classifier.of(a) == e.p.classifier.of(b) },
		sameTag,
		func(a, b *node) bool { return e.sorts(viewOf(a)) == e.sorts(viewOf(b)) && !hasTag(a) && !hasTag(b) },
	}
	for _, same := range criteria {
		for i := 0; i < len(gone); i++ {
			j := slices.IndexFunc(fresh, func(b *node) bool { return same(gone[i], b) })
			if j < 0 {
				continue
			}
			pairs = append(pairs, [2]*node{gone[i], fresh[j]})
			gone, fresh = slices.Delete(gone, i, i+1), slices.Delete(fresh, j, j+1)
			i--
		}
	}
	return pairs, gone, fresh
}

// sameTag reports whether two branches fix a property to a common string, as in
// {"kind": {"const": "circle"}}. Authors keep this tag when they change what
// else the branch holds.
func sameTag(a, b *node) bool {
	a, b = a.target(), b.target()
	if a.obj == nil || b.obj == nil {
		return false
	}
	for i := range a.obj.props[:a.obj.declared] {
		prop := &a.obj.props[i]
		j := b.obj.index.find(b.obj.props, []byte(prop.name))
		if j < 0 || j >= b.obj.declared {
			continue
		}
		other := b.obj.props[j].node.target().tags()
		if slices.ContainsFunc(prop.node.target().tags(), func(tag string) bool { return slices.Contains(other, tag) }) {
			return true
		}
	}
	return false
}

// hasTag reports whether a branch fixes some property to strings.
func hasTag(n *node) bool {
	n = n.target()
	return n.obj != nil && slices.ContainsFunc(n.obj.props[:n.obj.declared], func(p property) bool { return p.node.target().tags() != nil })
}

package contain

import (
	"slices"

	"github.com/agentd/agentd/schema/internal/ir"
	"github.com/agentd/agentd/schema/internal/jsonptr"
)

// union is a oneOf or an anyOf. Both offer alternatives; they differ in what
// happens to a value that matches two.
type union struct {
	*ir.Combinator
	pointer string
	one     bool // oneOf
}

// unions returns the oneOf and anyOf of a schema and of its allOf branches.
func (v view) unions() []union {
	var all []union
	for _, n := range v.nodes {
		if n.OneOf != nil {
			all = append(all, union{n.OneOf, jsonptr.Child(n.Pointer, "oneOf"), true})
		}
		if n.AnyOf != nil {
			all = append(all, union{n.AnyOf, jsonptr.Child(n.Pointer, "anyOf"), false})
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
	found := Finding{Rule: RuleUnionChanged, Direction: Changed, A: x.base.Pointer, B: y.base.Pointer}
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
		found.Rule, found.Direction = RuleUnionAdded, Narrowed
		found.Message = e.say("a value must match a branch now", "a value no longer needs to match a branch")
	case len(after) == 0:
		found.Rule, found.Direction = RuleUnionRemoved, Widened
		found.Message = e.say("a value no longer needs to match a branch", "a value must match a branch now")
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
		forms := p.classifier.branches(u.Combinator)
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
	pairs, gone, fresh := e.match(before.Branches, after.Branches)
	for _, pair := range pairs {
		e.compare(pair[0], pair[1], at.given(p.formOf(p.classifier.of(pair[0]), false)))
	}
	for _, b := range gone {
		e.report(Finding{
			Rule: RuleBranchRemoved, Direction: Narrowed, A: b.Pointer, B: after.pointer,
			Message: e.say("a branch is gone", "a branch is new"),
		}, at, p.formOf(p.classifier.of(b), false))
	}
	for _, b := range fresh {
		violation := termFalse
		f := Finding{Rule: RuleBranchAdded, Direction: Widened, A: before.pointer, B: b.Pointer}
		f.Message = e.say("a branch is new", "a branch is gone")
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
func (e *explainer) match(before, after []*ir.Node) (pairs [][2]*ir.Node, gone, fresh []*ir.Node) {
	gone, fresh = slices.Clone(before), slices.Clone(after)
	criteria := []func(a, b *ir.Node) bool{
		func(a, b *ir.Node) bool { return e.p.classifier.of(a) == e.p.classifier.of(b) },
		sameTag,
		func(a, b *ir.Node) bool { return e.sorts(viewOf(a)) == e.sorts(viewOf(b)) && !hasTag(a) && !hasTag(b) },
	}
	for _, same := range criteria {
		for i := 0; i < len(gone); i++ {
			j := slices.IndexFunc(fresh, func(b *ir.Node) bool { return same(gone[i], b) })
			if j < 0 {
				continue
			}
			pairs = append(pairs, [2]*ir.Node{gone[i], fresh[j]})
			gone, fresh = slices.Delete(gone, i, i+1), slices.Delete(fresh, j, j+1)
			i--
		}
	}
	return pairs, gone, fresh
}

// sameTag reports whether two branches fix a property to a common string, as in
// {"kind": {"const": "circle"}}. Authors keep this tag when they change what
// else the branch holds.
func sameTag(a, b *ir.Node) bool {
	a, b = a.Target(), b.Target()
	if a.Obj == nil || b.Obj == nil {
		return false
	}
	for i := range a.Obj.Props[:a.Obj.Declared] {
		prop := &a.Obj.Props[i]
		j := b.Obj.Index.Find(b.Obj.Props, []byte(prop.Name))
		if j < 0 || j >= b.Obj.Declared {
			continue
		}
		other := b.Obj.Props[j].Node.Target().Tags()
		if slices.ContainsFunc(prop.Node.Target().Tags(), func(tag string) bool { return slices.Contains(other, tag) }) {
			return true
		}
	}
	return false
}

// hasTag reports whether a branch fixes some property to strings.
func hasTag(n *ir.Node) bool {
	n = n.Target()
	return n.Obj != nil && slices.ContainsFunc(n.Obj.Props[:n.Obj.Declared], func(p ir.Property) bool { return p.Node.Target().Tags() != nil })
}

package verdict

import (
	"slices"

	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/schema/internal/ir"
)

// The keywords unevaluatedProperties and unevaluatedItems judge what no other keyword
// of the same schema has judged, in whatever branch of it. The validator keeps no
// record of that on the way: it lists the members or elements once the value has
// passed everything else, goes through the branches that the value passed, and strikes
// out what they cover. Branches are asked again whether they passed, which the memo
// answers.

// part is a member or an element.
type part struct {
	name, value int // where they start; name is negative for an element
	evaluated   bool
}

// unevaluated returns the offset of a member or element that no other keyword has
// judged and that n refuses, or -1 where there is none. The value at i has passed all
// other keywords of n.
func (r *Run) unevaluated(n *ir.Node, i, depth int) int {
	left := n.Beyond.Elements
	if r.data[i] == '{' {
		left = n.Beyond.Members
	}
	if left == nil || r.data[i] != '{' && r.data[i] != '[' {
		return -1
	}
	base := len(r.parts)
	fault := -1
	r.Unevaluated(n, i, depth, func(name, value int) bool {
		if r.Branch(left.Target(), value, depth-1) < 0 {
			fault = value
			if name >= 0 {
				fault = name
			}
		}
		return fault < 0
	})
	r.parts = r.parts[:base]
	return fault
}

// Unevaluated calls yield with each member or element of the value at i that no keyword
// of n but unevaluatedProperties and unevaluatedItems judges, until yield returns false.
func (r *Run) Unevaluated(n *ir.Node, i, depth int, yield func(name, value int) bool) {
	base := len(r.parts)
	r.listParts(i, depth)
	top := len(r.parts)
	e := evaluation{run: r, i: i, depth: depth, base: base, top: top, serial: r.nextArray()}
	e.node(n, true)
	// Judging may list parts of its own, and move the stack.
	for k := base; k < top; k++ {
		if p := r.parts[k]; !p.evaluated && !yield(p.name, p.value) {
			break
		}
	}
	r.parts = r.parts[:base]
}

// listParts lists the members or elements of the checked value at i.
func (r *Run) listParts(i, depth int) {
	object := r.data[i] == '{'
	for i = ijson.SkipSpace(r.data, i+1); r.data[i] != '}' && r.data[i] != ']'; {
		p := part{name: -1, value: i}
		if object {
			p.name = i
			_, _, p.value = r.key(i)
		}
		r.parts = append(r.parts, p)
		if i = ijson.SkipSpace(r.data, r.Skip(p.value, depth-1)); r.data[i] == ',' {
			i = ijson.SkipSpace(r.data, i+1)
		}
	}
}

// evaluation strikes out the parts of one value that schemas cover which it passed.
type evaluation struct {
	run       *Run
	i, depth  int
	base, top int    // the parts, on the stack of the run
	serial    uint32 // tells the schemas seen for this value from those of others
}

// node strikes out what n covers. The value has passed n. asks says that n is the schema
// whose own unevaluated keywords are in question.
func (e *evaluation) node(n *ir.Node, asks bool) {
	n = n.Target()
	// Each schema once: those that refer to each other twice at every level would
	// otherwise be gone through exponentially often.
	if !e.run.seen.Add(uint64(e.serial)<<32 | uint64(n.ID)) {
		return
	}
	object := e.run.data[e.i] == '{'
	switch {
	case !asks && n.Beyond != nil && (object && n.Beyond.Members != nil || !object && n.Beyond.Elements != nil):
		e.strike(e.top - e.base)
	case object && n.Obj != nil:
		e.members(n.Obj)
	case !object && n.Arr != nil:
		e.elements(n.Arr)
	}
	if n.AllOf != nil {
		for _, b := range n.AllOf.To {
			e.node(b, false)
		}
	}
	for _, comb := range [...]*ir.Combinator{n.AnyOf, n.OneOf} {
		if comb != nil {
			e.passed(comb.To...)
		}
	}
	if n.Beyond != nil {
		e.conditionals(n.Beyond.Conditionals)
	}
}

// passed strikes out what those of some schemas cover that the value passes.
func (e *evaluation) passed(nodes ...*ir.Node) {
	for _, n := range nodes {
		if e.run.Branch(n.Target(), e.i, e.depth) >= 0 {
			e.node(n, false)
		}
	}
}

// conditionals strikes out what if covers where it holds, and then or else.
func (e *evaluation) conditionals(all []ir.Conditional) {
	for k := range all {
		c := &all[k]
		passes := e.run.Branch(c.If.Target(), e.i, e.depth) >= 0
		if passes {
			e.node(c.If, false)
		}
		if arm := c.Arm(passes); arm != nil {
			e.node(arm, false)
		}
	}
}

// strike marks the first parts as evaluated.
func (e *evaluation) strike(count int) {
	for k := e.base; k < min(e.base+count, e.top); k++ {
		e.run.parts[k].evaluated = true
	}
}

// members strikes out the members that an object's keywords judge.
func (e *evaluation) members(rule *ir.ObjectRule) {
	if rule.Additional != nil {
		e.strike(e.top - e.base)
		return
	}
	for k := e.base; k < e.top; k++ {
		p := &e.run.parts[k]
		if p.evaluated {
			continue
		}
		raw, escaped, _ := e.run.key(p.name)
		p.evaluated = e.run.covers(rule, e.run.nameOf(raw, escaped))
	}
}

// covers reports whether a member of this name is judged by properties or
// patternProperties.
func (r *Run) covers(rule *ir.ObjectRule, name []byte) bool {
	if at := rule.Index.Find(rule.Props, name); at >= 0 && rule.Props[at].Node != nil {
		return true
	}
	if rule.Full == nil {
		return false
	}
	return slices.ContainsFunc(rule.Full.Patterns, func(p ir.PatternProperty) bool { return r.MatchesName(p.Pattern, name) })
}

// elements strikes out the elements that an array's keywords judge.
func (e *evaluation) elements(rule *ir.ArrayRule) {
	switch {
	case rule.Items != nil:
		e.strike(e.top - e.base)
		return
	case rule.Full == nil:
		return
	}
	e.strike(len(rule.Full.Prefix))
	if rule.Full.Contains == nil || !rule.Full.Counts {
		return
	}
	for k := e.base; k < e.top; k++ {
		if !e.run.parts[k].evaluated && e.run.Branch(rule.Full.Contains.Target(), e.run.parts[k].value, e.depth-1) >= 0 {
			e.run.parts[k].evaluated = true
		}
	}
}

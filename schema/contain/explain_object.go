package contain

import (
	"slices"

	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/schema/internal/ir"
)

// objects compares properties, required and additionalProperties. A name can be
// declared by both schemas, by one, or by neither: for the last two,
// additionalProperties takes the place of the missing declaration, so that a
// property may be removed without any change to what is accepted.
func (e *explainer) objects(x, y view, at site) {
	e.required(x, y, at)
	before, after := x.properties(), y.properties()
	for _, prop := range before {
		if other, ok := findProperty(after, prop.name); ok {
			e.property(prop, other, at)
		} else {
			e.propertyGone(prop, y, at)
		}
	}
	for _, prop := range after {
		if _, ok := findProperty(before, prop.name); !ok {
			e.propertyNew(prop, x, at)
		}
	}
	e.additional(x, y, before, after, at)
}

// required reports the names that only one schema requires. The finding is
// about the object, not the member, because the member is what the witness
// lacks.
func (e *explainer) required(x, y view, at site) {
	p := e.p
	before, after := x.requiredNames(), y.requiredNames()
	has := func(name string) func(n *ir.Node, _ string) bool {
		return func(n *ir.Node, _ string) bool { return n.Obj != nil && slices.Contains(n.Obj.Required, name) }
	}
	keyword := []string{"required"}
	for _, name := range after {
		if !slices.Contains(before, name) {
			lacks := p.and(p.ofSorts(sortObject), p.lacks(p.name(name)))
			e.report(Finding{
				Rule: RuleRequiredAdded, Direction: Narrowed, A: x.base.Pointer, B: y.at(keyword, has(name)),
				Message: "the member " + truncate.Quote(name) + e.say(" is required now", " may be absent now"),
			}, at, lacks)
		}
	}
	for _, name := range before {
		if !slices.Contains(after, name) {
			e.report(Finding{
				Rule: RuleRequiredRemoved, Direction: Widened, A: x.at(keyword, has(name)), B: y.base.Pointer,
				Message: "the member " + truncate.Quote(name) + e.say(" may be absent now", " is required now"),
			}, at, termFalse)
		}
	}
}

// declared is a name under properties, with all the schemas for it.
type declared struct {
	name    string
	schemas []*ir.Node
	// implied are the schemas of additionalProperties that judge the member
	// too, under allOf.
	implied []*ir.Node
}

// properties merges the declarations of the schema and of its allOf branches by
// name, in the order in which they first occur.
func (v view) properties() []declared {
	var all []declared
	for _, n := range v.nodes {
		if n.Obj == nil {
			continue
		}
		for i := range n.Obj.Props[:n.Obj.Declared] {
			prop := &n.Obj.Props[i]
			at := slices.IndexFunc(all, func(d declared) bool { return d.name == prop.Name })
			if at < 0 {
				at = len(all)
				all = append(all, declared{name: prop.Name})
			}
			all[at].schemas = append(all[at].schemas, prop.Node)
		}
	}
	for i := range all {
		all[i].implied = v.additionals(all[i].name)
	}
	return all
}

// additionals returns the schemas of additionalProperties that judge a name.
func (v view) additionals(name string) []*ir.Node {
	var all []*ir.Node
	for _, n := range v.nodes {
		if n.Obj == nil || n.Obj.Additional == nil {
			continue
		}
		if i := n.Obj.Index.Find(n.Obj.Props, []byte(name)); i < 0 || i >= n.Obj.Declared {
			all = append(all, n.Obj.Additional)
		}
	}
	return all
}

// findProperty returns the declaration of a name. The lists are short enough to
// search.
func findProperty(all []declared, name string) (declared, bool) {
	i := slices.IndexFunc(all, func(d declared) bool { return d.name == name })
	if i < 0 {
		return declared{}, false
	}
	return all[i], true
}

// property compares a name that both schemas declare. With one schema on each
// side the comparison goes on inside them. Otherwise several schemas judge the
// member together, and no pair of them corresponds: only their conjunctions
// can be compared.
func (e *explainer) property(before, after declared, at site) {
	inside := at.member(e.p, before.name)
	if len(before.schemas) == 1 && len(after.schemas) == 1 && len(before.implied)+len(after.implied) == 0 {
		e.compare(before.schemas[0], after.schemas[0], inside)
		return
	}
	found := Finding{A: before.schemas[0].Pointer, B: after.schemas[0].Pointer}
	e.parts(found, slices.Concat(before.schemas, before.implied), slices.Concat(after.schemas, after.implied), inside,
		RuleSchemaChanged, RuleSchemaChanged)
}

// propertyGone reports a name that only the first schema declares. From then on
// additionalProperties of the second judges the member: if it is absent the
// member may be anything, and if it is false the member may not exist.
func (e *explainer) propertyGone(prop declared, y view, at site) {
	p := e.p
	is := e.all(y.additionals(prop.name))
	f := Finding{
		Rule: RulePropertyRemoved, Direction: Changed, A: prop.schemas[0].Pointer, B: y.base.Pointer,
		Message: "the property " + truncate.Quote(prop.name) + e.say(" is no longer declared", " is declared now"),
	}
	switch is {
	case termTrue:
		f.Direction = Widened
	case termFalse:
		f.Direction = Narrowed
	}
	e.report(f, at, p.and(p.ofSorts(sortObject), p.member(p.name(prop.name), p.negate(is))))
}

// propertyNew reports a name that only the second schema declares. An optional
// property that is new can break callers all the same: where any member was
// accepted before, the name may already occur with another type.
func (e *explainer) propertyNew(prop declared, x view, at site) {
	p := e.p
	was, is := e.all(x.additionals(prop.name)), e.all(slices.Concat(prop.schemas, prop.implied))
	f := Finding{
		Rule: RulePropertyAdded, Direction: Changed, A: x.base.Pointer, B: prop.schemas[0].Pointer,
		Message: "the property " + truncate.Quote(prop.name) + e.say(" is declared now", " is no longer declared"),
	}
	switch was {
	case termTrue:
		f.Direction = Narrowed
	case termFalse:
		f.Direction = Widened
	}
	e.report(f, at, p.and(p.ofSorts(sortObject), p.member(p.name(prop.name), p.negate(is))))
}

// additional compares what members may be that neither schema declares. The
// names that either declares are left out, since property, propertyGone and
// propertyNew report on those.
func (e *explainer) additional(x, y view, before, after []declared, at site) {
	p := e.p
	was, is := x.rests(), y.rests()
	wasAll, isAll := e.all(was), e.all(is)
	if wasAll == isAll {
		return
	}
	var names []nameID
	for _, d := range slices.Concat(before, after) {
		names = append(names, p.name(d.name))
	}
	slices.Sort(names)
	inside := at.other(slices.Compact(names))
	keyword := []string{"additionalProperties"}
	has := func(n *ir.Node, _ string) bool { return n.Obj != nil && n.Obj.Additional != nil }
	f := Finding{A: x.at(keyword, has), B: y.at(keyword, has)}
	switch {
	case isAll == termFalse:
		f.Rule, f.Direction = RulePropertyClosed, Narrowed
		f.Message = e.say("members that are not declared are refused now", "members that are not declared are accepted now")
		e.report(f, inside, termTrue)
	case wasAll == termFalse:
		f.Rule, f.Direction = RulePropertyOpened, Widened
		f.Message = e.say("members that are not declared are accepted now", "members that are not declared are refused now")
		e.report(f, inside, p.negate(isAll))
	case len(was) == 1 && len(is) == 1:
		e.compare(was[0], is[0], inside)
	default:
		e.parts(f, was, is, inside, RuleAdditionalNarrowed, RuleAdditionalWidened)
	}
}

// rests returns the schemas of additionalProperties.
func (v view) rests() []*ir.Node {
	var all []*ir.Node
	for _, n := range v.nodes {
		if n.Obj != nil && n.Obj.Additional != nil {
			all = append(all, n.Obj.Additional)
		}
	}
	return all
}

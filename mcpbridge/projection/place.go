package projection

import (
	"slices"

	"github.com/agentd/agentd/schema"
)

// place is one value with all the schemas that it must fit: what $ref and allOf lead to
// stands beside the schema that has them.
type place struct {
	nodes []schema.Node
	notes []schema.Node // whose title and description are about the value
	// only are the types that the value may have here; nil means any.
	only []schema.Type
	// done are the schemas whose unions have been written around this place.
	done  map[schema.Node]bool
	depth int // how many objects and arrays the value is in
}

// value writes a value that must fit all of nodes as well as what at has.
func (b *builder) value(at place, nodes ...schema.Node) lowered {
	p := at
	entered, again, alone := b.enter(&p, nodes)
	defer b.leave(entered)
	if again.IsZero() {
		return b.build(p)
	}
	if b.references && alone {
		b.drop(nodes[0], "$ref", "the schema contains itself: sent as a definition")
		return b.reference(again)
	}
	return b.asText(p, nodes[0], "$ref", "the schema contains itself")
}

// enter adds nodes to the place, and what they refer to. again is a schema that the place
// is inside of already, and alone says that it is all that the value must fit.
func (b *builder) enter(p *place, nodes []schema.Node) (entered []schema.Node, again schema.Node, alone bool) {
	// Other places have the same slices: append must not write into them.
	p.nodes, p.notes = slices.Clip(p.nodes), slices.Clip(p.notes)
	alone = len(nodes) == 1 && !slices.ContainsFunc(p.nodes, func(n schema.Node) bool { return shaped(n) && !p.done[n] || n.Types() != nil })
	pending := slices.Clone(nodes)
	for len(pending) > 0 {
		n := pending[0]
		pending = pending[1:]
		p.notes = append(p.notes, n)
		if _, target, ok := n.Ref(); ok {
			if b.open[target] > 0 {
				return entered, target, alone
			}
			pending = slices.Insert(pending, 0, target)
			continue
		}
		b.open[n]++
		entered = append(entered, n)
		p.nodes = append(p.nodes, n)
		all := n.AllOf()
		alone = alone && len(all) == 0
		pending = append(pending, all...)
	}
	return entered, schema.Node{}, alone
}

func (b *builder) leave(entered []schema.Node) {
	for _, n := range entered {
		b.open[n]--
	}
}

// first returns the schema that drops of the place are reported at: in the branch of a
// union that of the branch, elsewhere the one that has the others.
func (p *place) first() schema.Node {
	for _, n := range p.nodes {
		if !p.done[n] {
			return n
		}
	}
	if len(p.nodes) > 0 {
		return p.nodes[0]
	}
	return schema.Node{}
}

// types returns the types that the value may have. Without any that is declared, it may
// have all.
func (p *place) types() (all []schema.Type, declared bool) {
	all, declared = p.only, p.only != nil
	for _, n := range p.nodes {
		if own := n.Types(); own != nil {
			all, declared = intersect(all, own, !declared), true
		}
	}
	return all, declared
}

// intersect returns the types that are in both lists, without duplicates. any says that
// the first stands for all types.
func intersect(a, c []schema.Type, any bool) []schema.Type {
	var all []schema.Type
	for _, t := range c {
		switch {
		case any || slices.Contains(a, t):
		case t == schema.TypeInteger && slices.Contains(a, schema.TypeNumber):
		case t == schema.TypeNumber && slices.Contains(a, schema.TypeInteger):
			t = schema.TypeInteger
		default:
			continue
		}
		if !slices.Contains(all, t) {
			all = append(all, t)
		}
	}
	if slices.Contains(all, schema.TypeNumber) { // which has the integers
		all = slices.DeleteFunc(all, func(t schema.Type) bool { return t == schema.TypeInteger })
	}
	return all
}

// never reports whether one of the schemas is false.
func (p *place) never() bool { return slices.ContainsFunc(p.nodes, isFalse) }

func isFalse(n schema.Node) bool {
	value, ok := n.Resolve().Boolean()
	return ok && !value
}

// inferred returns the types that the keywords are about, where none is declared.
func (p *place) inferred() (all []schema.Type, by schema.Node, keyword string) {
	for _, n := range p.nodes {
		for _, k := range n.Keywords() {
			if t := about(k.Name); t != "" && !slices.Contains(all, t) {
				all, by, keyword = append(all, t), n, k.Name
			}
		}
	}
	return all, by, keyword
}

// about returns the one type whose values a keyword judges.
func about(keyword string) schema.Type {
	switch keyword {
	case "properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties", "maxProperties",
		"dependentRequired", "dependentSchemas", "dependencies", "unevaluatedProperties":
		return schema.TypeObject
	case "items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains", "unevaluatedItems":
		return schema.TypeArray
	case "minLength", "maxLength", "pattern":
		return schema.TypeString
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
		return schema.TypeNumber
	}
	return ""
}

// literals returns those values of the first const or enum that are of the given types.
// keyword is "" where there is none.
func (p *place) literals(types []schema.Type, declared bool) (values []schema.Literal, by schema.Node, keyword string) {
	for _, n := range p.nodes {
		if c, ok := n.Const(); ok {
			values, by, keyword = []schema.Literal{c}, n, "const"
			break
		}
		if values == nil && n.Enum() != nil {
			values, by, keyword = n.Enum(), n, "enum"
		}
	}
	if declared {
		values = slices.DeleteFunc(values, func(l schema.Literal) bool {
			return len(intersect(types, []schema.Type{l.Type}, false)) == 0
		})
	}
	return values, by, keyword
}

// union is an anyOf or oneOf.
type union struct {
	of       schema.Node
	keyword  string
	branches []schema.Node
}

// unions lists those that are not written around the place.
func (p *place) unions() []union {
	var all []union
	for _, n := range p.nodes {
		if p.done[n] {
			continue
		}
		if branches := n.AnyOf(); branches != nil {
			all = append(all, union{n, "anyOf", branches})
		}
		if branches := n.OneOf(); branches != nil {
			all = append(all, union{n, "oneOf", branches})
		}
	}
	return all
}

// shaped reports whether a schema says what a value looks like, and not only which of
// the values that others describe are meant.
func shaped(n schema.Node) bool {
	n = n.Resolve()
	_, boolean := n.Boolean()
	_, constant := n.Const()
	_, items := n.Items()
	return boolean || constant || items || n.Enum() != nil || n.Properties() != nil || n.PrefixItems() != nil ||
		n.Types() != nil || n.AnyOf() != nil || n.OneOf() != nil || slices.ContainsFunc(n.AllOf(), shaped)
}

// choose returns the union to be written: the first that says what the value looks like.
// Beside properties, a union of types and required members is none.
func (p *place) choose() (u union, ok bool) {
	described := slices.ContainsFunc(p.nodes, func(n schema.Node) bool { return n.Properties() != nil })
	looks := func(n schema.Node) bool {
		r := n.Resolve()
		bare := r.Types() != nil && r.Properties() == nil && r.AnyOf() == nil && r.OneOf() == nil && r.AllOf() == nil
		return shaped(n) && (!described || !bare)
	}
	for _, u := range p.unions() {
		if slices.ContainsFunc(u.branches, looks) {
			return u, true
		}
	}
	return union{}, false
}

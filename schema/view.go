package schema

import "slices"

// Node is a read-only view of one schema inside a compiled one, for programs
// that translate schemas, such as code generators. Two nodes are equal by ==
// exactly if they are the same place in the same schema, so that a map of nodes
// finds recursion. The zero Node is no schema; its methods must not be called.
type Node struct{ n *node }

// Root returns the whole schema.
func (s *Schema) Root() Node { return Node{s.form.root} }

// Definitions returns the schemas in the root's definitions, in the order of
// the source.
func (s *Schema) Definitions() []Definition {
	all := make([]Definition, 0, len(s.form.root.notes.definitions))
	for _, d := range s.form.root.notes.definitions {
		all = append(all, Definition{d.name, Node{d.node}})
	}
	return all
}

// Definition is a named schema that $ref can reach.
type Definition struct {
	Name   string // as written, without the escapes that $ref needs
	Schema Node   // what $ref leads to
}

// Pointer returns where the schema stands in the source, as an RFC 6901
// pointer; "" is the root.
func (n Node) Pointer() string { return n.n.pointer }

// IsZero reports whether n is no schema.
func (n Node) IsZero() bool { return n.n == nil }

// Boolean returns the value of a schema written true or false; ok is false for
// a schema written as an object.
func (n Node) Boolean() (value, ok bool) { return !n.n.never, n.n.boolean }

// Ref returns where $ref leads; ok is false without $ref. name is the name in
// the root's definitions, or "" for the root itself. A schema with $ref has
// annotations but no assertions of its own.
func (n Node) Ref() (name string, target Node, ok bool) {
	return n.n.refName, Node{n.n.ref}, n.n.ref != nil
}

// Resolve follows $ref, and the $ref that it leads to, to a schema without one.
func (n Node) Resolve() Node { return Node{n.n.target()} }

// Types returns the types in the order of the source; nil accepts every type.
func (n Node) Types() []Type {
	if n.n.typeList == nil {
		return nil
	}
	all := make([]Type, 0, len(n.n.typeList))
	for _, name := range n.n.typeList {
		all = append(all, Type(name))
	}
	return all
}

// Title returns the annotation title, or "".
func (n Node) Title() string { return n.n.notes.title }

// Description returns the annotation description, or "".
func (n Node) Description() string { return n.n.notes.description }

// Default returns the annotation default as compact JSON; nil without one. It
// may be any value: Compile does not judge it.
func (n Node) Default() []byte { return slices.Clone(n.n.notes.fallback) }

// Examples returns the annotation examples, each as compact JSON; nil without
// them. Compile does not judge them.
func (n Node) Examples() [][]byte {
	all := slices.Clone(n.n.notes.examples)
	for i := range all {
		all[i] = slices.Clone(all[i])
	}
	return all
}

// Literal is a value that const or enum names.
type Literal struct {
	// JSON is the value as compact JSON, numbers and strings as written.
	JSON []byte
	// Type is the value's type; a number is TypeInteger if it has no fraction.
	Type Type
	// Text holds the characters of a string, without quotes and escapes.
	Text string
}

// literalsOf copies the values of const or enum.
func literalsOf(r *enumRule) []Literal {
	if r == nil {
		return nil
	}
	all := make([]Literal, 0, len(r.values))
	for _, l := range r.values {
		t := Type(l.kind.String())
		if l.kind == kindNumber && parseDecimal(l.raw).isInteger() {
			t = TypeInteger
		}
		all = append(all, Literal{JSON: slices.Clone(l.raw), Type: t, Text: l.text})
	}
	return all
}

// Enum returns the values of enum in the order of the source; nil without it.
func (n Node) Enum() []Literal { return literalsOf(n.n.enum) }

// Const returns the value of const.
func (n Node) Const() (value Literal, ok bool) {
	if n.n.constant == nil || len(n.n.constant.values) == 0 {
		return Literal{}, false
	}
	return literalsOf(n.n.constant)[0], true
}

// Property is one entry of properties.
type Property struct {
	Name     string // the member's name, without escapes
	Schema   Node   // what judges the member
	Required bool   // whether required lists the name
}

// HasObject reports whether any of properties, required and
// additionalProperties is present.
func (n Node) HasObject() bool { return n.n.obj != nil }

// Properties returns the entries of properties in the order of the source.
func (n Node) Properties() []Property {
	if n.n.obj == nil {
		return nil
	}
	var all []Property
	for _, p := range n.n.obj.props[:n.n.obj.declared] {
		all = append(all, Property{p.name, Node{p.node}, p.required})
	}
	return all
}

// Required returns the required names in the order of the source. They need
// not be among the properties.
func (n Node) Required() []string {
	if n.n.obj == nil {
		return nil
	}
	return slices.Clone(n.n.obj.required)
}

// Additional returns the schema of additionalProperties; without it, ok is
// false and anything goes.
func (n Node) Additional() (schema Node, ok bool) {
	if n.n.obj == nil || n.n.obj.additional == nil {
		return Node{}, false
	}
	return Node{n.n.obj.additional}, true
}

// Items returns the schema of items; without it, ok is false and anything
// goes.
func (n Node) Items() (schema Node, ok bool) {
	if n.n.arr == nil || n.n.arr.items == nil {
		return Node{}, false
	}
	return Node{n.n.arr.items}, true
}

// ItemCount returns minItems and maxItems; a max of -1 means none.
func (n Node) ItemCount() (least, most int) {
	if n.n.arr == nil {
		return 0, -1
	}
	return n.n.arr.min, bounded(n.n.arr.max)
}

// UniqueItems reports whether uniqueItems is true.
func (n Node) UniqueItems() bool { return n.n.arr != nil && n.n.arr.unique }

// Length returns minLength and maxLength, in code points; a max of -1 means
// none.
func (n Node) Length() (least, most int) {
	if n.n.str == nil {
		return 0, -1
	}
	return n.n.str.min, bounded(n.n.str.max)
}

// bounded shows an absent maximum as -1.
func bounded(n int) int {
	if n == unbounded {
		return -1
	}
	return n
}

// Pattern returns the ECMA-262 pattern as written, or "".
func (n Node) Pattern() string {
	if n.n.str == nil || n.n.str.pattern == nil {
		return ""
	}
	return n.n.str.pattern.source
}

// PatternRE2 returns the pattern in the syntax of Go's regexp package, with
// the meaning that it has in ECMA-262; "" without pattern.
func (n Node) PatternRE2() string {
	if n.n.str == nil || n.n.str.pattern == nil {
		return ""
	}
	return n.n.str.pattern.re2
}

// Format returns the format, or "".
func (n Node) Format() Format {
	if n.n.str == nil {
		return ""
	}
	return Format(n.n.str.format)
}

// Bounds are the limits of a number as JSON numbers, as written; "" where
// absent.
type Bounds struct {
	Minimum, Maximum                   string // the values that still pass
	ExclusiveMinimum, ExclusiveMaximum string // the values that just fail
}

// Bounds returns the numeric limits.
func (n Node) Bounds() Bounds {
	if n.n.num == nil {
		return Bounds{}
	}
	return Bounds{
		Minimum: limit(n.n.num.min), Maximum: limit(n.n.num.max),
		ExclusiveMinimum: limit(n.n.num.above), ExclusiveMaximum: limit(n.n.num.below),
	}
}

// limit shows a bound as written; "" where it is absent.
func limit(b *bound) string {
	if b == nil {
		return ""
	}
	return b.raw
}

// OneOf returns the branches of oneOf; nil without it.
func (n Node) OneOf() []Node { return nodesOf(n.n.oneOf) }

// AnyOf returns the branches of anyOf; nil without it.
func (n Node) AnyOf() []Node { return nodesOf(n.n.anyOf) }

// AllOf returns the branches of allOf; nil without it.
func (n Node) AllOf() []Node { return nodesOf(n.n.allOf) }

// nodesOf copies the branches.
func nodesOf(c *combinator) []Node {
	if c == nil {
		return nil
	}
	all := make([]Node, 0, len(c.branches))
	for _, b := range c.branches {
		all = append(all, Node{b})
	}
	return all
}

// Not returns the schema of not.
func (n Node) Not() (schema Node, ok bool) { return Node{n.n.not}, n.n.not != nil }

// Discriminator returns the property whose value alone decides which branch
// of oneOf or anyOf an object can match, and the values of each branch, in
// order; ok is false where there is none.
func (n Node) Discriminator() (property string, values [][]string, ok bool) {
	for _, c := range []*combinator{n.n.oneOf, n.n.anyOf} {
		if c == nil || c.dispatch == nil {
			continue
		}
		for _, b := range c.to {
			at := b.obj.index.find(b.obj.props, []byte(c.dispatch.property))
			values = append(values, b.obj.props[at].node.target().tags())
		}
		return c.dispatch.property, values, true
	}
	return "", nil, false
}

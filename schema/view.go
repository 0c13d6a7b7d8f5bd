package schema

import (
	"slices"

	"github.com/agentd/agentd/schema/internal/decimal"
	"github.com/agentd/agentd/schema/internal/ir"
	"github.com/agentd/agentd/schema/internal/jsontree"
)

// Node is a read-only view of one schema inside a compiled one, for programs
// that translate schemas, such as code generators. Two nodes are equal by ==
// exactly if they are the same place in the same schema, so that a map of nodes
// finds recursion; with $dynamicRef, a place has a node for each dynamic scope in
// which it means something else. The zero Node is no schema; its methods must not be
// called.
//
// A schema of [ProfileFull] has keywords that a program for the subset does not ask
// about. [Node.Unread] names them, so that it can refuse what it would drop, and
// [Node.Keywords] has all of them as written.
type Node struct{ n *ir.Node }

// Root returns the whole schema.
func (s *Schema) Root() Node { return Node{s.form.Root} }

// Definitions returns the schemas in the root's definitions, in the order of
// the source.
func (s *Schema) Definitions() []Definition { return s.Root().Definitions() }

// Definition is a named schema that $ref can reach.
type Definition struct {
	Name   string // as written, without the escapes that $ref needs
	Schema Node   // what $ref leads to
}

// Pointer returns where the schema stands in the source, as an RFC 6901
// pointer; "" is the root.
func (n Node) Pointer() string { return n.n.Pointer }

// IsZero reports whether n is no schema.
func (n Node) IsZero() bool { return n.n == nil }

// Boolean returns the value of a schema written true or false; ok is false for
// a schema written as an object.
func (n Node) Boolean() (value, ok bool) { return !n.n.Never, n.n.Boolean }

// Ref returns where $ref leads; ok is false without $ref. name is the name in
// the root's definitions, or "" for the root itself. A schema with $ref has
// annotations but no assertions of its own.
//
// By the full profile, a reference that has assertions beside it is one of the
// branches that AllOf returns, which means the same; name is "" as well for all that is
// not in the root's definitions or $defs; and [Node.RefKeyword] tells $dynamicRef
// from $ref.
func (n Node) Ref() (name string, target Node, ok bool) {
	return n.n.RefName, Node{n.n.Ref}, n.n.Ref != nil
}

// Resolve follows $ref, and the $ref that it leads to, to a schema without one.
func (n Node) Resolve() Node { return Node{n.n.Target()} }

// Types returns the types in the order of the source; nil accepts every type.
func (n Node) Types() []Type {
	if n.n.TypeList == nil {
		return nil
	}
	all := make([]Type, 0, len(n.n.TypeList))
	for _, name := range n.n.TypeList {
		all = append(all, Type(name))
	}
	return all
}

// Title returns the annotation title, or "".
func (n Node) Title() string { return n.n.Notes.Title }

// Description returns the annotation description, or "".
func (n Node) Description() string { return n.n.Notes.Description }

// Default returns the annotation default as compact JSON; nil without one. It
// may be any value: Compile does not judge it.
func (n Node) Default() []byte { return slices.Clone(n.n.Notes.Fallback) }

// Examples returns the annotation examples, each as compact JSON; nil without
// them. Compile does not judge them.
func (n Node) Examples() [][]byte {
	all := slices.Clone(n.n.Notes.Examples)
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
func literalsOf(r *ir.EnumRule) []Literal {
	if r == nil {
		return nil
	}
	all := make([]Literal, 0, len(r.Values))
	for _, l := range r.Values {
		t := Type(l.Kind.String())
		if l.Kind == jsontree.Number && decimal.Parse(l.Raw).IsInteger() {
			t = TypeInteger
		}
		all = append(all, Literal{JSON: slices.Clone(l.Raw), Type: t, Text: l.Text})
	}
	return all
}

// Enum returns the values of enum in the order of the source; nil without it.
func (n Node) Enum() []Literal { return literalsOf(n.n.Enum) }

// Const returns the value of const.
func (n Node) Const() (value Literal, ok bool) {
	if n.n.Constant == nil || len(n.n.Constant.Values) == 0 {
		return Literal{}, false
	}
	return literalsOf(n.n.Constant)[0], true
}

// Property is one entry of properties.
type Property struct {
	Name     string // the member's name, without escapes
	Schema   Node   // what judges the member
	Required bool   // whether required lists the name
}

// HasObject reports whether any of properties, required and
// additionalProperties is present, or another keyword about members.
func (n Node) HasObject() bool { return n.n.Obj != nil }

// Properties returns the entries of properties in the order of the source.
func (n Node) Properties() []Property {
	if n.n.Obj == nil {
		return nil
	}
	var all []Property
	for _, p := range n.n.Obj.Props[:n.n.Obj.Declared] {
		all = append(all, Property{p.Name, Node{p.Node}, p.Required})
	}
	return all
}

// Required returns the required names in the order of the source. They need
// not be among the properties.
func (n Node) Required() []string {
	if n.n.Obj == nil {
		return nil
	}
	return slices.Clone(n.n.Obj.Required)
}

// Additional returns the schema of additionalProperties; without it, ok is
// false and anything goes.
func (n Node) Additional() (schema Node, ok bool) {
	if n.n.Obj == nil || n.n.Obj.Additional == nil {
		return Node{}, false
	}
	return Node{n.n.Obj.Additional}, true
}

// Items returns the schema of items; without it, ok is false and anything
// goes. Behind [Node.PrefixItems] it is about the other elements, also where an older
// dialect calls it additionalItems.
func (n Node) Items() (schema Node, ok bool) {
	if n.n.Arr == nil || n.n.Arr.Items == nil {
		return Node{}, false
	}
	return Node{n.n.Arr.Items}, true
}

// ItemCount returns minItems and maxItems; a max of -1 means none.
func (n Node) ItemCount() (least, most int) {
	if n.n.Arr == nil {
		return 0, -1
	}
	return n.n.Arr.Min, bounded(n.n.Arr.Max)
}

// UniqueItems reports whether uniqueItems is true.
func (n Node) UniqueItems() bool { return n.n.Arr != nil && n.n.Arr.Unique }

// Length returns minLength and maxLength, in code points; a max of -1 means
// none.
func (n Node) Length() (least, most int) {
	if n.n.Str == nil {
		return 0, -1
	}
	return n.n.Str.Min, bounded(n.n.Str.Max)
}

// bounded shows an absent maximum as -1.
func bounded(n int) int {
	if n == ir.Unbounded {
		return -1
	}
	return n
}

// Pattern returns the ECMA-262 pattern as written, or "".
func (n Node) Pattern() string {
	if n.n.Str == nil || n.n.Str.Pattern == nil {
		return ""
	}
	return n.n.Str.Pattern.Source
}

// PatternRE2 returns the pattern in the syntax of Go's regexp package, with
// the meaning that it has in ECMA-262; "" without pattern.
func (n Node) PatternRE2() string {
	if n.n.Str == nil || n.n.Str.Pattern == nil {
		return ""
	}
	return n.n.Str.Pattern.RE2
}

// Format returns the format, or "". It is what Compile asserts: the full profile
// has formats that are annotations, see [Node.FormatAnnotation].
func (n Node) Format() Format {
	if n.n.Str == nil {
		return ""
	}
	return Format(n.n.Str.Format)
}

// Bounds are the limits of a number as JSON numbers, as written; "" where
// absent.
type Bounds struct {
	Minimum, Maximum                   string // the values that still pass
	ExclusiveMinimum, ExclusiveMaximum string // the values that just fail
}

// Bounds returns the numeric limits.
func (n Node) Bounds() Bounds {
	if n.n.Num == nil {
		return Bounds{}
	}
	return Bounds{
		Minimum: limit(n.n.Num.Min), Maximum: limit(n.n.Num.Max),
		ExclusiveMinimum: limit(n.n.Num.Above), ExclusiveMaximum: limit(n.n.Num.Below),
	}
}

// limit shows a bound as written; "" where it is absent.
func limit(b *ir.Bound) string {
	if b == nil {
		return ""
	}
	return b.Raw
}

// OneOf returns the branches of oneOf; nil without it.
func (n Node) OneOf() []Node { return nodesOf(n.n.OneOf) }

// AnyOf returns the branches of anyOf; nil without it.
func (n Node) AnyOf() []Node { return nodesOf(n.n.AnyOf) }

// AllOf returns the branches of allOf; nil without it.
func (n Node) AllOf() []Node { return nodesOf(n.n.AllOf) }

// nodesOf copies the branches.
func nodesOf(c *ir.Combinator) []Node {
	if c == nil {
		return nil
	}
	all := make([]Node, 0, len(c.Branches))
	for _, b := range c.Branches {
		all = append(all, Node{b})
	}
	return all
}

// Not returns the schema of not.
func (n Node) Not() (schema Node, ok bool) { return Node{n.n.Not}, n.n.Not != nil }

// Discriminator returns the property whose value alone decides which branch
// of oneOf or anyOf an object can match, and the values of each branch, in
// order; ok is false where there is none.
func (n Node) Discriminator() (property string, values [][]string, ok bool) {
	for _, c := range []*ir.Combinator{n.n.OneOf, n.n.AnyOf} {
		if c == nil || c.Dispatch == nil {
			continue
		}
		for _, b := range c.To {
			at := b.Obj.Index.Find(b.Obj.Props, []byte(c.Dispatch.Property))
			values = append(values, b.Obj.Props[at].Node.Target().Tags())
		}
		return c.Dispatch.Property, values, true
	}
	return "", nil, false
}

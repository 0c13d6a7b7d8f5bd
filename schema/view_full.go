package schema

import (
	"slices"

	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/schema/internal/ir"
)

// What follows is about the full profile: a schema of the subset has none of it.

// Definitions returns the schemas in definitions and $defs, in the order of the source.
// Only those at the root have names that [Node.Ref] knows.
func (n Node) Definitions() []Definition {
	all := make([]Definition, 0, len(n.n.Notes.Definitions))
	for _, d := range n.n.Notes.Definitions {
		all = append(all, Definition{d.Name, Node{d.Node}})
	}
	return all
}

// RefKeyword returns $ref, $dynamicRef or $recursiveRef, and its value as written; ""
// where [Node.Ref] has none. [Node.Ref] returns where a dynamic reference leads in the
// dynamic scope of this node.
func (n Node) RefKeyword() (keyword, text string) { return n.n.RefBy, n.n.RefText }

// PatternProperty is one entry of patternProperties.
type PatternProperty struct {
	Pattern string // as written: ECMA-262
	RE2     string // in the syntax of Go's regexp package, with the same meaning
	Schema  Node   // what judges the members whose names match
}

// PatternProperties returns the entries of patternProperties in the order of the
// source. A member can match several, and be among Properties as well: all of them
// judge it. Additional judges those that neither names.
func (n Node) PatternProperties() []PatternProperty {
	o := n.object()
	all := make([]PatternProperty, 0, len(o.Patterns))
	for _, p := range o.Patterns {
		all = append(all, PatternProperty{p.Pattern.Source, p.Pattern.RE2, Node{p.Node}})
	}
	return orNil(all)
}

// PropertyNames returns the schema that judges the names of all members.
func (n Node) PropertyNames() (schema Node, ok bool) { return maybe(n.object().Names) }

// PropertyCount returns minProperties and maxProperties; a max of -1 means none.
func (n Node) PropertyCount() (least, most int) {
	o := n.object()
	return o.Min, bounded(o.Max)
}

// DependentRequired is one entry of dependentRequired, or of dependencies where that
// holds names.
type DependentRequired struct {
	Name     string   // if this member exists,
	Required []string // so must these
}

// DependentRequired returns the entries of dependentRequired in the order of the
// source.
func (n Node) DependentRequired() []DependentRequired {
	o := n.object()
	all := make([]DependentRequired, 0, len(o.Dependents))
	for _, d := range o.Dependents {
		all = append(all, DependentRequired{d.Name, slices.Clone(d.Required)})
	}
	return orNil(all)
}

// DependentSchema is one entry of dependentSchemas, or of dependencies where that
// holds a schema.
type DependentSchema struct {
	Name   string // if this member exists,
	Schema Node   // the whole object must pass this
}

// DependentSchemas returns the entries of dependentSchemas in the order of the source.
func (n Node) DependentSchemas() []DependentSchema {
	var all []DependentSchema
	for _, c := range n.beyond().Conditionals {
		if c.Dependent != nil {
			all = append(all, DependentSchema{*c.Dependent, Node{c.Then}})
		}
	}
	return all
}

// Conditional is if with its arms. An arm that is absent is the zero Node, and accepts
// everything.
type Conditional struct{ If, Then, Else Node }

// Conditional returns if with then and else; ok is false without if, where the two say
// nothing.
func (n Node) Conditional() (c Conditional, ok bool) {
	for _, c := range n.beyond().Conditionals {
		if c.Dependent == nil {
			return Conditional{Node{c.If}, Node{c.Then}, Node{c.Else}}, true
		}
	}
	return Conditional{}, false
}

// PrefixItems returns the schemas of the first elements, one for each: prefixItems, or
// items where that is an array. Items judges the elements behind them. An array may
// be shorter.
func (n Node) PrefixItems() []Node {
	a := n.array()
	all := make([]Node, 0, len(a.Prefix))
	for _, p := range a.Prefix {
		all = append(all, Node{p})
	}
	return orNil(all)
}

// Contains is the keyword contains with its bounds.
type Contains struct {
	Schema      Node
	Least, Most int // how many elements must match; a Most of -1 means no bound
}

// Contains returns contains with minContains and maxContains; ok is false without
// contains, where the two say nothing.
func (n Node) Contains() (c Contains, ok bool) {
	a := n.array()
	if a.Contains == nil {
		return Contains{}, false
	}
	return Contains{Node{a.Contains}, a.Least, bounded(a.Most)}, true
}

// UnevaluatedProperties returns the schema of the members that no other keyword of this
// schema, and of those that it applies to the same object, has judged.
func (n Node) UnevaluatedProperties() (schema Node, ok bool) { return maybe(n.beyond().Members) }

// UnevaluatedItems is UnevaluatedProperties for elements.
func (n Node) UnevaluatedItems() (schema Node, ok bool) { return maybe(n.beyond().Elements) }

// MultipleOf returns the divisor as written, or "".
func (n Node) MultipleOf() string {
	if n.n.Num == nil || n.n.Num.Multiple == nil {
		return ""
	}
	return n.n.Num.Multiple.Raw
}

// FormatAnnotation returns the format as written, whether it is asserted or not, or "".
func (n Node) FormatAnnotation() string { return n.n.Notes.Format }

// KeywordValue is a keyword of a schema with its value.
type KeywordValue struct {
	Name string
	JSON []byte // as written
}

// Keywords returns all that the schema holds in the order of the source, also what the
// dialect does not know or does not assert, such as readOnly, contentMediaType and
// x-order; nil for a schema written true or false. A reference among the branches of
// AllOf that the source has elsewhere is shown alone.
func (n Node) Keywords() []KeywordValue {
	if n.n.Raw == nil && n.n.RefBy != "" {
		return []KeywordValue{{n.n.RefBy, ijson.AppendQuoted(nil, n.n.RefText)}}
	}
	if len(n.n.Raw) == 0 || n.n.Raw[0] != '{' {
		return nil
	}
	var all []KeywordValue
	raw := n.n.Raw // Compile has checked it
	for i, empty := ijson.Enter(raw, 0); !empty; {
		end, _, value, _ := ijson.ScanName(raw, i)
		after := ijson.SkipValid(raw, value)
		name := string(ijson.AppendUnquoted(nil, raw[i+1:end-1]))
		all = append(all, KeywordValue{name, slices.Clone(raw[value:after])})
		next, more, _ := ijson.Next(raw, after, '}')
		i, empty = next, !more
	}
	return all
}

// Unread names the keywords of the schema that assert something about values, but are
// not in the subset, in the order of the source: a program that asks only about the
// subset would translate another schema than this one. Those are left out that say
// nothing here, such as then without if. References are not among them: whatever the
// keyword, [Node.Ref] and AllOf show where they lead.
func (n Node) Unread() []string {
	var all []string
	for _, k := range n.Keywords() {
		if n.asserts(k.Name) {
			all = append(all, k.Name)
		}
	}
	return all
}

// asserts reports whether a keyword is one outside of the subset that counts here. What
// the dialect does not know is not in the compiled form.
func (n Node) asserts(keyword string) bool {
	switch keyword {
	case "if", "then", "else":
		_, ok := n.Conditional()
		return ok
	case "contains", "minContains", "maxContains":
		return n.array().Contains != nil
	case "prefixItems", "additionalItems", "items": // items of a tuple is about other elements than that of the subset
		return n.array().Prefix != nil
	case "patternProperties":
		return n.object().Patterns != nil
	case "propertyNames":
		return n.object().Names != nil
	case "minProperties":
		return n.object().Min > 0
	case "maxProperties":
		return n.object().Max != ir.Unbounded
	case "dependentRequired", "dependentSchemas", "dependencies":
		return n.object().Dependents != nil || n.DependentSchemas() != nil
	case "unevaluatedProperties":
		return n.beyond().Members != nil
	case "unevaluatedItems":
		return n.beyond().Elements != nil
	case "multipleOf":
		return n.MultipleOf() != ""
	}
	return false
}

// Children returns every schema directly inside this one and, for a reference, where it
// leads, whatever the keyword: those about the same value, then those about its parts.
// A walk over them misses none but the definitions that nothing refers to.
func (n Node) Children() []Node {
	var all []Node
	for _, e := range n.n.Edges() {
		all = append(all, Node{e})
	}
	return all
}

// object returns the keywords about members outside of the subset; those of a schema
// that has none.
func (n Node) object() *ir.FullObject {
	if n.n.Obj == nil || n.n.Obj.Full == nil {
		return &ir.FullObject{Max: ir.Unbounded}
	}
	return n.n.Obj.Full
}

// array is object for elements.
func (n Node) array() *ir.FullArray {
	if n.n.Arr == nil || n.n.Arr.Full == nil {
		return &ir.FullArray{Most: ir.Unbounded}
	}
	return n.n.Arr.Full
}

// beyond is object for the keywords about a whole value.
func (n Node) beyond() *ir.Beyond {
	if n.n.Beyond == nil {
		return &ir.Beyond{}
	}
	return n.n.Beyond
}

// maybe returns the view of a schema that may be absent.
func maybe(n *ir.Node) (schema Node, ok bool) { return Node{n}, n != nil }

// orNil returns nil in place of an empty list.
func orNil[T any](all []T) []T {
	if len(all) == 0 {
		return nil
	}
	return all
}

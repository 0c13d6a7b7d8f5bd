package compile

import (
	"slices"

	"github.com/agentd/agentd/schema/internal/decimal"
	"github.com/agentd/agentd/schema/internal/ir"
	"github.com/agentd/agentd/schema/internal/jsonptr"
	"github.com/agentd/agentd/schema/internal/jsontree"
	"github.com/agentd/agentd/schema/internal/pattern"
)

// isReference reports whether a keyword leads to another schema.
func isReference(name string) bool {
	return name == "$ref" || name == "$dynamicRef" || name == "$recursiveRef"
}

// assertsNothing reports whether no value can fail a keyword, alone or together with
// others.
func assertsNothing(name string) bool {
	switch name {
	case "title", "description", "default", "examples", "definitions", "$defs", "$schema", "$id", "$anchor",
		"$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "$comment", "deprecated", "readOnly", "writeOnly",
		"contentEncoding", "contentMediaType", "contentSchema":
		return true
	}
	return false
}

// knownBy reports whether a dialect has a keyword. The others are annotations to it:
// minContains says nothing in draft-07.
func knownBy(d Dialect, name string) bool {
	switch name {
	case "additionalItems":
		return d != Draft202012
	case "prefixItems", "$dynamicRef", "$dynamicAnchor":
		return d == Draft202012
	case "$recursiveRef", "$recursiveAnchor":
		return d == Draft201909
	case "$anchor", "$vocabulary", "dependentRequired", "dependentSchemas", "minContains", "maxContains",
		"unevaluatedItems", "unevaluatedProperties", "deprecated", "contentSchema":
		return d != Draft07
	case "$ref", "type", "enum", "const", "properties", "required", "additionalProperties", "items", "minItems", "maxItems",
		"uniqueItems", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "pattern",
		"format", "oneOf", "anyOf", "allOf", "not", "multipleOf", "minProperties", "maxProperties", "patternProperties",
		"propertyNames", "dependencies", "if", "then", "else", "contains":
		return true
	}
	return assertsNothing(name)
}

// keyword compiles one keyword that the dialect has.
func (f *fullProfile) keyword(n *ir.Node, t *jsontree.Tree, m jsontree.Member, at string, d Dialect) {
	switch m.Name {
	case "multipleOf":
		f.multipleOf(n, m.Value, at)
	case "items", "prefixItems", "additionalItems", "contains", "minContains", "maxContains":
		f.arrayKeyword(n, t, m, at, d)
	case "minProperties", "maxProperties", "patternProperties", "propertyNames", "dependentRequired", "dependentSchemas", "dependencies":
		f.objectKeyword(n, m, at)
	case "unevaluatedProperties":
		beyond(n).Members, f.looksTwice = f.c.schema(m.Value, at), true
	case "unevaluatedItems":
		beyond(n).Elements, f.looksTwice = f.c.schema(m.Value, at), true
	case "if", "then", "else": // together, in conditional
	default:
		if assertsNothing(m.Name) {
			f.annotation(n, m, at)
			return
		}
		f.c.keyword(n, m.Name, m.Value, at)
	}
}

// annotation keeps the annotations that somebody reads. One of another form than the
// drafts ask for is of no use, and no harm.
func (f *fullProfile) annotation(n *ir.Node, m jsontree.Member, at string) {
	switch m.Name {
	case "title", "description":
		if m.Value.Kind == jsontree.String {
			f.c.annotation(n, m.Name, m.Value, at)
		}
	case "examples":
		if m.Value.Kind == jsontree.Array {
			f.c.annotation(n, m.Name, m.Value, at)
		}
	case "default":
		f.c.annotation(n, m.Name, m.Value, at)
	case "definitions", "$defs":
		f.c.definitions(n, m.Value, at)
	}
}

// beyond returns what a node has of the keywords about a whole value, to be filled.
func beyond(n *ir.Node) *ir.Beyond {
	if n.Beyond == nil {
		n.Beyond = &ir.Beyond{}
	}
	return n.Beyond
}

// conditional compiles if, then and else. Without if, the others say nothing.
func (f *fullProfile) conditional(n *ir.Node, t *jsontree.Tree, pointer string) {
	part := func(name string) *ir.Node {
		if v := t.Get(name); v != nil {
			return f.c.schema(v, jsonptr.Child(pointer, name))
		}
		return nil
	}
	c := ir.Conditional{If: part("if"), Then: part("then"), Else: part("else")}
	if c.If != nil {
		b := beyond(n)
		b.Conditionals = append(b.Conditionals, c)
	}
}

// multipleOf compiles the divisor. Up to 18 digits fit a machine word, which makes the
// remainder of any number cheap.
func (f *fullProfile) multipleOf(n *ir.Node, v *jsontree.Tree, at string) {
	if v.Kind != jsontree.Number {
		f.c.fault(at, "multipleOf must be a number, not "+describe(v.Kind), "")
		return
	}
	d := decimal.Parse(slices.Clone(v.Raw))
	const most = 18
	switch {
	case len(d.Digits) == 0 || d.Neg:
		f.c.fault(at, "multipleOf must be greater than 0", "")
		return
	case d.Size() > most:
		f.c.fault(at, "multipleOf has more than 18 digits", "")
		return
	case !f.c.exact(v, func() string { return at }):
		return
	}
	m := &ir.Multiple{Raw: string(v.Raw), Exp: d.Exp - int64(d.Size())}
	for _, ch := range d.Digits {
		if ch != '.' {
			m.Coefficient = m.Coefficient*10 + uint64(ch-'0')
		}
	}
	if n.Num == nil {
		n.Num = &ir.NumberRule{}
	}
	n.Num.Multiple = m
}

// fullArray returns what a node has of the keywords about arrays outside of the
// subset, to be filled.
func fullArray(n *ir.Node) *ir.FullArray {
	if n.Arr == nil {
		n.Arr = &ir.ArrayRule{Max: ir.Unbounded}
	}
	if n.Arr.Full == nil {
		n.Arr.Full = &ir.FullArray{Least: 1, Most: ir.Unbounded}
	}
	return n.Arr.Full
}

// arrayKeyword compiles the keywords about elements. Before 2020-12, items as an array
// is what prefixItems is now, and additionalItems what items is then.
func (f *fullProfile) arrayKeyword(n *ir.Node, t *jsontree.Tree, m jsontree.Member, at string, d Dialect) {
	tuple := d != Draft202012 && t.Get("items") != nil && t.Get("items").Kind == jsontree.Array
	switch m.Name {
	case "prefixItems":
		if branches := f.c.branches(m.Value, at); branches != nil {
			fullArray(n).Prefix = branches.Branches
		}
	case "items":
		if !tuple {
			f.c.arrayKeyword(n, "items", m.Value, at)
			return
		}
		if len(m.Value.Items) > 0 {
			if branches := f.c.branches(m.Value, at); branches != nil {
				fullArray(n).Prefix = branches.Branches
			}
		}
	case "additionalItems":
		if tuple {
			fullArray(n)
			n.Arr.Items = f.c.schema(m.Value, at)
		}
	case "contains":
		full := fullArray(n)
		full.Contains, full.Counts = f.c.schema(m.Value, at), d == Draft202012
	case "minContains":
		fullArray(n).Least = f.c.count(m.Value, at, m.Name)
	case "maxContains":
		fullArray(n).Most = f.c.count(m.Value, at, m.Name)
	}
}

// fullObject is fullArray for objects.
func fullObject(n *ir.Node) *ir.FullObject {
	if n.Obj == nil {
		n.Obj = &ir.ObjectRule{}
	}
	if n.Obj.Full == nil {
		n.Obj.Full = &ir.FullObject{Max: ir.Unbounded}
	}
	return n.Obj.Full
}

// objectKeyword compiles the keywords about objects outside of the subset.
func (f *fullProfile) objectKeyword(n *ir.Node, m jsontree.Member, at string) {
	switch m.Name {
	case "minProperties":
		fullObject(n).Min = f.c.count(m.Value, at, m.Name)
		return
	case "maxProperties":
		fullObject(n).Max = f.c.count(m.Value, at, m.Name)
		return
	case "propertyNames":
		fullObject(n).Names = f.c.schema(m.Value, at)
		return
	}
	if m.Value.Kind != jsontree.Object {
		f.c.fault(at, m.Name+" must be an object, not "+describe(m.Value.Kind), "")
		return
	}
	for _, entry := range m.Value.Members {
		if f.c.exceeded != nil {
			return
		}
		where := jsonptr.Child(at, entry.Name)
		switch {
		case m.Name == "patternProperties":
			f.patternProperty(n, entry, where)
		case m.Name == "dependentRequired", m.Name == "dependencies" && entry.Value.Kind == jsontree.Array:
			f.dependentRequired(n, entry, where)
		default:
			f.dependentSchema(n, entry, where)
		}
	}
}

// patternProperty compiles one entry of patternProperties.
func (f *fullProfile) patternProperty(n *ir.Node, entry jsontree.Member, where string) {
	node := f.c.schema(entry.Value, where)
	p, err := pattern.Compile(entry.Name, &f.c.patterns)
	if err != nil {
		f.c.fault(where, err.Message, err.Hint)
		return
	}
	full := fullObject(n)
	full.Patterns = append(full.Patterns, ir.PatternProperty{Pattern: p, Node: node})
}

// dependentRequired compiles one entry of dependentRequired.
func (f *fullProfile) dependentRequired(n *ir.Node, entry jsontree.Member, where string) {
	if entry.Value.Kind != jsontree.Array {
		f.c.fault(where, "must be an array of names, not "+describe(entry.Value.Kind), "")
		return
	}
	d := ir.Dependent{Name: entry.Name}
	listed := map[string]bool{}
	for i, item := range entry.Value.Items {
		if !f.c.spendAt(where, 0) {
			return
		}
		if name, ok := f.c.text(item, jsonptr.Element(where, i)); ok && !listed[name] {
			listed[name] = true
			d.Required = append(d.Required, name)
		}
	}
	full := fullObject(n)
	full.Dependents = append(full.Dependents, d)
}

// dependentSchema compiles one entry of dependentSchemas: if the member exists, the
// whole object must also pass a schema.
func (f *fullProfile) dependentSchema(n *ir.Node, entry jsontree.Member, where string) {
	asks := f.newNode(where)
	asks.Types = ir.TypeObject
	asks.Obj = &ir.ObjectRule{Required: []string{entry.Name}}
	f.c.finish(asks)
	b := beyond(n)
	b.Conditionals = append(b.Conditionals, ir.Conditional{If: asks, Then: f.c.schema(entry.Value, where), Dependent: &entry.Name})
}

// nameDependents makes properties without schemas of the names in dependentRequired,
// as finishObject does of those in required, and notes their places.
func nameDependents(o *ir.ObjectRule) {
	if o.Full == nil || len(o.Full.Dependents) == 0 {
		return
	}
	at := make(map[string]int, len(o.Props))
	for i := range o.Props {
		at[o.Props[i].Name] = i
	}
	place := func(name string) int {
		i, ok := at[name]
		if !ok {
			i = len(o.Props)
			at[name] = i
			o.Props = append(o.Props, ir.Property{Name: name})
		}
		return i
	}
	for i := range o.Full.Dependents {
		d := &o.Full.Dependents[i]
		d.At = place(d.Name)
		for _, name := range d.Required {
			d.Needs = append(d.Needs, place(name))
		}
	}
}

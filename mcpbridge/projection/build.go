package projection

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/agentd/agentd/schema"
)

// build writes a place.
func (b *builder) build(p place) lowered {
	first := p.first()
	if b.places++; b.places > maxPlaces {
		return b.asText(p, first, "$ref", "the schema is too large with its references replaced")
	}
	types, declared := p.types()
	if p.never() || declared && len(types) == 0 {
		return b.asText(p, first, "type", "no value fits")
	}
	if values, by, keyword := p.literals(types, declared); keyword != "" {
		return b.literals(p, values, by, keyword)
	}
	if u, ok := p.choose(); ok {
		return b.union(p, u)
	}
	if !declared {
		all, by, keyword := p.inferred()
		if len(all) != 1 {
			return b.asText(p, first, "type", "any type is valid")
		}
		b.narrow(by, keyword, fmt.Sprintf("it judges no values of other types than %s, and they cannot be written", all[0]))
		types = all
	}
	return b.typed(p, types)
}

func structured(t schema.Type) bool { return t == schema.TypeObject || t == schema.TypeArray }

// typed writes a value of one of some types. Objects and arrays are branches of their
// own, because a provider demands more of them than their type.
func (b *builder) typed(p place, types []schema.Type) lowered {
	if !slices.ContainsFunc(types, structured) {
		return b.scalar(p, types)
	}
	if len(types) == 1 {
		if types[0] == schema.TypeObject {
			return b.object(p)
		}
		return b.array(p)
	}
	inner := p
	inner.notes = nil
	var all []lowered
	if scalars := slices.DeleteFunc(slices.Clone(types), structured); len(scalars) > 0 {
		all = append(all, b.scalar(inner, scalars))
	}
	for _, t := range types {
		if structured(t) {
			all = append(all, b.typed(inner, []schema.Type{t}))
		}
	}
	return b.either(p, all, p.first(), "type")
}

// scalar writes a string, number, boolean or null.
func (b *builder) scalar(p place, types []schema.Type) lowered {
	l := lowered{strings: slices.Contains(types, schema.TypeString), null: slices.Contains(types, schema.TypeNull), compact: true}
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = string(t)
	}
	if len(names) == 1 {
		l.add("type", quoted(names[0]))
	} else {
		b.unions++
		l.add("type", quotedAll(names))
	}
	b.annotate(p, &l, types)
	return l
}

// literals writes the values of const or enum.
func (b *builder) literals(p place, values []schema.Literal, by schema.Node, keyword string) lowered {
	if len(values) == 0 {
		return b.asText(p, by, keyword, "no value fits")
	}
	for _, n := range p.nodes {
		if n != by && n.Enum() != nil {
			b.drop(n, "enum", "only one list of values is sent")
		}
	}
	var types []schema.Type
	var parts [][]byte
	length := 0
	for _, v := range values {
		if structured(v.Type) {
			return b.asText(p, by, keyword, "objects and arrays cannot be listed")
		}
		types = append(types, v.Type)
		parts = append(parts, v.JSON)
		length += len(v.JSON)
	}
	types = intersect(nil, types, true)
	special := func(t schema.Type) bool { return t == schema.TypeBoolean || t == schema.TypeNull }
	switch {
	case !b.mixedEnums && slices.ContainsFunc(types, special):
		return b.spelledOut(p, types, parts, by, keyword, "a list with booleans or null is not taken")
	case b.enumValues+len(parts) > b.maxEnumValues, b.text+length > b.maxText,
		b.maxLongEnum > 0 && len(parts) > manyEnumValues && length > b.maxLongEnum:
		return b.spelledOut(p, types, parts, by, keyword, "too many values")
	}
	b.enumValues += len(parts)
	b.text += length
	l := b.scalar(p, types)
	l.compact = false
	l.add("enum", writeArray(parts))
	return l
}

// maxSpelledOut bounds the text of values in a description.
const maxSpelledOut = 1000

// spelledOut writes values that cannot be an enum: as their types, and in words.
func (b *builder) spelledOut(p place, types []schema.Type, parts [][]byte, by schema.Node, keyword, reason string) lowered {
	b.drop(by, keyword, reason+": said in the description")
	shown, length := 0, 0
	for ; shown < len(parts) && length+len(parts[shown]) < maxSpelledOut; shown++ {
		length += len(parts[shown]) + 2
	}
	words := "One of: " + string(bytes.Join(parts[:shown], []byte(", ")))
	if shown < len(parts) {
		words += fmt.Sprintf(", and %d more", len(parts)-shown)
	}
	l := b.scalar(p, types)
	l.describe(words + ".")
	return l
}

// union writes anyOf or oneOf: each branch with all that the place says beside it.
func (b *builder) union(p place, u union) lowered {
	if u.keyword == "oneOf" {
		b.drop(u.of, "oneOf", "sent as anyOf: that only one fits is not said")
	}
	inner := p
	inner.notes = nil
	inner.done = map[schema.Node]bool{}
	for _, n := range p.nodes {
		inner.done[n] = true
	}
	for _, other := range p.unions() {
		if other.of != u.of || other.keyword != u.keyword {
			b.drop(other.of, other.keyword, "only one union of a value is sent")
		}
	}
	var all []lowered
	for _, br := range u.branches {
		if b.possible(inner, br) {
			all = append(all, b.value(inner, br))
		}
	}
	return b.either(p, all, u.of, u.keyword)
}

// possible reports whether the types of a branch leave any value.
func (b *builder) possible(p place, branch schema.Node) bool {
	entered, again, _ := b.enter(&p, []schema.Node{branch})
	b.leave(entered)
	types, declared := p.types()
	return !again.IsZero() || !p.never() && (!declared || len(types) > 0)
}

// either writes a value that is one of some. Where two of them may be strings, and one of
// these is the text of something else, nobody could say which is meant: the value is text
// as a whole then.
func (b *builder) either(p place, all []lowered, by schema.Node, keyword string) lowered {
	switch len(all) {
	case 0:
		return b.asText(p, by, keyword, "no value fits")
	case 1:
		all[0].describe(p.description())
		return all[0]
	}
	l := lowered{}
	texts, strings := 0, 0
	for _, one := range all {
		if one.plan != nil && l.plan == nil {
			l.plan = &plan{kind: branched}
		}
		if one.plan != nil && one.plan.kind == text {
			texts++
		}
		if one.strings {
			strings++
		}
		l.strings, l.null = l.strings || one.strings, l.null || one.null
	}
	if texts > 0 && strings > 1 {
		return b.asText(p, by, keyword, "one branch is sent as JSON text, and another may be a string")
	}
	b.unions++
	if title := p.title(); title != "" {
		l.add("title", quoted(title))
	}
	l.describe(p.description())
	var parts [][]byte
	for _, one := range all {
		part := one.json()
		if l.plan != nil {
			br := &branch{json: part, plan: one.plan}
			l.plan.branches = append(l.plan.branches, br)
			b.branches = append(b.branches, br)
		}
		if !slices.ContainsFunc(parts, func(other []byte) bool { return bytes.Equal(other, part) }) {
			parts = append(parts, part)
		}
	}
	l.add("anyOf", writeArray(parts))
	return l
}

// nullable adds null to what is valid.
func (b *builder) nullable(l lowered) lowered {
	b.unions++
	if l.compact {
		kind := l.take("type")
		if kind[0] == '"' {
			kind = writeArray([][]byte{kind})
		}
		kind = slices.Concat(kind[:len(kind)-1], []byte(`,"null"]`))
		l.fields = slices.Insert(l.fields, 0, field{"type", kind})
		l.null = true
		return l
	}
	outer := lowered{plan: l.plan, strings: l.strings, null: true}
	if description := l.take("description"); description != nil { // seen at once, and not in a branch
		outer.add("description", description)
	}
	outer.add("anyOf", writeArray([][]byte{l.json(), []byte(`{"type":"null"}`)}))
	return outer
}

// maxQuoted bounds the schemas that are quoted in descriptions.
const maxQuoted = 600

// asText writes a value that has no schema here as a string with its JSON text.
func (b *builder) asText(p place, by schema.Node, keyword, reason string) lowered {
	b.drop(by, keyword, reason+": sent as a string with the JSON text of the value")
	l := lowered{plan: &plan{kind: text}, strings: true, compact: true}
	l.add("type", quoted("string"))
	if title := p.title(); title != "" {
		l.add("title", quoted(title))
	}
	words := "The JSON text of a value"
	if len(p.nodes) == 1 {
		// A reference would lead nowhere in a description.
		if schema := quote(p.nodes[0]); len(schema) > len("{}") && len(schema) <= maxQuoted && !bytes.Contains(schema, []byte(`$ref"`)) {
			words += " that fits the JSON Schema " + string(schema)
		}
	}
	l.describe(p.description())
	l.describe(words + ".")
	return l
}

// quote returns a schema as written, without what says nothing about values.
func quote(n schema.Node) []byte {
	var fields []field
	for _, k := range n.Keywords() {
		switch k.Name {
		case "title", "description", "$schema", "$id", "$comment", "$defs", "definitions", "examples":
		default:
			fields = append(fields, field{k.Name, k.JSON})
		}
	}
	return []byte(strings.ReplaceAll(string(writeObject(fields)), "\n", " "))
}

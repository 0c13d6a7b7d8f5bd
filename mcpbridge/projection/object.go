package projection

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/agentd/agentd/schema"
)

// member is a property of an object, as all schemas of a place declare it.
type member struct {
	name     string
	nodes    []schema.Node
	required bool
}

// members lists the declared and the required properties.
func (p *place) members() []member {
	var all []member
	index := map[string]int{}
	find := func(name string) *member {
		at, ok := index[name]
		if !ok {
			at = len(all)
			index[name] = at
			all = append(all, member{name: name})
		}
		return &all[at]
	}
	for _, n := range p.nodes {
		for _, prop := range n.Properties() {
			m := find(prop.Name)
			m.nodes = append(m.nodes, prop.Schema)
		}
	}
	rest := p.rest()
	for _, n := range p.nodes {
		for _, name := range n.Required() {
			m := find(name)
			m.required = true
			if m.nodes == nil && !p.patterned() { // a pattern may be about it instead
				m.nodes = rest
			}
		}
	}
	return all
}

// rest lists the schemas of members that no property declares.
func (p *place) rest() []schema.Node {
	var all []schema.Node
	for _, n := range p.nodes {
		if s, ok := n.Additional(); ok {
			all = append(all, s)
		}
	}
	return all
}

func (p *place) patterned() bool {
	return slices.ContainsFunc(p.nodes, func(n schema.Node) bool { return n.PatternProperties() != nil })
}

// sealed reports whether undeclared members are refused: by additionalProperties, or by
// unevaluatedProperties where nothing else could declare any.
func (p *place) sealed() bool {
	return slices.ContainsFunc(p.nodes, func(n schema.Node) bool {
		if n.PatternProperties() != nil {
			return false
		}
		if s, ok := n.Additional(); ok {
			return isFalse(s)
		}
		s, ok := n.UnevaluatedProperties()
		_, conditional := n.Conditional()
		elsewhere := conditional || n.DependentSchemas() != nil || n.AnyOf() != nil || n.OneOf() != nil
		return ok && isFalse(s) && !elsewhere && len(p.nodes) == 1
	})
}

// object writes an object.
func (b *builder) object(p place) lowered {
	first := p.first()
	all, sealed := p.members(), p.sealed()
	declares := slices.ContainsFunc(p.nodes, func(n schema.Node) bool {
		return slices.ContainsFunc(n.Keywords(), func(k schema.KeywordValue) bool { return k.Name == "properties" })
	})
	length := 0
	for _, m := range all {
		length += len(m.name)
	}
	switch {
	case p.depth >= b.maxDepth:
		return b.asText(p, first, "type", fmt.Sprintf("objects and arrays are more than %d deep", b.maxDepth))
	case b.properties+len(all) > b.maxProperties, b.text+length > b.maxText:
		return b.asText(p, first, "properties", "the schema has too many properties")
	case b.closed && !sealed && len(all) == 0 && !declares:
		return b.asText(p, first, "additionalProperties", "the caller chooses the names of the members")
	case b.closed && !sealed:
		b.narrow(first, "additionalProperties", "members that the schema does not declare cannot be written")
	}
	b.properties += len(all)
	b.text += length
	l := lowered{plan: &plan{kind: object, members: map[string]memberPlan{}}}
	l.add("type", quoted("object"))
	b.annotate(p, &l, []schema.Type{schema.TypeObject})
	b.declared(p, &l, all)
	b.undeclared(p, &l, sealed)
	if !l.plan.needed() {
		l.plan = nil
	}
	return l
}

// declared writes the members.
func (b *builder) declared(p place, l *lowered, all []member) {
	var properties []field
	required := []string{}
	for _, m := range all {
		if !m.required && slices.ContainsFunc(m.nodes, isFalse) {
			continue // it cannot be given
		}
		value := b.value(place{depth: p.depth + 1}, m.nodes...)
		absent := b.allRequired && !m.required
		if absent {
			value = b.optionalMember(m, value)
		} else if !m.required {
			b.optional++
		}
		name := b.memberName(m, p.first(), all)
		properties = append(properties, field{name, value.json()})
		if m.required || b.allRequired {
			required = append(required, name)
		}
		l.plan.members[name] = memberPlan{m.name, value.plan, absent}
	}
	l.add("properties", writeObject(properties))
	if len(required) > 0 || b.allRequired {
		l.add("required", quotedAll(required))
	}
}

// optionalMember writes an optional property where the provider demands all: null
// stands for its absence.
func (b *builder) optionalMember(m member, value lowered) lowered {
	if !value.null {
		return b.nullable(value)
	}
	b.narrow(m.nodes[0], "required", "null stands for the absent member, and null itself cannot be written")
	return value
}

// undeclared writes what is said about other members.
func (b *builder) undeclared(p place, l *lowered, sealed bool) {
	if b.closed || sealed {
		l.add("additionalProperties", []byte("false"))
		return
	}
	rest := slices.DeleteFunc(p.rest(), func(n schema.Node) bool {
		_, boolean := n.Boolean()
		return boolean
	})
	if len(rest) == 0 || p.patterned() { // what matches a pattern is no rest
		return
	}
	value := b.value(place{depth: p.depth + 1}, rest...)
	l.add("additionalProperties", value.json())
	l.plan.rest = value.plan
}

// memberName returns the name under which a property is sent. It depends on the name
// alone, unless another member has it.
func (b *builder) memberName(m member, at schema.Node, all []member) string {
	if b.names == nil || b.names.MatchString(m.name) {
		return m.name
	}
	name := strings.Map(func(r rune) rune {
		if r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, m.name)
	if name == "" || !b.names.MatchString(name[:1]) {
		name = "_" + name
	}
	// Others can become the same: a hash tells them apart.
	sum := sha256.Sum256([]byte(m.name))
	name = name[:min(len(name), 50)] + "_" + hex.EncodeToString(sum[:4])
	for slices.ContainsFunc(all, func(o member) bool { return o.name == name }) {
		name = "_" + name[:min(len(name), 63)]
	}
	b.drop(at, "properties", fmt.Sprintf("the member %q is sent as %q", m.name, name))
	return name
}

// array writes an array. Its elements have one schema.
func (b *builder) array(p place) lowered {
	first := p.first()
	if p.depth >= b.maxDepth {
		return b.asText(p, first, "type", fmt.Sprintf("objects and arrays are more than %d deep", b.maxDepth))
	}
	l := lowered{}
	l.add("type", quoted("array"))
	b.annotate(p, &l, []schema.Type{schema.TypeArray})
	items := b.items(p)
	l.add("items", items.json())
	if items.plan != nil {
		l.plan = &plan{kind: array, rest: items.plan}
	}
	return l
}

// items writes the elements.
func (b *builder) items(p place) lowered {
	inner := place{depth: p.depth + 1}
	var all []schema.Node
	for _, n := range p.nodes {
		if prefix := n.PrefixItems(); prefix != nil {
			return b.tuple(inner, n, prefix)
		}
		if s, ok := n.Items(); ok {
			all = append(all, s)
		}
	}
	return b.value(inner, all...)
}

// tuple writes elements that have different schemas: each fits any of them.
func (b *builder) tuple(inner place, n schema.Node, prefix []schema.Node) lowered {
	b.drop(n, "prefixItems", "sent as elements that fit the schema of any position")
	var all []lowered
	for _, s := range prefix {
		all = append(all, b.value(inner, s))
	}
	rest, ok := n.Items()
	if !ok {
		b.narrow(n, "prefixItems", "elements of other kinds behind those that the schema describes cannot be written")
	} else if !isFalse(rest) {
		all = append(all, b.value(inner, rest))
	}
	return b.either(inner, all, n, "prefixItems")
}

package model

import "github.com/agentd/agentd/codegen/internal/ident"

// Labels returns words that distinguish the parts of a union. They need not be unique: a
// scope numbers those that repeat.
func (t *Type) Labels() []string {
	tag := t.tag()
	labels := make([]string, len(t.Of))
	for i, part := range t.Of {
		labels[i] = part.Label()
		if value, ok := part.Flatten().fixed(tag); ok && tag != "" {
			labels[i] = ident.Pascal(value)
		}
	}
	return labels
}

// tag returns the first name, in the order of names, of a required member whose one value
// differs in all objects among the parts of a union; "" where there is none.
func (t *Type) tag() string {
	var objects []*Type
	for _, part := range t.Of {
		if part = part.Flatten(); part.Kind == Object {
			objects = append(objects, part)
		}
	}
	if len(objects) == 0 {
		return ""
	}
	for _, m := range objects[0].sorted() {
		seen := map[string]bool{}
		for _, o := range objects {
			if value, ok := o.fixed(m.Name); ok {
				seen[value] = true
			}
		}
		if len(seen) == len(objects) {
			return m.Name
		}
	}
	return ""
}

// Label returns a word that distinguishes t among the parts of a union.
func (t *Type) Label() string {
	switch t := t.Flatten(); t.Kind {
	case Null:
		return "Null"
	case Boolean:
		return "Boolean"
	case Integer:
		return "Integer"
	case Number:
		return "Number"
	case String:
		return "String"
	case Enum:
		if len(t.Values) == 1 {
			return ident.Pascal(t.Values[0])
		}
		return "Enum"
	case Array:
		return "Array"
	case Object:
		return t.objectLabel()
	case Ref:
		return t.Named.Name
	}
	return "Value"
}

// objectLabel returns the value of the first required member, in the order of names, that
// has exactly one.
func (t *Type) objectLabel() string {
	for _, m := range t.sorted() {
		if value, ok := t.fixed(m.Name); ok {
			return ident.Pascal(value)
		}
	}
	return "Object"
}

// fixed returns the value of a required member that can only be one string.
func (t *Type) fixed(member string) (value string, ok bool) {
	for _, m := range t.Members {
		if e := m.Type.Flatten(); m.Name == member && m.Required && e.Kind == Enum && e.Base == String && len(e.Values) == 1 {
			return e.Values[0], true
		}
	}
	return "", false
}

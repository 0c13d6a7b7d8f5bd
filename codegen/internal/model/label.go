package model

import "github.com/agentd/agentd/codegen/internal/ident"

// Label returns a word that distinguishes t among the parts of a union. Labels
// need not be unique: a scope numbers those that repeat.
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

// objectLabel returns the value of the first required member that has exactly
// one, which is the tag of a tagged union.
func (t *Type) objectLabel() string {
	for _, m := range t.Members {
		if e := m.Type.Flatten(); m.Required && e.Kind == Enum && e.Base == String && len(e.Values) == 1 {
			return ident.Pascal(e.Values[0])
		}
	}
	return "Object"
}

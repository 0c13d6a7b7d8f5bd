package golang

import "github.com/agentd/agentd/codegen/internal/model"

// expr returns the Go type for t. A type with null is a pointer, and null is
// nil.
func (e *emitter) expr(t *model.Type) string {
	rest, nullable := t.Nullable()
	text := e.plain(rest)
	if nullable {
		return "*" + text
	}
	return text
}

// plain is expr for a type without null.
func (e *emitter) plain(t *model.Type) string {
	switch t.Kind {
	case model.Never:
		return "typed.Never"
	case model.Null:
		return "typed.Null"
	case model.Boolean:
		return "bool"
	case model.Integer:
		// Neither int64 nor float64 holds such numbers exactly.
		if t.Big {
			e.usesJSON = true
			return "json.Number"
		}
		return "int64"
	case model.Number:
		return "float64"
	case model.String:
		return "string"
	case model.Array:
		return "[]" + e.expr(t.Elem)
	case model.Object:
		if t.IsMap() {
			return "map[string]" + e.expr(t.Elem)
		}
		return t.Name
	case model.Enum, model.Union:
		return t.Name
	case model.Ref:
		return t.Named.Name
	}
	e.usesJSON = true
	return "json.RawMessage"
}

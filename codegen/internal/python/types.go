package python

import (
	"slices"
	"strings"

	"github.com/agentd/agentd/codegen/internal/ident"
	"github.com/agentd/agentd/codegen/internal/model"
)

// isTypedDict reports whether a class can describe an object. Python 3.11 has
// none for named members beside others of a type (PEP 728 adds it).
func isTypedDict(t *model.Type) bool {
	return t.Elem == nil || len(t.Members) > 0 && t.Elem.Kind == model.Any
}

// isNamed reports whether a TypedDict can have a member: pyright takes none with an empty
// name. The class leaves it out, as it leaves out what an open object holds beside its
// members.
func isNamed(m model.Member) bool { return m.Name != "" }

// member writes the type of a member.
func (e *emitter) member(m model.Member, evaluated bool) string {
	if !m.Required {
		return e.use("NotRequired") + "[" + e.expr(m.Type, evaluated) + "]"
	}
	return e.expr(m.Type, evaluated)
}

// expr returns the Python type for t. Annotations are not evaluated (PEP 563),
// but aliases and calls of TypedDict are, when the module is loaded: evaluated
// asks for quotes around names, which may be declared further down, and for
// Union instead of |, which a quoted name does not support.
func (e *emitter) expr(t *model.Type, evaluated bool) string {
	t = t.Flatten()
	name := func(n string) string { return n }
	if evaluated {
		name = e.quote
	}
	switch t.Kind {
	case model.Never:
		return e.use("Never")
	case model.Null:
		return "None"
	case model.Boolean:
		return "bool"
	case model.Integer:
		return "int"
	case model.Number:
		return "float"
	case model.String:
		return "str"
	case model.Enum:
		return e.enum(t)
	case model.Array:
		return "list[" + e.expr(t.Elem, evaluated) + "]"
	case model.Object:
		if isTypedDict(t) {
			return name(t.Name)
		}
		return "dict[str, " + e.expr(t.Others(), evaluated) + "]"
	case model.Union:
		var parts []string
		for _, m := range t.Of {
			// Types that differ in the model may be the same in Python, such as
			// integers with and without Big.
			if text := e.expr(m, evaluated); !slices.Contains(parts, text) {
				parts = append(parts, text)
			}
		}
		return e.join(parts, evaluated)
	case model.Ref:
		return name(t.Named.Name)
	}
	return e.use("Any")
}

// join writes a union of parts; see expr for why it has two forms.
func (e *emitter) join(parts []string, evaluated bool) string {
	if evaluated {
		return e.use("Union") + "[" + strings.Join(parts, ", ") + "]"
	}
	return strings.Join(parts, " | ")
}

// enum writes the values as a Literal (PEP 586), which cannot hold floats.
func (e *emitter) enum(t *model.Type) string {
	values := make([]string, len(t.Values))
	for i, v := range t.Values {
		switch t.Base {
		case model.Number:
			return "float" // Literal holds none
		case model.String:
			v = e.quote(v)
		case model.Boolean:
			v = ident.Pascal(v)
		}
		values[i] = v
	}
	return e.use("Literal") + "[" + strings.Join(values, ", ") + "]"
}

package typescript

import (
	"slices"
	"strconv"
	"strings"

	"github.com/agentd/agentd/codegen/internal/model"
)

// typ returns the TypeScript type for t. sealed leaves out the index signature
// of objects that are open to any member: another part of the same intersection
// is closed, and the signature would open it again.
func (e *emitter) typ(t *model.Type, indent string, sealed bool) string {
	switch t.Kind {
	case model.Never:
		return "never"
	case model.Null:
		return "null"
	case model.Boolean:
		return "boolean"
	case model.Integer, model.Number:
		return "number"
	case model.String:
		return "string"
	case model.Enum:
		return e.enum(t)
	case model.Array:
		if t.Tuple != nil {
			return e.tuple(t, indent)
		}
		return "Array<" + e.typ(t.Elem, indent, false) + ">"
	case model.Object:
		return e.object(t, indent, sealed)
	case model.Union:
		return e.join(t.Of, " | ", indent, sealed)
	case model.Intersection:
		if t.Flat.Kind == model.Never || slices.ContainsFunc(t.Of, typedIndex) {
			return e.typ(t.Flat, indent, sealed)
		}
		sealed = sealed || slices.ContainsFunc(t.Of, func(p *model.Type) bool { return p.Kind == model.Object && p.Elem == nil })
		return e.join(t.Of, " & ", indent, sealed)
	case model.Ref:
		return t.Named.Name
	}
	return "unknown"
}

// typedIndex reports whether t has an index signature of a type other than
// unknown. An intersection with such a part is written in its merged form:
// through the signature, the compiler does not see which literals are expected.
func typedIndex(t *model.Type) bool {
	return t.Kind == model.Object && t.Elem != nil && t.Elem.Kind != model.Any
}

// join puts op between types, and parentheses around those with an operator of
// their own.
func (e *emitter) join(types []*model.Type, op, indent string, sealed bool) string {
	parts := make([]string, len(types))
	for i, t := range types {
		parts[i] = e.typ(t, indent, sealed)
		inUnion := op == " | "
		if t.Kind == model.Intersection || !inUnion && (t.Kind == model.Union || t.Kind == model.Enum && len(t.Values) > 1) {
			parts[i] = "(" + parts[i] + ")"
		}
	}
	return strings.Join(parts, op)
}

// enum writes the values as literals.
func (e *emitter) enum(t *model.Type) string {
	values := make([]string, len(t.Values))
	for i, v := range t.Values {
		values[i] = v
		if t.Base == model.String {
			values[i] = e.quote(v)
		}
		if n, err := strconv.ParseInt(v, 10, 64); t.Base == model.Integer && err == nil && (n > 1<<53 || n < -1<<53) {
			return "number" // TypeScript would round the literal to another number
		}
	}
	return strings.Join(values, " | ")
}

// tuple writes an array type with the types of its elements.
func (e *emitter) tuple(t *model.Type, indent string) string {
	elems := make([]string, len(t.Tuple))
	for i, elem := range t.Tuple {
		elems[i] = e.typ(elem, indent, false)
	}
	return "[" + strings.Join(elems, ", ") + "]"
}

// object writes an object type over several lines.
func (e *emitter) object(t *model.Type, indent string, sealed bool) string {
	if len(t.Members) == 0 {
		switch {
		case t.Elem == nil:
			return "Record<string, never>"
		case t.Elem.Kind == model.Any:
			return "Record<string, unknown>"
		}
	}
	// A writer of its own, since an object is an expression inside a longer line.
	inner := emitter{bare: e.bare}
	inner.Line("{")
	deeper := indent + "  "
	for _, m := range t.Members {
		name, mark := m.Name, ""
		if !e.bare.MatchString(name) {
			name = e.quote(name)
		}
		if !m.Required {
			mark = "?"
		}
		inner.doc(deeper, m.Doc())
		inner.Line("%s%s%s: %s;", deeper, name, mark, e.typ(m.Type, deeper, false)+inherited(m))
	}
	// A signature of unknown adds nothing to a sealed object but would open it.
	if more := e.others(t, deeper); more != "" && (more != "unknown" || !sealed) {
		inner.Line("%s[key: string]: %s;", deeper, more)
	}
	inner.WriteString(indent + "}")
	return inner.String()
}

// inherited is what an optional member is as well where it is called like a member of
// Object: absent, it is that one, to the compiler and to the program. Without it no object
// without the member would be of the type.
func inherited(m model.Member) string {
	switch m.Name {
	case "constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString", "valueOf":
		if !m.Required && m.Type.Kind != model.Any {
			return " | Object[\"" + m.Name + "\"]"
		}
	}
	return ""
}

// others is the type of an index signature: it covers the declared members
// too, since TypeScript has none for the rest alone. Where one of them has such
// a signature itself, it is unknown: each level would double the text.
func (e *emitter) others(t *model.Type, indent string) string {
	if t.Elem == nil {
		return ""
	}
	optional := false
	for _, m := range t.Members {
		if hasNamedIndex(m.Type) {
			return "unknown"
		}
		optional = optional || !m.Required
	}
	u := t.Others()
	text := e.typ(u, indent, false)
	if u.Kind != model.Any {
		for _, m := range t.Members {
			text += inherited(m)
		}
	}
	if optional && u.Kind != model.Any {
		text += " | undefined"
	}
	return text
}

// hasNamedIndex reports whether an object in t has both named members and
// others of a type.
func hasNamedIndex(t *model.Type) bool {
	if t == nil {
		return false
	}
	if typedIndex(t) && len(t.Members) > 0 {
		return true
	}
	return hasNamedIndex(t.Elem) || hasNamedIndex(t.Flat) || slices.ContainsFunc(slices.Concat(t.Of, t.Tuple), hasNamedIndex) ||
		slices.ContainsFunc(t.Members, func(m model.Member) bool { return hasNamedIndex(m.Type) })
}

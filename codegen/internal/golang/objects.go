package golang

import (
	"maps"
	"slices"
	"strconv"

	"github.com/agentd/agentd/codegen/internal/ident"
	"github.com/agentd/agentd/codegen/internal/model"
	"github.com/agentd/agentd/codegen/internal/source"
)

// object declares a struct and its strict codec.
func (e *emitter) object(t *model.Type, doc string) {
	e.doc(t.Name, doc, "is an object.")
	e.Line("type %s struct {", t.Name)
	names := fieldNames(t.Members)
	// The codec's lines are collected while the fields are written, so that all
	// three agree in names and order.
	var decode, encode source.Writer
	for _, m := range t.Members {
		if m.Type.Flatten().Kind == model.Never && !m.Required {
			// No field, and a closed object has no such member anyway.
			if t.Elem != nil {
				decode.Line("o.Forbidden(%s)", strconv.Quote(m.Name))
				encode.Line("o.Forbidden(%s)", strconv.Quote(m.Name))
			}
			continue
		}
		name := names[m.Name]
		e.Comment("// ", m.Doc())
		if e.constant(m) != "" {
			e.Line("// %s is filled in where it is left empty.", name)
		}
		text, method := e.field(m)
		e.Line("%s %s", name, text)
		decode.Line("o.%s(%s, &n.%s)", method, strconv.Quote(m.Name), name)
		if constant := e.constant(m); constant != "" {
			encode.Line("o.Constant(%s, v.%s, %s)", strconv.Quote(m.Name), name, constant)
		} else {
			encode.Line("o.%s(%s, v.%s)", method, strconv.Quote(m.Name), name)
		}
	}
	if t.Elem == nil {
		decode.Line("o.Closed()")
	} else {
		name := ident.NewScope(slices.Collect(maps.Values(names))...).Unique("Extra")
		e.Line("// %s holds the members that the schema does not name.", name)
		e.Line("%s map[string]%s", name, e.expr(t.Elem))
		decode.Line("o.Rest(&n.%s)", name)
		encode.Line("o.Rest(v.%s)", name)
	}
	e.Line("}")
	e.Line("\n// UnmarshalJSON decodes strictly.")
	e.Line("func (v *%s) UnmarshalJSON(data []byte) error {\nvar n %s\no := typed.DecodeObject(data)", t.Name, t.Name)
	e.Line("%sif err := o.Err(); err != nil {\nreturn err\n}\n*v = n\nreturn nil\n}", decode.String())
	e.Line("\n// MarshalJSON writes an object of the schema.")
	e.Line("func (v %s) MarshalJSON() ([]byte, error) {\no := typed.EncodeObject()\n%sreturn o.Bytes()\n}", t.Name, encode.String())
	for _, m := range t.Members {
		e.inside(m.Type)
	}
	if t.Elem != nil {
		e.inside(t.Elem)
	}
}

// constant returns the constant that a member is always, such as the tag of a part of a
// union, or "". The codec fills it in where the field is left empty.
func (e *emitter) constant(m model.Member) string {
	t := m.Type.Flatten()
	if !m.Required || t.Kind != model.Enum || len(t.Values) != 1 {
		return ""
	}
	return e.consts[constKey(t, t.Values[0])]
}

// field is the type of a struct's field, and the codec method for it. An
// absent member is nil; one that can be null as well is an Optional.
func (e *emitter) field(m model.Member) (text, method string) {
	rest, nullable := m.Type.Nullable()
	text = e.expr(m.Type)
	if m.Required {
		if !nullable && rest.Kind == model.Ref && rest.Named.Recursive && !e.isSlice(rest) {
			return "*" + text, "Boxed"
		}
		return text, "Required"
	}
	switch {
	case nullable:
		return "typed.Optional[" + text + "]", "Optional"
	case e.isSlice(rest):
		return text, "Optional"
	}
	return "*" + text, "Optional"
}

// isSlice reports whether nil of the Go type of t is none of its values.
func (e *emitter) isSlice(t *model.Type) bool {
	for t.Kind == model.Ref || t.Kind == model.Intersection {
		t, _ = t.Resolve().Nullable()
	}
	return t.Kind == model.Array || t.Kind == model.Any || t.IsMap()
}

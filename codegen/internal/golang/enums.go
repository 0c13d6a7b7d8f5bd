package golang

import (
	"strconv"
	"strings"

	"github.com/agentd/agentd/codegen/internal/ident"
	"github.com/agentd/agentd/codegen/internal/model"
)

// enum declares a type with a constant for each value. It is distinct from its
// base type, so that only its constants are used without a conversion.
func (e *emitter) enum(t *model.Type, doc string) {
	base := map[model.Kind]string{model.String: "string", model.Integer: "int64", model.Number: "float64", model.Boolean: "bool"}[t.Base]
	e.doc(t.Name, doc, "is one of the constants below.")
	e.Line("type %s %s\n", t.Name, base)
	e.Line("// The values of %s.\nconst (", t.Name)
	var names []string
	for _, v := range t.Values {
		text := v
		if t.Base == model.String {
			text = strconv.Quote(v)
		}
		name := e.consts[constKey(t, v)]
		names = append(names, name)
		e.Line("%s %s = %s", name, t.Name, text)
	}
	e.Line(")")
	e.Line("\n// UnmarshalJSON accepts the values of the enum and no other.")
	e.Line("func (v *%s) UnmarshalJSON(data []byte) error {\nreturn typed.DecodeEnum(data, v, %s)\n}", t.Name, strings.Join(names, ", "))
}

// union declares a struct with a pointer for each part.
func (e *emitter) union(t *model.Type, doc string) {
	e.doc(t.Name, doc, "is a union: exactly one field is set.")
	e.Line("type %s struct {", t.Name)
	// Labels may repeat among the parts; the scope numbers them.
	scope := ident.NewScope(methods()...)
	var fields []string
	for i, label := range t.Labels() {
		m := t.Of[i]
		if m.Kind == model.Ref {
			// A definition's name starts with that of its payload, which the
			// union's own name already has.
			label = strings.TrimPrefix(label, e.prefix(label))
		}
		name := scope.Unique(ident.StartWithLetter(label, "X"))
		fields = append(fields, name)
		e.Line("%s *%s", name, e.plain(m.Flatten()))
	}
	e.Line("}")
	e.Line("\n// UnmarshalJSON sets the first field that the value fits.")
	e.Line("func (v *%s) UnmarshalJSON(data []byte) error {\nvar n %s", t.Name, t.Name)
	e.Line("if err := typed.DecodeUnion(data, &n.%s); err != nil {\nreturn err\n}\n*v = n\nreturn nil\n}", strings.Join(fields, ", &n."))
	e.Line("\n// MarshalJSON writes the field that is set.")
	e.Line("func (v %s) MarshalJSON() ([]byte, error) {\nreturn typed.EncodeUnion(v.%s)\n}", t.Name, strings.Join(fields, ", v."))
	for _, m := range t.Of {
		e.inside(m)
	}
}

// prefix returns the name of the payload whose definition a name belongs to. A
// field of a union leaves it out.
func (e *emitter) prefix(name string) string {
	longest := ""
	for _, c := range e.api.Capabilities {
		for _, n := range []*model.Named{c.Request, c.Response} {
			if n.Name != name && strings.HasPrefix(name, n.Name) && len(n.Name) > len(longest) {
				longest = n.Name
			}
		}
	}
	return longest
}

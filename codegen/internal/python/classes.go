package python

import (
	"slices"
	"strings"

	"github.com/agentd/agentd/codegen/internal/model"
	"github.com/agentd/agentd/codegen/internal/source"
)

// inside declares the classes that t needs.
func (e *emitter) inside(t *model.Type, doc string) {
	t = t.Flatten()
	class := t.Kind == model.Object && isTypedDict(t)
	if t.Kind == model.Ref || class && e.done[t.Name] {
		return
	}
	if class {
		// Before the parts: a recursive type reaches itself again.
		e.done[t.Name] = true
	}
	e.parts(t)
	if class {
		e.class(t, t.Name, doc)
	}
}

// parts declares the classes inside t.
func (e *emitter) parts(t *model.Type) {
	for _, m := range t.Members {
		e.inside(m.Type, "")
	}
	for _, m := range t.Of {
		e.inside(m, "")
	}
	if t.Elem != nil {
		e.inside(t.Elem, "")
	}
}

// class writes a TypedDict, as a class if the names of all members allow it and
// as a call otherwise.
func (e *emitter) class(t *model.Type, name, doc string) {
	e.Line("\n")
	named := slices.DeleteFunc(slices.Clone(t.Members), func(m model.Member) bool { return !isNamed(m) })
	unnamed := ""
	if len(named) < len(t.Members) {
		unnamed = "A member with an empty name as well, for which there is no place here."
	}
	if e.needsCall(named) {
		e.Comment("#: ", doc+"\n"+unnamed)
		e.Line("%s = %s(%s, {", name, e.use("TypedDict"), e.quote(name))
		for _, m := range named {
			e.Comment("    #: ", m.Doc())
			e.Line("    %s: %s,", e.quote(m.Name), e.member(m, true))
		}
		e.Line("})")
		return
	}
	e.Line("class %s(%s):", name, e.use("TypedDict"))
	if lines := source.CommentLines(doc + "\n" + unnamed); lines != nil {
		e.Line("    %s\n", e.quote(strings.Join(lines, "\n")))
	} else if len(named) == 0 {
		e.Line("    pass")
	}
	for _, m := range named {
		e.Comment("    #: ", m.Doc())
		e.Line("    %s: %s", m.Name, e.member(m, false))
	}
}

// needsCall reports whether a member's name cannot appear in a class body: it is
// not an identifier, would be mangled as private, or would hide a type that
// members further down use. The last is a guess on the safe side: every payload's
// name holds Request or Response.
func (e *emitter) needsCall(members []model.Member) bool {
	return slices.ContainsFunc(members, func(m model.Member) bool {
		return !e.plain.MatchString(m.Name) || strings.HasPrefix(m.Name, "__") ||
			slices.Contains(keywords(), m.Name) || slices.Contains(typeWords(), m.Name) ||
			strings.Contains(m.Name, "Request") || strings.Contains(m.Name, "Response")
	})
}

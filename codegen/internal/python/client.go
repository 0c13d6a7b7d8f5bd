package python

import (
	"slices"
	"strings"

	"github.com/agentd/agentd/codegen/internal/ident"
	"github.com/agentd/agentd/codegen/internal/model"
	"github.com/agentd/agentd/codegen/internal/source"
)

// methodNames returns the names of methods by those of their capabilities.
func methodNames(api *model.API) map[string]string {
	var claims []ident.Claim
	for _, c := range api.Capabilities {
		method := strings.ToLower(strings.Join(ident.CamelWords(c.Name), "_"))
		method = ident.StartWithLetter(method, "call_")
		if slices.Contains(keywords(), method) || slices.Contains(typeWords(), method) {
			// The trailing underscore that PEP 8 proposes for such names.
			method += "_"
		}
		claims = append(claims, ident.Claim{Key: c.Name, Name: method})
	}
	return ident.Distinct(claims)
}

// handlers writes the type of what serve takes: a handler for each capability.
func (e *emitter) handlers(w *source.Writer, api *model.API) {
	var takers []string
	for _, name := range api.ObjectTakers() {
		takers = append(takers, e.quote(name)+",")
	}
	w.Line("\n\n#: The capabilities that take an object, and no null.")
	w.Line("_TAKES_OBJECT: frozenset[str] = frozenset((%s))", strings.Join(takers, " "))
	w.Line("\n#: The code behind capabilities.\nHandlers = %s(\n    \"Handlers\",\n    {", e.use("TypedDict"))
	for _, c := range api.Capabilities {
		payload := e.expr(&model.Type{Kind: model.Ref, Named: c.Request}, true)
		response := e.expr(&model.Type{Kind: model.Ref, Named: c.Response}, true)
		w.Line("        %s: %s[[%s, \"Call\"], %s[%s, %s[%s]]],", e.quote(c.Name), e.use("Callable"), payload, e.use("Union"), response, e.use("Awaitable"), response)
	}
	w.Line("    },\n    total=False,\n)")
}

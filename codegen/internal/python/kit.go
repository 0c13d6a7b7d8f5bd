package python

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agentd/agentd/codegen/internal/ident"
	"github.com/agentd/agentd/codegen/internal/model"
	"github.com/agentd/agentd/codegen/internal/source"
)

// Emit writes the module of api, which makes and serves its calls by way of the kit, the
// package agentd.
func Emit(api *model.API) []byte {
	e := newEmitter(api)
	var rest source.Writer
	rest.WriteString(e.String())
	e.kitClient(&rest, api, "Client", "blocks until the outcome is there", false)
	e.kitClient(&rest, api, "AsyncClient", "for asyncio; a task that is cancelled cancels its call at the callee", true)
	e.handlers(&rest, api)
	rest.WriteString(kitServe)
	e.use("Any")
	e.use("NoReturn")
	e.use("cast")

	var w source.Writer
	header(&w, api)
	w.Line("import os")
	// Python 3.10 has neither of these. What reads no annotations does without; the
	// checkers know typing_extensions, whether it is installed or not.
	later := e.imports("Never", "NotRequired")
	if later != nil {
		e.use("TYPE_CHECKING")
	}
	w.Line("from typing import (\n    %s,\n)\n", strings.Join(e.imports(), ",\n    "))
	w.Line("import agentd")
	w.Line("from agentd import AsyncStream as _AsyncStream\nfrom agentd import Call as Call\nfrom agentd import Mode as _Mode\nfrom agentd import Result as Result")
	w.Line("from agentd import SkillError as SkillError\nfrom agentd import Stream as _Stream\nfrom agentd import unwrap as unwrap\n")
	if later != nil {
		w.Line("if TYPE_CHECKING:\n    from typing_extensions import %s", strings.Join(later, ", "))
		w.Line("else:\n    try:\n        from typing import %s\n    except ImportError:", strings.Join(later, ", "))
		older := map[string]string{"Never": "NoReturn as Never", "NotRequired": "Optional as NotRequired"}
		for i, name := range later {
			later[i] = older[name]
		}
		w.Line("        from typing import %s\n", strings.Join(later, ", "))
	}
	w.Line("ADDRESS = %s", e.quote(string(api.Agent)))
	w.WriteString(rest.String())
	return []byte(w.String())
}

// imports returns which of some names of typing are used, or without any names all others.
func (e *emitter) imports(only ...string) []string {
	var names []string
	for name := range e.uses {
		if later := name == "Never" || name == "NotRequired"; slices.Contains(only, name) || only == nil && !later {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// kitOptions are the options of calls: the name and the type of each.
func kitOptions(stream bool) (declared, passed string) {
	options := []struct{ name, typ string }{
		{"timeout_ms", "int"}, {"idle_timeout_ms", "int"}, {"mode", "_Mode"}, {"idempotency_key", "str"},
		{"tenant_id", "str"}, {"session_id", "str"}, {"traceparent", "str"},
	}
	var params, args strings.Builder
	for _, o := range options {
		if stream && o.name == "mode" {
			continue // who waits for no answer gets no progress
		}
		fmt.Fprintf(&params, "        %s: %s | None = None,\n", o.name, o.typ)
		fmt.Fprintf(&args, "            %s=%s,\n", o.name, o.name)
	}
	return params.String(), args.String()
}

// kitClient writes a client class, with two methods for each capability: one that returns
// the outcome, and one for the progress before it.
func (e *emitter) kitClient(w *source.Writer, api *model.API, class, how string, async bool) {
	def, wait, stream := "def", "", "_Stream"
	connect := "connect"
	if async {
		def, wait, stream, connect = "async def", "await ", "_AsyncStream", "aconnect"
	}
	w.Line("\n\nclass %s:\n    %s\n", class, e.quote(fmt.Sprintf("Calls the capabilities of %s; %s.", api.Agent, how)))
	w.Line("    def __init__(self, client: agentd.%s | str | os.PathLike[str] | None = None, *, token: str | None = None) -> None:", class)
	w.Line("        \"Calls by way of a client of the kit, or of one that agentd.%s makes.\"", connect)
	w.Line("        self._client = client if isinstance(client, agentd.%s) else agentd.%s(client, token=token)", class, connect)
	names := methodNames(api)
	streams := streamNames(api, names)
	for _, c := range api.Capabilities {
		// Refs, not the types themselves, so that signatures show the payloads'
		// names.
		payload := e.expr(&model.Type{Kind: model.Ref, Named: c.Request}, false)
		response := e.expr(&model.Type{Kind: model.Ref, Named: c.Response}, false)
		description := source.CommentLines(c.Doc)
		declared, passed := kitOptions(false)
		w.Line("\n    %s %s(\n        self,\n        payload: %s,\n        *,\n%s    ) -> Result[%s]:", def, names[c.Name], payload, declared, response)
		w.Line("        %s", e.quote(strings.Join(append(description, "Calls "+c.Name+"."), "\n")))
		w.Line("        result: Result[%s] = %sself._client.request(\n            ADDRESS,\n            %s,\n            payload,\n%s        )\n        return result",
			response, wait, e.quote(c.Name), passed)
		declared, passed = kitOptions(true)
		w.Line("\n    def %s(\n        self,\n        payload: %s,\n        *,\n%s    ) -> %s[%s]:", streams[c.Name], payload, declared, stream, response)
		w.Line("        %s", e.quote("Calls "+c.Name+", and iterates over the progress of it."))
		w.Line("        stream: %s[%s] = self._client.stream(\n            ADDRESS,\n            %s,\n            payload,\n%s        )\n        return stream",
			stream, response, e.quote(c.Name), passed)
	}
}

// streamNames returns the names of the methods that stream, by capability. A capability
// of such a name keeps its own.
func streamNames(api *model.API, methods map[string]string) map[string]string {
	var claims []ident.Claim
	var taken []string
	for _, c := range api.Capabilities {
		taken = append(taken, methods[c.Name])
		claims = append(claims, ident.Claim{Key: c.Name, Name: methods[c.Name] + "_stream"})
	}
	return ident.Distinct(claims, taken...)
}

// kitServe runs handlers.
const kitServe = `

def serve(handlers: Handlers, *, concurrency: int = 1) -> NoReturn:
    """Serves the capabilities that there are handlers for, as agentd asks: one call, or as a worker many. It exits.

    A worker is given up to concurrency calls at once.
    """
    agentd.serve(cast("dict[str, Any]", handlers), concurrency=concurrency, takes_object=_TAKES_OBJECT)
`

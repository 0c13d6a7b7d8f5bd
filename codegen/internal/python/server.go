package python

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agentd/agentd/codegen/internal/model"
	"github.com/agentd/agentd/codegen/internal/source"
)

// ServerPath returns the name of the file that Server is written to.
func ServerPath(id string) string { return strings.TrimSuffix(Path(id), ".py") + "_skill.py" }

// Server writes a skill beside the module of api, with functions that are to be written.
func Server(api *model.API) []byte {
	e := newEmitter(api)
	names := []string{"Call", "SkillError", "serve"}
	for _, c := range api.Capabilities {
		names = append(names, c.Request.Name, c.Response.Name)
	}
	slices.Sort(names)
	module := strings.TrimSuffix(Path(api.Agent.ID()), ".py")
	var w source.Writer
	w.Line("\"The skill of %s: the code behind its capabilities.\"\n", api.Agent)
	w.Line("from __future__ import annotations\n\nfrom %s import (\n    %s,\n)", module, strings.Join(names, ",\n    "))
	functions := methodNames(api)
	for name, function := range functions {
		if function == "serve" {
			functions[name] = "serve_" // the other one is imported
		}
	}
	for _, c := range api.Capabilities {
		w.Line("\n\ndef %s(payload: %s, call: Call) -> %s:", functions[c.Name], c.Request.Name, c.Response.Name)
		if lines := source.CommentLines(c.Doc); lines != nil {
			w.Line("    %s", e.quote(strings.Join(lines, "\n")))
		}
		w.Line("    # Write it here, and return the response. With async def, it may await.")
		w.Line("    raise SkillError(%s)", e.quote(c.Name+" is not written yet"))
	}
	w.Line("\n\nif __name__ == \"__main__\":\n    serve(\n        {")
	for _, c := range api.Capabilities {
		w.Line("            %s: %s,", e.quote(c.Name), functions[c.Name])
	}
	fmt.Fprint(&w, "        }\n    )\n")
	return []byte(w.String())
}

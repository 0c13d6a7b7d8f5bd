package typescript

import (
	"strings"

	"github.com/agentd/agentd/codegen/internal/model"
)

// ServerPath returns the name of the file that Server is written to.
func ServerPath(id string) string { return strings.TrimSuffix(Path(id), ".ts") + "_skill.ts" }

// Server writes a skill beside the module of api, with functions that are to be written.
func Server(api *model.API) []byte {
	e := emitter{}
	e.Line("// The skill of %s: the code behind its capabilities.", api.Agent)
	e.Line("import { serve, SkillError } from %s;\n", e.quote("./"+Path(api.Agent.ID())))
	e.Line("await serve({")
	for _, c := range api.Capabilities {
		e.Comment("  // ", c.Doc)
		e.Line("  %s: async (payload, call) => {", e.quote(c.Name))
		e.Line("    // Write it here, and return the response.")
		e.Line("    throw new SkillError(`${call.capability} is not written yet, and got ${typeof payload}`);\n  },")
	}
	e.Line("});")
	return []byte(e.String())
}

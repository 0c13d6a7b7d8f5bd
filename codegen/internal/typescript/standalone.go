package typescript

import (
	_ "embed"

	"github.com/agentd/agentd/codegen/internal/model"
)

// client is the part of a standalone module that is the same for all. It names no type of
// Node.js or the DOM, so that it compiles with neither.
//
//go:embed client.ts
var client string

// skill is the part for the code behind capabilities, the same for all too.
//
//go:embed skill.ts
var skill string

// Standalone writes the module of api for programs that do not have the kit.
func Standalone(api *model.API) []byte {
	e := newEmitter(api)
	e.types(api)
	e.Line("")
	e.WriteString(client)
	e.Line("\n/** The capabilities that take an object, and no null. */")
	e.Line("const takesObject: ReadonlySet<string> = new Set<string>(%s);\n", e.objectTakers(api))
	e.WriteString(skill)
	return []byte(e.String())
}

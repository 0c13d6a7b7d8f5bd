package golang

import (
	"go/format"
	"strings"

	"github.com/agentd/agentd/codegen/internal/model"
)

// ServerPath returns the file that Server is written to: a command below the package.
func ServerPath(id string) string { return packageName(id) + "/skill/main.go" }

// Server writes a skill on the package of api, with methods that are to be written. imports
// is the import path of the output folder.
func Server(api *model.API, imports string) []byte {
	pkg := packageName(api.Agent.ID())
	e := &emitter{api: api}
	e.Line("// Command skill is the code behind the capabilities of %s.\npackage main\n\nimport (\n\"context\"\n", api.Agent)
	e.Line("\"github.com/agentd/agentd/codegen/typed\"\n\"github.com/agentd/agentd/skill/sdk\"\n\n%q\n)\n", imports+"/"+pkg)
	e.Line("func main() {\nvar mux typed.Mux\n%s.RegisterServer(&mux, server{})\nsdk.Serve(&mux)\n}\n", pkg)
	e.Line("// A server serves the capabilities. Its methods may be called concurrently.\ntype server struct{}")
	for _, c := range api.Capabilities {
		qualified := func(n *model.Named) string {
			name := e.expr(&model.Type{Kind: model.Ref, Named: n})
			return strings.Repeat("*", strings.Count(name, "*")) + pkg + "." + strings.TrimLeft(name, "*")
		}
		e.doc(c.Ident, c.Doc, "serves "+c.Name+".")
		e.Line("func (server) %s(ctx context.Context, request %s) (response %s, err error) {", c.Ident, qualified(c.Request), qualified(c.Response))
		e.Line("// Write it here. What sdk.Fail returns is for the caller; any other error stays in the log.")
		e.Line("return response, sdk.Fail(%q)\n}", c.Name+" is not written yet")
	}
	formatted, err := format.Source([]byte(e.String()))
	if err != nil {
		return []byte(e.String()) // a bug of this package: the compiler's error shows where
	}
	return formatted
}

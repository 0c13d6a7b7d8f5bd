package mcphttp_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/internal/npmtest"
	"github.com/agentd/agentd/mcpbridge/mcphttp"
)

// The suite of the protocol's project, against a server of the library behind the handler:
// everything that either revision requires, and all else but what testdata/conformance.txt lists
// with the reason. A scenario that is listed and passes does not belong there any longer.
func TestConformance(t *testing.T) {
	for _, revision := range []string{legacy, modern} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			cmd := npmtest.Conformance(t, "server", "--requirements", revision)
			server := everything()
			e := serve(t, func(c *mcphttp.Config) {
				c.Server = func(string) (*mcp.Server, error) { return server, nil }
				c.Auth = mcphttp.Auth{Anonymous: "suite"} // it has no option for a token
			})
			cmd.Args = append(cmd.Args, "--url", e.URL+"/mcp")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v:\n%s", err, out)
			}
			passed, failed := npmtest.Scenarios(string(out))
			if len(passed) < 20 {
				t.Errorf("only %d scenarios passed:\n%s", len(passed), out)
			}
			if want := npmtest.Listed(t, "testdata/conformance.txt", revision); !slices.Equal(failed, want) {
				t.Errorf("failed: %q\nlisted: %q\n%s", failed, want, out)
			}
		})
	}
}

// The Inspector, which is what people look at servers with, lists and calls in both eras, with a
// token.
func TestInspector(t *testing.T) {
	e := serve(t, nil)
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			inspect := func(args ...string) string {
				cmd := npmtest.Program(t, "@modelcontextprotocol/inspector/clients/launcher/build/index.js", append([]string{
					"--cli", e.URL + "/mcp", "--protocol-era", era, "--header", "Authorization: Bearer " + deskToken, "--format", "json", "-q",
				}, args...)...)
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Errorf("%v: %v\n%s", args, err, out)
				}
				return string(out)
			}
			if out := inspect("--method", "tools/list"); !strings.Contains(out, `"whoami"`) {
				t.Error(out)
			}
			if out := inspect("--method", "tools/call", "--tool-name", "echo", "--tool-args-json", `{"n":9007199254740993}`); !strings.Contains(out, "900719925474099") {
				t.Error(out)
			}
		})
	}
}

package mcphttp_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/mcpbridge/mcphttp"
)

// nodeProgram returns a command of the programs that .ci/run installs for tests, with the
// Node.js that they need.
func nodeProgram(t *testing.T, script string, args ...string) *exec.Cmd {
	t.Helper()
	modules := os.Getenv("AGENTD_NODE_MODULES")
	if modules == "" {
		t.Skip("AGENTD_NODE_MODULES does not say where the packages of npm are: .ci/run sets it")
	}
	node, program := filepath.Join(modules, "node", "bin", "node"), filepath.Join(modules, script)
	for _, file := range []string{node, program} {
		if _, err := os.Stat(file); err != nil {
			t.Skip("npm has not installed it: ", err)
		}
	}
	cmd := exec.CommandContext(t.Context(), node, append([]string{program}, args...)...)
	cmd.Dir = t.TempDir() // some write reports, and some settings
	cmd.Env = append(os.Environ(), "HOME="+cmd.Dir)
	return cmd
}

// The suite of the protocol's project, against a server of the library behind the handler:
// everything that either revision requires, and all else but what testdata/conformance.txt lists
// with the reason. A scenario that is listed and passes does not belong there any longer.
func TestConformance(t *testing.T) {
	for _, revision := range []string{legacy, modern} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			cmd := nodeProgram(t, "@modelcontextprotocol/conformance/dist/index.js", "server", "--requirements", revision, "-o", "out")
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
			passed, failed := scenarios(string(out))
			if len(passed) < 20 {
				t.Errorf("only %d scenarios passed:\n%s", len(passed), out)
			}
			if want := listed(t, revision); !slices.Equal(failed, want) {
				t.Errorf("failed: %q\nlisted: %q\n%s", failed, want, out)
			}
		})
	}
}

// scenarios returns the scenarios of the suite's report.
func scenarios(report string) (passed, failed []string) {
	for _, m := range regexp.MustCompile(`(?m)^\s*([✓✗]) ([a-z0-9-]+): \d+ passed, \d+ failed`).FindAllStringSubmatch(report, -1) {
		if m[1] == "✓" {
			passed = append(passed, m[2])
		} else {
			failed = append(failed, m[2])
		}
	}
	slices.Sort(failed)
	return passed, slices.Compact(failed)
}

// listed returns the scenarios that do not apply.
func listed(t *testing.T, revision string) (names []string) {
	t.Helper()
	data, err := os.ReadFile("testdata/conformance.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) > 2 && fields[0] == revision {
			names = append(names, strings.TrimSuffix(fields[1], ":"))
		}
	}
	slices.Sort(names)
	return names
}

// The Inspector, which is what people look at servers with, lists and calls in both eras, with a
// token.
func TestInspector(t *testing.T) {
	e := serve(t, nil)
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			inspect := func(args ...string) string {
				cmd := nodeProgram(t, "@modelcontextprotocol/inspector/clients/launcher/build/index.js", append([]string{
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

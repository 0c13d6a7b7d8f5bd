package permissions

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/cli/clitest"
	"github.com/agentd/agentd/internal/output"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	for _, test := range []struct {
		from, to, capability string
		code                 int
		want                 []string // in the table
	}{
		{"desk", "clerk", "file", 0, []string{"✓ allowed  agent://desk → agent://clerk/file", "allow RequestAgent:agent://clerk/*", "agent.yaml:3"}},
		{"agent://desk", "agent://clerk", "file", 0, []string{"✓ allowed"}},
		{"desk", "clerk", "fly", cli.ExitFinding, []string{"✗ denied", "declares no such capability"}},
		{"desk", "elsewhere", "x", cli.ExitFinding, []string{"✗ denied", "! agent://elsewhere is no member of the fleet"}},
		{"desk", "clerk", "a\x1b[2J", cli.ExitFinding, []string{`agent://clerk/a\x1b[2J`}},
		{"nobody", "clerk", "file", cli.ExitFailed, nil},
		{"../desk", "clerk", "file", cli.ExitUsage, nil},
		{"desk", "http://clerk", "file", cli.ExitUsage, nil},
	} {
		env.Reset()
		err := Explain(&env.Env, test.from, Client{}, test.to, test.capability)
		if clitest.Code(err) != test.code || strings.Contains(env.Out.String(), "\x1b") {
			t.Errorf("%s → %s/%s: %v, %s", test.from, test.to, test.capability, err, env.Out)
		}
		for _, want := range test.want {
			if !strings.Contains(env.Out.String(), want) {
				t.Errorf("%s → %s/%s: no %q in %s", test.from, test.to, test.capability, want, env.Out)
			}
		}
	}
}

// JSON carries the same verdict as the exit status.
func TestExplainJSON(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	env.Format = output.JSONL
	for capability, allowed := range map[string]bool{"file": true, "fly": false} {
		env.Reset()
		err := Explain(&env.Env, "desk", Client{}, "clerk", capability)
		var got struct{ Allowed bool }
		if jerr := json.Unmarshal([]byte(env.Out.String()), &got); jerr != nil || got.Allowed != allowed || (err == nil) != allowed {
			t.Errorf("%s: %v, %v, %s", capability, err, jerr, env.Out)
		}
	}
}

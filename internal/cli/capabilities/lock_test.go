package capabilities

import (
	"encoding/json"
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/cli/clitest"
)

// breakClerk makes a new property required, which old callers do not send.
func breakClerk(t *testing.T, env *clitest.Env) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(env.Dir, "clerk", "capabilities.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	env.Write(t, "clerk/capabilities.yaml", strings.Replace(string(text), "required: [form]", "required: [form, copies]", 1))
}

func TestLockAndCheck(t *testing.T) {
	t.Parallel()
	env := twoClerks(t)
	if err := Check(&env.Env, "", "text", false); clitest.Code(err) != cli.ExitFailed || !strings.Contains(err.Error(), LockName) {
		t.Errorf("no lock file: %v", err)
	}
	if err := Lock(&env.Env, ""); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(env.Dir, LockName)
	if want := "✓ locked 2 agents in " + path + "\n"; env.Err.String() != want {
		t.Errorf("%q, want %q", env.Err, want)
	}
	first, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := Check(&env.Env, "", "text", false); err != nil {
		t.Errorf("nothing has changed: %v, %s", err, env.Out)
	}

	// The order of the members does not matter to the lock file.
	env.Write(t, "fleet.yaml", "version: 1\nname: office\nagents: [{id: copier, path: ./copier}, {id: desk, path: ./desk}, {id: clerk, path: ./clerk}]\nenvironments: {default: {peersRef: ./rpc-peers.yaml}}\n")
	other := filepath.Join(t.TempDir(), "other.json")
	if err := Lock(&env.Env, other); err != nil {
		t.Fatal(err)
	}
	if second, err := os.ReadFile(other); err != nil || string(first) != string(second) {
		t.Errorf("first %s\nthen %s, %v", first, second, err)
	}

	breakClerk(t, env)
	env.Reset()
	if err := Check(&env.Env, "", "text", false); clitest.Code(err) != cli.ExitFinding || !strings.Contains(env.Out.String(), "copies") {
		t.Errorf("%v: %s", err, env.Out)
	}
	if err := Lock(&env.Env, filepath.Join(env.Dir, "no", "such", "folder", "f")); err == nil {
		t.Error("wrote into a folder that does not exist")
	}
	leftover, err := filepath.Glob(filepath.Join(env.Dir, LockName+".*"))
	if err != nil || len(leftover) > 0 {
		t.Errorf("temporary files left: %v, %v", leftover, err)
	}
}

func TestDiffFormats(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	now := filepath.Join(env.Dir, "clerk", "capabilities.yaml")
	text, err := os.ReadFile(now)
	if err != nil {
		t.Fatal(err)
	}
	old := env.Write(t, "old.yaml", string(text))
	breakClerk(t, env)
	isJSON := func(s string) bool { return json.Valid([]byte(s)) }
	for format, ok := range map[string]func(string) bool{
		"text": func(s string) bool { return strings.Contains(s, "copies") }, "table": func(s string) bool { return strings.Contains(s, "copies") },
		"json": isJSON, "jsonl": func(s string) bool { return isJSON(s) && strings.Count(s, "\n") == 1 },
		"sarif": func(s string) bool { return isJSON(s) && strings.Contains(s, now) },
		"junit": func(s string) bool { return xml.Unmarshal([]byte(s), new(struct{})) == nil },
	} {
		env.Reset()
		err := Diff(t.Context(), &env.Env, DiffRequest{Files: []string{old, now}, Direction: "both", Format: format})
		if clitest.Code(err) != cli.ExitFinding || !ok(env.Out.String()) {
			t.Errorf("%s: %v\n%s", format, err, env.Out)
		}
	}
	// The other way round the change only loosens what callers may send.
	env.Reset()
	if err := Diff(t.Context(), &env.Env, DiffRequest{Files: []string{now, old}, Direction: "request", Format: "text"}); err != nil {
		t.Errorf("%v\n%s", err, env.Out)
	}
}

func TestDiffErrors(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	file := filepath.Join(env.Dir, "clerk", "capabilities.yaml")
	for _, test := range []struct {
		request DiffRequest
		code    int
		want    string
	}{
		{DiffRequest{Files: []string{file}}, cli.ExitUsage, "two files, or one and --against"},
		{DiffRequest{Files: []string{file, file}, Against: "git:main"}, cli.ExitUsage, `not "git:main" with 2`},
		{DiffRequest{Files: []string{file}, Against: "main"}, cli.ExitUsage, "--against: must be git:<ref>"},
		{DiffRequest{Files: []string{file}, Against: "git:"}, cli.ExitUsage, "--against: must be git:<ref>"},
		{DiffRequest{Files: []string{file}, Against: "git:--output=x"}, cli.ExitUsage, "is no ref"},
		{DiffRequest{Files: []string{file, file}, Direction: "up"}, cli.ExitUsage, "--direction: must be request, response or both"},
		{DiffRequest{Files: []string{file, file}, Direction: "both", Format: "yaml"}, cli.ExitUsage, "--output: must be text, json, sarif or junit"},
		{DiffRequest{Files: []string{"a.yaml", "b.yaml"}}, cli.ExitFailed, "a.yaml"},
		{DiffRequest{Files: []string{"a.yaml", "b.yaml"}}, cli.ExitFailed, "b.yaml"}, // both are named
		{DiffRequest{Files: []string{file}, Against: "git:main"}, cli.ExitFailed, "git show main:"},
	} {
		err := Diff(t.Context(), &env.Env, test.request)
		if clitest.Code(err) != test.code || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v, want status %d and %q", test.request, err, test.code, test.want)
		}
	}
}

// The old file is taken from the repository that the new one is in.
func TestDiffAgainstGit(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"}, {"add", "clerk"},
		{"-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "-m", "old"},
	} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = env.Dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	r := DiffRequest{Files: []string{filepath.Join(env.Dir, "clerk", "capabilities.yaml")}, Against: "git:main", Direction: "both", Format: "text"}
	if err := Diff(t.Context(), &env.Env, r); err != nil {
		t.Errorf("nothing has changed: %v", err)
	}
	breakClerk(t, env)
	if err := Diff(t.Context(), &env.Env, r); clitest.Code(err) != cli.ExitFinding {
		t.Errorf("%v: %s", err, env.Out)
	}
}

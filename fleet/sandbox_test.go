package fleet_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/agentd/agentd/fleet"
)

// sandboxed is a fleet whose reviewer has a skill with a sandbox.
func sandboxed(sandbox string) files {
	return files{"agents/pr-reviewer/agent.yaml": "name: pr-reviewer\nskills:\n  review-pr:\n    process: {command: [x], dir: agents}\n    sandbox: " + sandbox + "\n"}
}

func TestSandbox(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	dir := starter().with(sandboxed("{read: [data, ../shared, /srv/models, ~/models, '~'], write: [out], connect: [5432, 6379], listen: [8080], memoryBytes: 1073741824, fileBytes: 1, openFiles: 64, cpuSeconds: 60}")).root(t)
	f, err := fleet.Load(dir, fleet.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m, _ := f.Member("pr-reviewer")
	s, _ := m.Agent.Skill("review-pr")
	got := *s.Sandbox
	var read []string
	for _, p := range got.Read {
		if p.Position.Line != 5 {
			t.Errorf("%s stands on line %d", p.Path, p.Position.Line)
		}
		read = append(read, p.Path)
	}
	want := []string{filepath.Join(dir, "agents/data"), filepath.Join(dir, "shared"), "/srv/models", filepath.Join(home, "models"), home}
	if !reflect.DeepEqual(read, want) || len(got.Write) != 1 || got.Write[0].Path != filepath.Join(dir, "agents/out") {
		t.Errorf("read %q, write %+v", read, got.Write)
	}
	if !reflect.DeepEqual(got.Connect, []int{5432, 6379}) || !reflect.DeepEqual(got.Listen, []int{8080}) ||
		got.MemoryBytes != 1<<30 || got.FileBytes != 1 || got.OpenFiles != 64 || got.CPUSeconds != 60 || got.Off {
		t.Errorf("got %+v", got)
	}
	for user, want := range map[string]string{"agents": "agents", "65534": "65534", "'65534'": "65534"} {
		if f, err = fleet.Load(starter().with(sandboxed("{user: "+user+"}")).root(t), fleet.LoadOptions{}); err != nil {
			t.Fatal(err)
		}
		m, _ = f.Member("pr-reviewer")
		if s, _ := m.Agent.Skill("review-pr"); s.Sandbox.User == nil || s.Sandbox.User.Name != want || s.Sandbox.User.Position.Line != 5 {
			t.Errorf("user %s: %+v", user, s.Sandbox.User)
		}
	}
	f, err = fleet.Load(starter().with(sandboxed("off")).root(t), fleet.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m, _ = f.Member("pr-reviewer")
	if s, _ := m.Agent.Skill("review-pr"); s.Sandbox == nil || !s.Sandbox.Off {
		t.Errorf("got %+v", s.Sandbox)
	}
}

// A grant that is too wide, or that the kernel could not hold a skill to, is refused where
// it stands.
func TestSandboxFaults(t *testing.T) {
	for sandbox, want := range map[string]string{
		"{read: [/]}":                     "/skills/review-pr/sandbox/read/0: the path is everything that there is",
		"{write: [//]}":                   "/skills/review-pr/sandbox/write/0: the path is everything that there is",
		"{write: [.]}":                    `/skills/review-pr/sandbox/write/0: the skill "review-pr" could change `,
		"{write: [..]}":                   "and with it what agentd does (name a folder for its data alone)",
		"{write: [concierge]}":            "agents/concierge/agent.yaml",
		"{write: [link]}":                 "and with it what agentd does",
		"{write: [pr-reviewer/data]}":     "",
		"{write: [concierge/agent.yaml]}": "agents/concierge/agent.yaml",
		"{connect: ['db.example:5432']}":  "a port is a number: the kernel holds a skill to ports, whatever the host (write 5432)",
		"{connect: [0]}":                  "/skills/review-pr/sandbox/connect/0",
		"{connect: [70000]}":              "/skills/review-pr/sandbox/connect/0",
		"{memoryBytes: 10}":               "/skills/review-pr/sandbox/memoryBytes",
		"{raed: [x]}":                     `did you mean "read"?`,
		"on":                              "/skills/review-pr/sandbox",
		"{user: agents, connect: [5432]}": "",
		"{user: 65534}":                   "",
		"{user: root}":                    "/skills/review-pr/sandbox/user: root may do everything",
		"{user: 0}":                       "/skills/review-pr/sandbox/user: root may do everything",
		"{user: ''}":                      "/skills/review-pr/sandbox/user: the string must not be empty",
		"{user: 4294967295}":              "/skills/review-pr/sandbox/user",
		"{user: 1.5}":                     "/skills/review-pr/sandbox/user",
		"{read: ['a\\0b']}":               "",
	} {
		dir := starter().with(sandboxed(sandbox)).root(t)
		if err := os.Symlink(dir, filepath.Join(dir, "agents", "link")); err != nil {
			t.Fatal(err)
		}
		_, err := fleet.Load(dir, fleet.LoadOptions{})
		var invalid *fleet.LoadError
		if want == "" && err != nil || want != "" && (!errors.As(err, &invalid) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "agent.yaml:5:")) {
			t.Errorf("%s: %v", sandbox, err)
		}
	}
}

// No skill may change what a skill runs: later calls would do its work.
func TestSandboxKeepsPrograms(t *testing.T) {
	for _, test := range []struct{ command, write, want string }{
		{"[python3, -u, code/main.py]", "code", `the skill "review-pr" could change agents/code/main.py, which the skill "review-pr" runs`},
		{"[./code/run]", "code/run", "agents/code/run"},
		{"[go, run, -race, ./code]", "code", "agents/code"},
		{"[go, run, code/main.go]", "code", "agents/code/main.go"},
		{"[go, run, ./code, data]", "code/data", ""},
		{"[python3, code/main.py, data]", "data", ""},
		{"[git, log]", "code", ""},
	} {
		dir := starter().with(files{"agents/pr-reviewer/agent.yaml": "name: pr-reviewer\nskills:\n  review-pr:\n    process: {command: " + test.command +
			", dir: agents}\n    sandbox: {write: [" + test.write + "]}\n"}).root(t)
		_, err := fleet.Load(dir, fleet.LoadOptions{})
		if (err == nil) != (test.want == "") || err != nil && (!strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "agent.yaml:5:")) {
			t.Errorf("%s, write %s: %v", test.command, test.write, err)
		}
	}
}

package scaffold

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/cli/clitest"
	"github.com/agentd/agentd/internal/output"
)

// What `agentd init` writes runs, is tested and is checked by compilers in the scripts of
// cmd/agentd. Here are the files themselves.

// written returns the files below a folder, and the text of each.
func written(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		text := "a link"
		if entry.Type().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text = string(data)
		}
		all[filepath.ToSlash(name)] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Every pair of languages makes a fleet that loads, with all that its agents need, and explains
// itself in comments of two lines at most.
func TestEveryPairOfLanguages(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, "")
	for _, one := range languages() {
		for _, other := range languages() {
			dir := filepath.Join(env.Dir, one.name+"-"+other.name)
			if err := Init(t.Context(), &env.Env, dir, []string{one.name, other.name}); err != nil {
				t.Fatal(err)
			}
			f, err := fleet.Load(dir, cli.FleetOptions(fleet.LoadOptions{}))
			if err != nil {
				t.Fatal(err)
			}
			if f.Name != one.name+"-"+other.name || len(f.Members) != 2 {
				t.Errorf("%s: %v", f.Name, f.Members)
			}
			for name, text := range written(t, dir) {
				if strings.HasPrefix(name, ".agentd-init-") || strings.Contains(name, "_test.go") && strings.HasPrefix(name, "kits/") {
					t.Errorf("%s was left", name)
				}
				if strings.HasPrefix(name, "kits/") || strings.Contains(name, "/generated/") {
					continue
				}
				if run := longestComment(text); run > 2 {
					t.Errorf("%s: a comment of %d lines", name, run)
				}
				if strings.Contains(text, "<<") || strings.Contains(text, ">>") {
					t.Errorf("%s: a place that was not filled in: %s", name, text)
				}
			}
		}
	}
}

// The kit for Go has all of this module that it imports: kits.go lists it.
func TestKitForGoIsWhole(t *testing.T) {
	t.Parallel()
	tree := newTree()
	tree.infrastructure(&agent{lang: language{name: "go"}})
	if tree.err != nil {
		t.Fatal(tree.err)
	}
	const module, kit = "github.com/agentd/agentd/", "kits/go/"
	folders := map[string]bool{}
	for name := range tree.files {
		folders[path.Dir(name)] = true
	}
	for name, text := range tree.files {
		if path.Ext(name) != ".go" {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range file.Imports {
			if ours, is := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module); is && !folders[kit+ours] {
				t.Errorf("%s imports %s, which is not in the kit: add it to kits.go and infrastructure", name, ours)
			}
		}
	}
}

// longestComment counts the lines of the longest comment.
func longestComment(text string) (most int) {
	run := 0
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "# ") || strings.HasPrefix(line, "//") {
			run++
		} else {
			run = 0
		}
		most = max(most, run)
	}
	return most
}

// A file that is there keeps init from writing any, and stays as it is.
func TestNothingIsOverwritten(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, "-- new/README.md --\nmine\n-- new/agents/greeter/skill.sh --\nmine\n-- new/other.txt --\nmine\n")
	before := written(t, env.Dir)
	err := Init(t.Context(), &env.Env, filepath.Join(env.Dir, "new"), []string{"bash"})
	want := "nothing was written: these files are there already:\n  README.md\n  agents/greeter/skill.sh"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if after := written(t, env.Dir); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("%v, before: %v", after, before)
	}
	// Files that init does not make do not keep it from its work, and stay.
	if err := os.RemoveAll(filepath.Join(env.Dir, "new", "agents")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(env.Dir, "new", "README.md")); err != nil {
		t.Fatal(err)
	}
	if err := Init(t.Context(), &env.Env, filepath.Join(env.Dir, "new"), []string{"bash"}); err != nil {
		t.Fatal(err)
	}
	if got := written(t, filepath.Join(env.Dir, "new")); got["other.txt"] != "mine\n" || got["fleet.yaml"] == "" {
		t.Errorf("%v", got)
	}
	// A folder that cannot be made leaves nothing.
	if err := Init(t.Context(), &env.Env, filepath.Join(env.Dir, "new", "other.txt", "fleet"), []string{"bash"}); err == nil {
		t.Error("a file is no folder")
	}
}

// An agent joins a fleet in the style of its files, which keep what they say. One that cannot
// leaves them as they were.
func TestAgentsAreAdded(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, `
-- fleet.yaml --
# Ours.
version: 1
name: shop
agents: [{id: clerk, path: ./clerk, env: live}]
environments: {live: {peersRef: ./peers/live.yaml}}
-- peers/live.yaml --
version: 1
peers: # who is where
  - agent: agent://clerk
    transports: [{kind: memory, topics: {requests: agents.clerk.requests}}]
-- clerk/agent.yaml --
name: clerk
-- clerk/capabilities.yaml --
version: 1
agent: agent://clerk
transports: [{kind: memory, topics: {requests: agents.clerk.requests}}]
capabilities: [{name: price}]
`)
	for _, lang := range []string{"go", "go", "python"} {
		id := fmt.Sprintf("api.%s_%d", lang, len(written(t, env.Dir)))
		if err := AddAgent(t.Context(), &env.Env, id, lang); err != nil {
			t.Fatal(err)
		}
		f, err := env.LoadFleet(fleet.LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		m, ok := f.Member(id)
		if !ok || m.Env != "live" || m.PeersFile != filepath.Join(f.Root, "peers", "live.yaml") {
			t.Errorf("%+v", m)
		}
		if _, ok := m.Peer(m.Address); !ok {
			t.Errorf("%s is nobody's peer", id)
		}
	}
	before := written(t, env.Dir)
	if !strings.HasPrefix(before["fleet.yaml"], "# Ours.\n") || !strings.Contains(before["peers/live.yaml"], "# who is where") {
		t.Errorf("%s%s", before["fleet.yaml"], before["peers/live.yaml"])
	}
	for id, want := range map[string]string{"clerk": "already", "No": "lower-case", "docs": "nothing was written"} {
		env.Write(t, "agents/docs/agent.yaml", "mine\n")
		if err := AddAgent(t.Context(), &env.Env, id, "bash"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", id, err, want)
		}
	}
	// Files that no program can edit are no reason to lose any.
	env.Write(t, "peers/live.yaml", strings.Replace(before["peers/live.yaml"], "peers: #", "peers: &all #", 1)+"# <- the end\n...\n")
	before = written(t, env.Dir)
	err := AddAgent(t.Context(), &env.Env, "late", "bash")
	after := written(t, env.Dir)
	if err != nil && fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("%v; after it %v, before %v", err, after, before)
	}
}

// Folders that YAML would read as something else than text, or a shell as several words, are as
// good as any.
func TestFoldersOfAnyName(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, "")
	for folder, next := range map[string]string{
		"2026": "/2026 && agentd dev", "true": "/true && agentd dev", "1e3": "/1e3 && agentd dev",
		"Ada's fleet": `/Ada'\''s fleet' && agentd dev`,
	} {
		env.Reset()
		dir := filepath.Join(env.Dir, folder)
		if err := Init(t.Context(), &env.Env, dir, []string{"bash"}); err != nil {
			t.Fatal(err)
		}
		if f, err := fleet.Load(dir, cli.FleetOptions(fleet.LoadOptions{})); err != nil || f.Name != fleetName(folder) {
			t.Errorf("%s: %v", folder, err)
		}
		if got := env.Out.String(); !strings.Contains(got, next) {
			t.Errorf("%s: no %q in %s", folder, next, got)
		}
	}
	env.FleetDir = filepath.Join(env.Dir, "2026")
	if err := AddAgent(t.Context(), &env.Env, "007", "bash"); err != nil {
		t.Error(err)
	}
}

// An agent may be called what the code of its skill calls something else.
func TestAgentsOfAnyName(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, "")
	if err := Init(t.Context(), &env.Env, env.Dir, []string{"bash"}); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ id, lang, file, want string }{
		{"text", "go", "main_test.go", "contract.TextWordsRequest{Text: text}"},
		{"strings", "go", "main.go", `contract "` + fleetName(filepath.Base(env.Dir)) + `.local/agents/strings/generated/strings"`},
		{"count-words", "python", "skill.py", "from generated import count_words as contract\n"},
		{"words", "python", "skill.py", "from generated import words\n"},
	} {
		if err := AddAgent(t.Context(), &env.Env, test.id, test.lang); err != nil {
			t.Fatal(err)
		}
		if got := written(t, env.Dir)["agents/"+test.id+"/"+test.file]; !strings.Contains(got, test.want) {
			t.Errorf("%s: no %q in %s", test.id, test.want, got)
		}
	}
}

// Where the fleet's folder has a go.mod already, an agent in Go is part of that module.
func TestAgentInAModule(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, "-- go.mod --\nmodule example.com/shop\n"+clitest.Office)
	before := written(t, env.Dir)["go.mod"]
	if err := AddAgent(t.Context(), &env.Env, "till", "go"); err != nil {
		t.Fatal(err)
	}
	files := written(t, env.Dir)
	if files["go.mod"] != before || !strings.Contains(files["agents/till/main.go"], `"example.com/shop/agents/till/generated/till"`) {
		t.Errorf("%s%s", files["go.mod"], files["agents/till/main.go"])
	}
	if got := env.Out.String(); !strings.Contains(got, "go mod edit -require=github.com/agentd/agentd@v0.0.0") {
		t.Errorf("%s", got)
	}
}

func TestNamesAndErrors(t *testing.T) {
	t.Parallel()
	for folder, want := range map[string]string{"My Fleet_2": "my-fleet-2", "..": "fleet", "é": "fleet", strings.Repeat("a", 60): strings.Repeat("a", 40)} {
		if got := fleetName(folder); got != want {
			t.Errorf("%s: %s, want %s", folder, got, want)
		}
	}
	env := clitest.New(t, clitest.Office)
	for _, test := range []struct {
		langs []string
		code  int
		want  string
	}{
		{[]string{"perl"}, cli.ExitUsage, "known are python, typescript, go, bash"},
		{[]string{"go", "bash", "python"}, cli.ExitUsage, "agentd init agent <id>"},
		{[]string{"bash"}, cli.ExitFailed, "holds a fleet already"},
	} {
		if err := Init(t.Context(), &env.Env, env.Dir, test.langs); clitest.Code(err) != test.code || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: %v, want %q", test.langs, err, test.want)
		}
	}
	env.Format = output.JSON
	if err := Init(t.Context(), &env.Env, filepath.Join(env.Dir, "deep", "new"), []string{"bash"}); err != nil {
		t.Fatal(err)
	}
	if got := env.Out.String(); !strings.Contains(got, `"fleet": "new"`) || !strings.Contains(got, `"language": "bash"`) {
		t.Errorf("%s", got)
	}
}

// Two agents whose clients would be one file do not become one client in silence.
func TestClientsOfOneName(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, `
-- fleet.yaml --
version: 1
name: shop
agents: [{id: a-b, path: ./one}, {id: a.b, path: ./two}]
-- rpc-peers.yaml --
version: 1
peers:
  - agent: agent://a-b
    transports: [{kind: memory, topics: {requests: agents.one.requests}}]
-- one/agent.yaml --
name: a-b
-- one/capabilities.yaml --
version: 1
agent: agent://a-b
transports: [{kind: memory, topics: {requests: agents.one.requests}}]
capabilities: [{name: price}]
-- two/agent.yaml --
name: a.b
-- two/capabilities.yaml --
version: 1
agent: agent://a.b
transports: [{kind: memory, topics: {requests: agents.two.requests}}]
capabilities: [{name: weight}]
`)
	if err := AddAgent(t.Context(), &env.Env, "clerk", "python"); err != nil {
		t.Fatal(err)
	}
	if client := written(t, env.Dir)["agents/clerk/generated/a_b.py"]; !strings.Contains(client, "agent://a-b") {
		t.Errorf("the client is that of another agent: %.200s", client)
	}
	if !strings.Contains(env.Out.String(), "there is no client of agent://a.b") {
		t.Errorf("it says %s", env.Out.String())
	}
	// Nor is an agent made whose own client would be that of another one.
	before := written(t, env.Dir)
	for _, lang := range []string{"python", "go"} { // TypeScript tells them apart
		err := AddAgent(t.Context(), &env.Env, "a_b", lang)
		if err == nil || !strings.Contains(err.Error(), "agent://a-b and of agent://a_b would be one file") || !strings.Contains(err.Error(), "choose another id") {
			t.Errorf("in %s: %v", lang, err)
		}
	}
	if after := written(t, env.Dir); !maps.Equal(after, before) {
		t.Error("something was written all the same")
	}
}

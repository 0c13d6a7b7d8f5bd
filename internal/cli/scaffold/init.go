package scaffold

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
)

// mostLanguages is how many a new fleet may have: one for each of its agents.
const mostLanguages = 2

// Init writes a new fleet of two agents into a folder, which is made if it is not there.
func Init(ctx context.Context, env *cli.Env, dir string, langs []string) error {
	if len(langs) > mostLanguages {
		return cli.Usage("--lang: a new fleet has two agents, in one or two languages; `agentd init agent <id> --lang …` adds more")
	}
	chosen, notes, err := choose(ctx, langs, mostLanguages)
	if err != nil {
		return err
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if root, err := fleet.FindRoot(abs); err == nil && root == abs {
		return fmt.Errorf("%s holds a fleet already: `agentd init agent <id>` adds an agent to it", dir)
	}
	name := fleetName(filepath.Base(abs))
	module := moduleOf(name)
	greeter := &agent{ID: "greeter", Fleet: name, Module: module, Capability: "greet", lang: chosen[0], role: "greet"}
	counter := &agent{ID: "counter", Fleet: name, Module: module, Capability: "count-words", lang: chosen[len(chosen)-1], role: "count"}
	t := newTree()
	for _, a := range []*agent{greeter, counter} {
		t.infrastructure(a)
		t.contract(a)
	}
	t.template("fleet/fleet.yaml", "fleet.yaml", name)
	t.template("fleet/rpc-peers.yaml", "rpc-peers.yaml", name)
	t.template("fleet/gitignore", ".gitignore", nil)
	t.template("fleet/README.md", "README.md", map[string]any{"Name": name, "Client": greeter.lang.client, "Tests": tests(greeter, counter)})
	t.agent(greeter, counter)
	t.agent(counter, greeter)
	if t.err != nil {
		return t.err
	}
	files, err := t.place(ctx, abs)
	if err != nil {
		return err
	}
	in, at := "cd "+shellWord(dir)+" && ", dir
	if abs == mustCwd() {
		in, at = "", "this folder"
	}
	return report(env, made{
		Folder: dir, Fleet: name, Agents: []madeAgent{{greeter.ID, greeter.lang.name}, {counter.ID, counter.lang.name}}, Files: files,
		Next: []string{in + "agentd dev", in + `agentd request --as counter greeter greet '{"name": "Ada"}'`},
	}, fmt.Sprintf("a fleet of two agents is in %s: greeter in %s, counter in %s", at, greeter.lang.name, counter.lang.name), notes)
}

// mustCwd is the working directory, or "" where there is none.
func mustCwd() string {
	cwd, err := os.Getwd()
	if err != nil {
		return ""
	}
	return cwd
}

// AddAgent adds an agent to the fleet around the working directory.
func AddAgent(ctx context.Context, env *cli.Env, id, lang string) error {
	id = cli.ID(id)
	if err := envelope.CheckID(id); err != nil {
		return cli.Usage("%s", err)
	}
	var langs []string
	if lang != "" {
		langs = []string{lang}
	}
	chosen, notes, err := choose(ctx, langs, 1)
	if err != nil {
		return err
	}
	root, err := env.FleetRoot()
	if err != nil {
		return err
	}
	f, err := fleet.Load(root, cli.FleetOptions(fleet.LoadOptions{}))
	if err != nil {
		return err
	}
	if _, taken := f.Member(id); taken {
		return fmt.Errorf("the fleet %s has an agent %s already", f.Name, id)
	}
	a := &agent{ID: id, Fleet: f.Name, Module: moduleOf(f.Name), Capability: capabilityName(id), lang: chosen[0], role: "count"}
	if a.lang.name == "go" {
		if module, kit := readModule(f.Root); module != "" {
			a.Module = module
			if !kit {
				notes = append(notes, "! go.mod does not name the kit: go mod edit -require="+kitModule+"@v0.0.0 -replace="+kitModule+"=./kits/go")
			}
		}
	}
	t := newTree()
	t.infrastructure(a)
	t.optional() // what another agent in the language has brought
	t.contract(a)
	t.agent(a, nil)
	for _, m := range f.Members {
		if m.Capabilities != nil {
			if note := t.client(a, m.Capabilities); note != "" {
				notes = append(notes, note)
			}
		}
	}
	if t.err != nil {
		return t.err
	}
	files, err := t.place(ctx, f.Root)
	if err != nil {
		return err
	}
	if err := join(f, a); err != nil {
		return errors.Join(err, remove(f.Root, files))
	}
	in := ""
	if root != "." {
		in = "cd " + shellWord(root) + " && "
	}
	as := id
	if len(f.Members) > 0 {
		as = f.Members[0].ID
	}
	return report(env, made{
		Folder: root, Fleet: f.Name, Agents: []madeAgent{{id, a.lang.name}}, Files: files,
		Next: []string{in + "agentd dev", in + fmt.Sprintf(`agentd request --as %s %s %s '{"text": "one two"}'`, as, id, a.Capability)},
	}, fmt.Sprintf("%s has joined the fleet %s, in %s; an `agentd dev` that runs starts it", id, f.Name, a.lang.name), notes)
}

// capabilityName is what an agent that is added offers. Names that two agents of a fleet have
// are warned of: a reader takes them for the same.
func capabilityName(id string) string {
	return strings.NewReplacer(".", "-", "_", "-").Replace(id) + "-words"
}

// fleetName makes the name of a folder one of a fleet, which is part of subjects and paths.
func fleetName(folder string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, folder)
	const most = 40
	if name = strings.Trim(name, "-"); name == "" {
		return "fleet"
	}
	return strings.Trim(name[:min(len(name), most)], "-")
}

// kitModule is the module that has the kit for Go.
const kitModule = "github.com/agentd/agentd"

// moduleOf is the module of a fleet's Go files in a new go.mod.
func moduleOf(fleet string) string { return fleet + ".local" }

// readModule returns the module of the go.mod in a folder, or "", and whether that names the kit.
func readModule(root string) (module string, kit bool) {
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return "", false // t.place makes one, or says what is there instead
	}
	return modfile.ModulePath(text), bytes.Contains(text, []byte(kitModule))
}

// shellWord is a path as a word of a shell, quoted where it has to be.
func shellWord(path string) string {
	if regexp.MustCompile(`^[\w@%+=:,./-]+$`).MatchString(path) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// tests are the commands that test agents.
func tests(agents ...*agent) (all []string) {
	for _, a := range agents {
		all = append(all, fmt.Sprintf(a.lang.tests, a.ID))
	}
	return all
}

// made is what -o json prints.
type made struct {
	Folder string      `json:"folder"`
	Fleet  string      `json:"fleet"`
	Agents []madeAgent `json:"agents"`
	Files  []string    `json:"files"`
	Next   []string    `json:"next"`
}

type madeAgent struct {
	Agent    string `json:"agent"`
	Language string `json:"language"`
}

// report says what was made, and ends with what to type next.
func report(env *cli.Env, m made, done string, notes []string) error {
	if env.Format != output.Table {
		return env.WriteJSON(m)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "✓ %s (%d files)\n", done, len(m.Files))
	for _, note := range notes {
		fmt.Fprintf(&text, "  %s\n", note)
	}
	fmt.Fprintf(&text, "\nNext, and the second one in another terminal:\n\n  %s\n  %s\n", m.Next[0], m.Next[1])
	_, err := fmt.Fprint(env.Stdout, output.PrintableText(text.String()))
	return err
}

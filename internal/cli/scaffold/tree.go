package scaffold

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/agentd/agentd"
	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/codegen"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/sdk"
)

// Templates are named after the files that they make, without what would have tools take them for such.
//
//go:embed templates
var templates embed.FS

// An agent is one to be made. Its exported fields are for templates.
type agent struct {
	ID, Fleet string
	// Capability is what it offers.
	Capability string
	// Module is that of the fleet's Go files.
	Module string
	// OwnModule and Peer are the names of the modules with the types of its own contract and of
	// the agent that it calls, and Own is what its code calls the first.
	OwnModule, Own, Peer string
	// Type is what the names of its own types begin with.
	Type string

	client string // the file of its own typed client, below a folder of such; "" for none
	lang   language
	role   string // count or greet
}

// A tree is a set of files to be made.
type tree struct {
	files   map[string][]byte // by path, with slashes
	links   map[string]string // symbolic links
	may     map[string]bool   // paths that may exist already, and then stay
	clients []clientFile
	err     error // of the first thing that failed
}

// A clientFile is one that is generated from a contract that is itself a file of the tree.
type clientFile struct {
	of, dir string
	lang    language
}

func newTree() *tree {
	return &tree{files: map[string][]byte{}, links: map[string]string{}, may: map[string]bool{}}
}

// template adds a file that is made from a template.
func (t *tree) template(name, to string, data any) {
	text, err := templates.ReadFile("templates/" + name + ".tmpl")
	if err == nil {
		var tmpl *template.Template
		if tmpl, err = template.New(name).Delims("<<", ">>").Parse(string(text)); err == nil {
			var b bytes.Buffer
			err = tmpl.Execute(&b, data)
			t.files[to] = b.Bytes()
		}
	}
	t.err = errors.Join(t.err, err)
}

// optional marks what the tree has by now as things that the fleet may have already.
func (t *tree) optional() {
	for name := range t.files {
		t.may[name] = true
	}
	for name := range t.links {
		t.may[name] = true
	}
}

// infrastructure adds what all agents in a language share: its kit, and the files by which
// compilers and checkers find that.
func (t *tree) infrastructure(a *agent) {
	switch a.lang.name {
	case "python":
		files, err := sdk.PythonPackage()
		t.err = errors.Join(t.err, err)
		for _, f := range files {
			t.files["kits/python/"+f.Name] = f.Data
		}
		t.copy("LICENSE", "kits/python/LICENSE")
		t.template("python/pyrightconfig.json", "pyrightconfig.json", nil)
	case "typescript":
		t.kit("sdk/typescript", "kits/typescript")
		t.copy("LICENSE", "kits/typescript/LICENSE")
		// As npm install would make it: the kit is found before anybody has run npm.
		t.links["node_modules/@agentd/sdk"] = "../../kits/typescript"
		t.template("typescript/package.json", "package.json", a.Fleet)
		t.template("typescript/tsconfig.json", "tsconfig.json", nil)
	case "go":
		for _, dir := range []string{"skill/sdk", "skill/internal/wire", "codegen/typed", "internal/ijson", "internal/truncate"} {
			t.kit(dir, "kits/go/"+dir)
		}
		t.copy("LICENSE", "kits/go/LICENSE")
		t.template("go/kit.mod", "kits/go/go.mod", nil)
		t.template("go/go.mod", "go.mod", a.Module)
	}
}

// kit adds the files below a folder of the kits, but for tests.
func (t *tree) kit(from, to string) {
	t.err = errors.Join(t.err, fs.WalkDir(agentd.Kits, from, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && !strings.HasSuffix(name, "_test.go") {
			t.copy(name, to+strings.TrimPrefix(name, from))
		}
		return err
	}))
}

func (t *tree) copy(from, to string) {
	data, err := agentd.Kits.ReadFile(from)
	t.files[to], t.err = data, errors.Join(t.err, err)
}

// contract adds the contract of an agent.
func (t *tree) contract(a *agent) {
	t.template("fleet/"+a.role+".capabilities.yaml", "agents/"+a.ID+"/capabilities.yaml", a)
}

// agent adds the files of an agent that may call another, or nobody. The tree has the contracts
// of both.
func (t *tree) agent(a, peer *agent) {
	dir := "agents/" + a.ID + "/"
	t.template(a.lang.name+"/"+a.role+".agent.yaml", dir+"agent.yaml", a)
	if a.lang.client != "" {
		t.clients = append(t.clients, clientFile{a.ID, a.ID, a.lang})
		a.OwnModule, a.Type, a.client = t.names(a.lang, a)
		a.Own = a.OwnModule
		if slices.Contains(a.lang.taken, a.Own) {
			a.Own = "contract"
		}
	}
	if peer != nil && a.lang.client != "" {
		t.clients = append(t.clients, clientFile{peer.ID, a.ID, a.lang})
		a.Peer, _, _ = t.names(a.lang, peer)
	}
	for _, file := range map[string][]string{
		"python":     {"skill.py", "test_skill.py"},
		"typescript": {"skill.ts", "<role>.ts", "<role>.test.ts"},
		"go":         {"main.go", "main_test.go"},
		"bash":       {"skill.sh", "test.sh"},
	}[a.lang.name] {
		file = strings.ReplaceAll(file, "<role>", a.role)
		from := a.role + "." + file
		if strings.HasPrefix(file, a.role+".") {
			from = file
		}
		t.template(a.lang.name+"/"+from, dir+file, a)
	}
}

// client adds the typed client of an agent that the fleet has. It leaves out the client of one
// whose file another agent's has: a-b and a.b are both a_b.py. The note says so. Where that would
// be the client of a itself, a cannot be made: its skill uses that.
func (t *tree) client(a *agent, of *capability.Document) (note string) {
	if a.lang.client == "" {
		return ""
	}
	file, err := generate(a.lang, of)
	if err != nil {
		t.err = errors.Join(t.err, err)
		return ""
	}
	if file.Path == a.client {
		t.err = errors.Join(t.err, fmt.Errorf("the clients of %s and of agent://%s would be one file, %s: choose another id", of.Agent, a.ID, file.Path))
		return ""
	}
	name := "agents/" + a.ID + "/generated/" + file.Path
	if _, taken := t.files[name]; taken {
		return fmt.Sprintf("! there is no client of %s: that of another agent is %s already; `agentd capabilities gen --out` writes it elsewhere", of.Agent, file.Path)
	}
	t.files[name] = file.Content
	return ""
}

// generate writes the client of a contract.
func generate(l language, doc *capability.Document) (codegen.File, error) {
	lang, err := codegen.Find(l.client)
	if err != nil {
		return codegen.File{}, err
	}
	api, err := codegen.NewAPI(doc)
	if err != nil {
		return codegen.File{}, err
	}
	return lang.Generate(api), nil
}

// names are those by which code in a language imports the generated module of an agent, those
// of its types, and the file: what is generated has them.
func (t *tree) names(l language, a *agent) (module, types, at string) {
	doc, err := capability.Parse("capabilities.yaml", t.files["agents/"+a.ID+"/capabilities.yaml"], cli.FileOptions())
	if err != nil {
		t.err = errors.Join(t.err, err)
		return "", "", ""
	}
	file, err := generate(l, doc)
	if err != nil {
		t.err = errors.Join(t.err, err)
		return "", "", ""
	}
	if found := regexp.MustCompile(`(?m)^(?:class|export type|type) (\w+)Request\b`).FindSubmatch(file.Content); found != nil {
		types = string(found[1])
	}
	if found := regexp.MustCompile(`(?m)^package (\w+)`).FindSubmatch(file.Content); found != nil {
		return string(found[1]), types, file.Path
	}
	return strings.TrimSuffix(path.Base(file.Path), path.Ext(file.Path)), types, file.Path
}

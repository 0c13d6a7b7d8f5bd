package layout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	root   = "."
	module = "github.com/agentd/agentd"
)

// A pkg is one folder with Go files.
type pkg struct {
	dir      string // relative to the root, with slashes
	imports  map[string]bool
	doc      bool // doc.go has a package comment
	inits    []string
	examples int
	testOnly bool
}

// packages parses every Go file of the module.
func packages(t *testing.T) map[string]*pkg {
	t.Helper()
	found := map[string]*pkg{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if rel != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules" || isModule(path)) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(rel))
		if found[dir] == nil {
			found[dir] = &pkg{dir: dir, imports: map[string]bool{}, testOnly: true}
		}
		found[dir].add(rel, file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 10 {
		t.Fatalf("found only %d packages below %s", len(found), root)
	}
	return found
}

func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

func (p *pkg) add(name string, file *ast.File) {
	if strings.HasSuffix(name, "_test.go") {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "Example") {
				p.examples++
			}
		}
		return
	}
	p.testOnly = false
	for _, imp := range file.Imports {
		p.imports[strings.Trim(imp.Path.Value, `"`)] = true
	}
	base := filepath.Base(name)
	if file.Doc != nil && (base == "doc.go" || file.Name.Name == "main") {
		p.doc = true
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
			p.inits = append(p.inits, name)
		}
	}
}

// sample reports whether a package is part of the sample fleet, or generated for a
// test: not of the house.
func (p *pkg) sample() bool {
	return strings.HasPrefix(p.dir, "agents")
}

func (p *pkg) internal() bool {
	return strings.HasPrefix(p.dir, "internal/") || strings.Contains(p.dir, "/internal/")
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	for dir, p := range packages(t) {
		if !p.doc && !p.testOnly {
			t.Errorf("%s has no package comment in doc.go", dir)
		}
		if len(p.inits) > 0 {
			t.Errorf("init functions in %v", p.inits)
		}
	}
}

func TestEveryPublicPackageHasAnExample(t *testing.T) {
	for dir, p := range packages(t) {
		command := strings.HasPrefix(dir, "cmd/") || strings.HasPrefix(dir, "agents")
		if !p.internal() && !command && p.examples == 0 && dir != "transport/transporttest" {
			t.Errorf("%s has no runnable Example", dir)
		}
	}
}

// The README's Go example is a test of its own, so that it compiles and does
// what the README says.
func TestReadmeExampleIsTested(t *testing.T) {
	readme := read(t, "README.md")
	tested := read(t, "internal/layout/readme_test.go")
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(readme, -1)
	if len(blocks) == 0 {
		t.Fatal("the README has no Go example")
	}
	for _, block := range blocks {
		for line := range strings.Lines(block[1]) {
			if line = strings.TrimSpace(line); line != "" && !slices.ContainsFunc(strings.Split(tested, "\n"), func(have string) bool {
				return strings.TrimSpace(have) == line
			}) {
				t.Errorf("the README's line %q is not in the tested example", line)
			}
		}
	}
}

func TestReadmeMapsEveryFolder(t *testing.T) {
	readme := read(t, "README.md")
	for dir := range packages(t) {
		top, _, _ := strings.Cut(dir, "/")
		if dir != "." && !strings.Contains(readme, "`"+top+"/") {
			t.Errorf("the README's map has no %s/", top)
		}
	}
}

// A link that leads nowhere costs its reader more than no link.
func TestDocsNameFilesThatExist(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	docs, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(docs, filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md")) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(data), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", path, m[1])
			}
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

package layout

import (
	"flag"
	"fmt"
	"go/doc"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated parts of docs/architecture.md anew")

// The picture and the table of docs/architecture.md are generated from the code: the
// arrows are its imports, the jobs are the first sentences of the packages' comments.
// Only the order of the table is a person's.
func TestArchitecture(t *testing.T) {
	page := read(t, architecture)
	all := packages(t)
	want := between(t, page, "picture", picture(all))
	want = between(t, want, "packages", table(t, all))
	if page == want {
		return
	}
	if *update {
		if err := os.WriteFile(architecture, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s is not what the code says: run go test ./internal/layout -run Architecture -update", architecture)
}

// between replaces what stands between the marks of a generated part.
func between(t *testing.T, page, name, text string) string {
	t.Helper()
	begin, end := "<!-- begin "+name+" -->\n", "<!-- end "+name+" -->"
	before, rest, ok := strings.Cut(page, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no marks for %s", architecture, name)
	}
	return before + begin + text + end + after
}

// picture draws the top-level folders as a Mermaid flow chart. An arrow that follows
// from others is left out, and so is internal/, which all use.
func picture(all map[string]*pkg) string {
	uses := map[string]map[string]bool{}
	for dir, p := range all {
		from := folder(dir)
		if p.testOnly || from == "internal" || p.sample() {
			continue
		}
		if uses[from] == nil {
			uses[from] = map[string]bool{}
		}
		for imp := range p.imports {
			if other, ours := strings.CutPrefix(imp, module+"/"); ours && folder(other) != from && folder(other) != "internal" {
				uses[from][folder(other)] = true
			}
		}
	}
	var b strings.Builder
	b.WriteString("```mermaid\nflowchart BT\n")
	for _, from := range slices.Sorted(maps.Keys(uses)) {
		for _, to := range slices.Sorted(maps.Keys(uses[from])) {
			if !reaches(uses, from, to, true) {
				fmt.Fprintf(&b, "    %s --> %s\n", node(from), node(to))
			}
		}
	}
	b.WriteString("```\n")
	return b.String()
}

// folder is where a package belongs in the picture.
func folder(dir string) string {
	top, below, _ := strings.Cut(dir, "/")
	if top == "transport" && below != "" {
		next, _, _ := strings.Cut(below, "/")
		return top + "/" + next
	}
	if top == "cmd" {
		return "cmd/agentd"
	}
	return top
}

func node(name string) string {
	return strings.ReplaceAll(name, "/", "_") + "[" + name + "]"
}

// reaches reports whether from uses to, other than directly where notDirectly is set.
func reaches(uses map[string]map[string]bool, from, to string, notDirectly bool) bool {
	for next := range uses[from] {
		if next == to && !notDirectly || next != to && reaches(uses, next, to, false) {
			return true
		}
	}
	return false
}

// table lists every package with its job. The order is that of the page; a package
// that the page does not list comes right after the last one that it imports.
func table(t *testing.T, all map[string]*pkg) string {
	t.Helper()
	rows := slices.DeleteFunc(order(t), func(dir string) bool { return all[dir] == nil || all[dir].testOnly })
	for _, dir := range slices.Sorted(maps.Keys(all)) {
		if p := all[dir]; p.testOnly || p.sample() || slices.Contains(rows, dir) {
			continue
		}
		at := 0
		for imp := range all[dir].imports {
			at = max(at, slices.Index(rows, strings.TrimPrefix(imp, module+"/"))+1)
		}
		rows = slices.Insert(rows, at, dir)
	}
	var b strings.Builder
	b.WriteString("| package | its job |\n|---|---|\n")
	for _, dir := range rows {
		fmt.Fprintf(&b, "| `%s` | %s |\n", dir, synopsis(t, dir))
	}
	return b.String()
}

// synopsis is the first sentence of a package comment, without its subject.
func synopsis(t *testing.T, dir string) string {
	t.Helper()
	for _, name := range []string{"doc.go", "main.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil || file.Doc == nil {
			continue
		}
		text := new(doc.Package).Synopsis(file.Doc.Text())
		for _, subject := range []string{"Package " + file.Name.Name + " ", "Command agentd "} {
			text = strings.TrimPrefix(text, subject)
		}
		return strings.TrimPrefix(strings.TrimSuffix(text, "."), "is ")
	}
	t.Errorf("%s has no package comment", dir)
	return ""
}

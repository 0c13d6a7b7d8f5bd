package layout

import (
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// markdown returns the project's own Markdown files, from the root.
func markdown(t *testing.T) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || path != root && strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".md"):
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 10 {
		t.Fatalf("found only %d Markdown files", len(found))
	}
	return found
}

var (
	fence      = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	inlineCode = regexp.MustCompile("`[^`\n]*`")
	mdLink     = regexp.MustCompile(`\]\(<?([^)<>\s]+)>?\)`)
	mdHeading  = regexp.MustCompile(`(?m)^#{1,6} +(.*?) *#*$`)
	notInSlug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors are the fragments that GitHub gives the headings of a Markdown text:
// lower case, without punctuation, spaces as dashes.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, m := range mdHeading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		slug := notInSlug.ReplaceAllString(strings.ToLower(m[1]), "")
		found[strings.ReplaceAll(slug, " ", "-")] = true
	}
	return found
}

// Every relative link in Markdown leads to a file or folder that is there, and
// its fragment to a heading.
func TestMarkdownLinksResolve(t *testing.T) {
	checked := 0
	for _, path := range markdown(t) {
		text := inlineCode.ReplaceAllString(fence.ReplaceAllString(read(t, path), ""), "")
		for _, m := range mdLink.FindAllStringSubmatch(text, -1) {
			link, err := url.Parse(m[1])
			if err != nil {
				t.Errorf("%s: the link %s is no URL: %v", path, m[1], err)
				continue
			}
			if link.IsAbs() {
				continue
			}
			checked++
			target := path
			if link.Path != "" {
				target = filepath.Join(filepath.Dir(path), filepath.FromSlash(link.Path))
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which is not there", path, m[1])
				continue
			}
			if link.Fragment != "" && !anchors(read(t, target))[link.Fragment] {
				t.Errorf("%s links to %s, but %s has no such heading", path, m[1], target)
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d links were checked", checked)
	}
}

func TestAnchors(t *testing.T) {
	got := anchors("# One `two`, three!\n\n```sh\n# no heading\n```\n## Über-uns #\n")
	for _, want := range []string{"one-two-three", "über-uns"} {
		if !got[want] {
			t.Errorf("no %q among %v", want, got)
		}
	}
	if len(got) != 2 {
		t.Errorf("got %v", got)
	}
}

// goDocLink is what looks like a doc link to a symbol; in resolved comments
// only broken ones are left as text.
var goDocLink = regexp.MustCompile(`\[\*?(?:[a-z]\w*\.)?[A-Z]\w*(?:\.[A-Z]\w*)?\]`)

// Every doc link in a package's exported documentation leads to a symbol that
// is there.
func TestDocLinksResolve(t *testing.T) {
	docs := map[string]*doc.Package{}
	for dir, p := range packages(t) {
		if p.testOnly {
			continue
		}
		fset := token.NewFileSet()
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var files []*ast.File
		for _, e := range entries {
			if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
				continue
			}
			file, err := parser.ParseFile(fset, filepath.Join(dir, e.Name()), nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
		}
		d, err := doc.NewFromFiles(fset, files, module+"/"+dir, doc.PreserveAST)
		if err != nil {
			t.Fatal(err)
		}
		docs[dir] = d
	}
	for dir, d := range docs {
		p := d.Parser()
		for _, text := range documented(d) {
			for _, block := range p.Parse(text).Content {
				checkDocLinks(t, dir, block, docs)
			}
		}
	}
}

// documented are the doc comments of a package, its exported symbols and their
// fields.
func documented(d *doc.Package) []string {
	texts := []string{d.Doc}
	values := func(vs []*doc.Value) {
		for _, v := range vs {
			texts = append(texts, v.Doc)
			ast.Inspect(v.Decl, collect(&texts))
		}
	}
	funcs := func(fs []*doc.Func) {
		for _, f := range fs {
			texts = append(texts, f.Doc)
		}
	}
	values(d.Consts)
	values(d.Vars)
	funcs(d.Funcs)
	for _, typ := range d.Types {
		texts = append(texts, typ.Doc)
		ast.Inspect(typ.Decl, collect(&texts))
		values(typ.Consts)
		values(typ.Vars)
		funcs(typ.Funcs)
		funcs(typ.Methods)
	}
	return texts
}

// collect adds the comments of fields and values to texts.
func collect(texts *[]string) func(ast.Node) bool {
	return func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			*texts = append(*texts, n.Doc.Text(), n.Comment.Text())
		case *ast.ValueSpec:
			*texts = append(*texts, n.Doc.Text(), n.Comment.Text())
		}
		return true
	}
}

// checkDocLinks looks for links that lead nowhere in a block of a comment.
func checkDocLinks(t *testing.T, dir string, block comment.Block, docs map[string]*doc.Package) {
	t.Helper()
	switch block := block.(type) {
	case *comment.List:
		for _, item := range block.Items {
			for _, b := range item.Content {
				checkDocLinks(t, dir, b, docs)
			}
		}
	case *comment.Paragraph:
		var plain strings.Builder
		for _, text := range block.Text {
			switch text := text.(type) {
			case comment.Plain:
				plain.WriteString(string(text))
			case comment.Italic:
				plain.WriteString(string(text))
			case *comment.DocLink:
				other, ours := docs[strings.TrimPrefix(text.ImportPath, module+"/")]
				name := strings.TrimPrefix(text.Recv+"."+text.Name, ".")
				if ours && text.Name != "" && !symbols(other)[name] {
					t.Errorf("%s: the doc link [%s.%s] leads nowhere", dir, text.ImportPath, name)
				}
			}
		}
		for _, broken := range goDocLink.FindAllString(plain.String(), -1) {
			t.Errorf("%s: the doc link %s leads nowhere", dir, broken)
		}
	}
}

// symbols are the exported names of a package, methods and fields as Type.Name.
func symbols(d *doc.Package) map[string]bool {
	found := map[string]bool{}
	values := func(vs []*doc.Value) {
		for _, v := range vs {
			for _, name := range v.Names {
				found[name] = true
			}
		}
	}
	funcs := func(prefix string, fs []*doc.Func) {
		for _, f := range fs {
			found[prefix+f.Name] = true
		}
	}
	values(d.Consts)
	values(d.Vars)
	funcs("", d.Funcs)
	for _, typ := range d.Types {
		found[typ.Name] = true
		values(typ.Consts)
		values(typ.Vars)
		funcs("", typ.Funcs)
		funcs(typ.Name+".", typ.Methods)
		ast.Inspect(typ.Decl, func(n ast.Node) bool {
			if f, ok := n.(*ast.Field); ok {
				for _, id := range f.Names {
					found[typ.Name+"."+id.Name] = true
				}
			}
			return true
		})
	}
	return found
}

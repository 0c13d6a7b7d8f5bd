package codegen_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A block is a piece of code in docs/codegen.md, and what is said of it there.
type block struct{ claim, lang, code string }

func blocks(t *testing.T) []block {
	t.Helper()
	doc, err := os.ReadFile(filepath.Join("..", "docs", "codegen.md"))
	if err != nil {
		t.Fatal(err)
	}
	var all []block
	for _, m := range regexp.MustCompile("(?s)<!-- (.*?) -->\n```(\\w+)\n(.*?)```\n").FindAllStringSubmatch(string(doc), -1) {
		all = append(all, block{m[1], m[2], m[3]})
	}
	if len(all) < 6 || len(all) != strings.Count(string(doc), "\n```\n") {
		t.Fatalf("%d pieces of code that say where they are from", len(all))
	}
	return all
}

func TestDocsShowWhatIsGenerated(t *testing.T) {
	for _, b := range blocks(t) {
		form, name, ok := strings.Cut(b.claim, " ")
		if !ok || form != onKit && form != standalone {
			continue
		}
		content, err := os.ReadFile(filepath.Join("testdata", form, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(content), b.code) {
			t.Errorf("%s does not hold\n%s", name, b.code)
		}
	}
}

// docsBeside writes the examples of a language into dir, or a folder of it, beside the
// clients that they use.
func docsBeside(t *testing.T, lang, ext, dir string) (files []string) {
	t.Helper()
	alone := filepath.Join(dir, "alone")
	generated(t, lang, onKit, dir)
	generated(t, lang, standalone, alone)
	for i, b := range blocks(t) {
		in, ok := map[string]string{"compiles with reviewer": dir, "compiles with standalone reviewer": alone}[b.claim]
		if ok && b.lang == lang {
			path := filepath.Join(in, fmt.Sprintf("docs_%d%s", i, ext))
			write(t, path, []byte(b.code))
			files = append(files, path)
		}
	}
	if files == nil {
		t.Fatalf("the docs have no example in %s", lang)
	}
	return files
}

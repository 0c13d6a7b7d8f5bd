package layout

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A nolint for a linter that is not enabled excepts nothing: it is left from
// another time, or somebody believes in a rule that nobody checks. nolintlint
// reports only those for linters that run.
func TestNolintNamesLintersThatRun(t *testing.T) {
	enabled := map[string]bool{}
	list, _, _ := strings.Cut(read(t, ".golangci.yml"), "settings:")
	for _, m := range regexp.MustCompile(`(?m)^    - (\w+)`).FindAllStringSubmatch(list, -1) {
		enabled[m[1]] = true
	}
	if !enabled["nolintlint"] {
		t.Fatalf("the linters of .golangci.yml were not found: %v", enabled)
	}
	directive := regexp.MustCompile(`//nolint(:[\w,]+)?`)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "lint_test.go"):
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(data), "\n") {
			for _, m := range directive.FindAllStringSubmatch(line, -1) {
				for name := range strings.SplitSeq(strings.TrimPrefix(m[1], ":"), ",") {
					if !enabled[name] {
						t.Errorf("%s:%d: nolint for %q, which does not run", path, i+1, name)
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

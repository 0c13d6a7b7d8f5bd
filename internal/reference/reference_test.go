package reference_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/agentd/agentd/internal/reference"
)

var update = flag.Bool("update", false, "write the generated files anew")

const root = "../.."

// Every generated file is what the sources make of it now. A key without a row, or a row without
// a key, is an error of Generate.
func TestCurrent(t *testing.T) {
	files, err := reference.Generate(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		path := filepath.Join(root, name)
		if *update {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is stale: go test ./internal/reference -update", name)
		}
	}
	err = filepath.WalkDir(filepath.Join(root, "docs/reference"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, path)
		if _, ok := files[filepath.ToSlash(name)]; !ok {
			t.Errorf("%s is made of nothing", name)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

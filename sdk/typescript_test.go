package sdk_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"testing"

	"github.com/agentd/agentd/sdk"
)

// The tarball is what npm installs: everything that package.json names is there, as it stands in
// the repository.
func TestTarball(t *testing.T) {
	archive, err := sdk.TypeScriptTarball()
	tarball := made(t, archive, err)
	unzipped, err := gzip.NewReader(bytes.NewReader(tarball.Data))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]bool{}
	for r := tar.NewReader(unzipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		name := h.Name[len("package/"):]
		want, err := os.ReadFile(filepath.Join("typescript", filepath.FromSlash(name)))
		if err != nil || !bytes.Equal(data, want) {
			t.Errorf("%s: another one, or none, in the repository: %v", name, err)
		}
		files[name] = true
	}
	var manifest struct {
		Version string
		Exports map[string]json.RawMessage
	}
	text, err := os.ReadFile("typescript/package.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		t.Fatal(err)
	}
	if want := "agentd-sdk-" + manifest.Version + ".tgz"; tarball.Name != want {
		t.Errorf("it is called %s, want %s", tarball.Name, want)
	}
	for name, export := range manifest.Exports {
		paths := map[string]string{}
		if json.Unmarshal(export, &paths) != nil {
			paths["default"] = name
		}
		for _, p := range paths {
			if !files[path.Clean(p)] {
				t.Errorf("it has no %s, which %s is", p, name)
			}
		}
	}
}

package sdk_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/agentd/agentd/sdk"
)

func made(t *testing.T, archive sdk.Archive, err error) sdk.Archive {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

// modules are the files of the package agentd in the repository.
func modules(t *testing.T) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	entries, err := os.ReadDir("python/src/agentd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == "__pycache__" {
			continue
		}
		data, err := os.ReadFile(filepath.Join("python/src/agentd", e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all["agentd/"+e.Name()] = data
	}
	return all
}

// The wheel has every module, and its RECORD every file with its hash and size.
func TestWheel(t *testing.T) {
	archive, err := sdk.PythonWheel()
	wheel := made(t, archive, err)
	r, err := zip.NewReader(bytes.NewReader(wheel.Data), int64(len(wheel.Data)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, f := range r.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if files[f.Name], err = io.ReadAll(in); err != nil {
			t.Fatal(err)
		}
	}
	for name, data := range modules(t) {
		if !bytes.Equal(files[name], data) {
			t.Errorf("%s is missing, or another one", name)
		}
	}
	var listed int
	for line := range strings.Lines(string(files[info(t, files, "RECORD")])) {
		cells := strings.Split(strings.TrimSpace(line), ",")
		listed++
		sum := sha256.Sum256(files[cells[0]])
		if strings.HasSuffix(cells[0], "/RECORD") {
			continue
		}
		if cells[1] != "sha256="+base64.RawURLEncoding.EncodeToString(sum[:]) || cells[2] != strconv.Itoa(len(files[cells[0]])) {
			t.Errorf("RECORD has %s", line)
		}
	}
	if listed != len(files) {
		t.Errorf("RECORD lists %d of %d files", listed, len(files))
	}
	metadata := string(files[info(t, files, "METADATA")])
	for _, want := range []string{"Name: agentd-sdk\n", "Requires-Python: >=3.10\n", "Classifier: Typing :: Typed\n", "License-Expression: Apache-2.0\n", "\n\n# agentd-sdk\n"} {
		if !strings.Contains(metadata, want) {
			t.Errorf("METADATA has no %q", want)
		}
	}
}

func info(t *testing.T, files map[string][]byte, name string) string {
	t.Helper()
	for f := range files {
		if strings.HasSuffix(f, ".dist-info/"+name) {
			return f
		}
	}
	t.Fatalf("the wheel has no %s", name)
	return ""
}

// The source distribution has what a build of it takes.
func TestSdist(t *testing.T) {
	archive, err := sdk.PythonSdist()
	sdist := made(t, archive, err)
	unzipped, err := gzip.NewReader(bytes.NewReader(sdist.Data))
	if err != nil {
		t.Fatal(err)
	}
	root := strings.TrimSuffix(sdist.Name, ".tar.gz") + "/"
	var names []string
	for r := tar.NewReader(unzipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, strings.TrimPrefix(h.Name, root))
	}
	want := []string{"PKG-INFO", "README.md", "LICENSE", "pyproject.toml"}
	for name := range modules(t) {
		want = append(want, "src/"+name)
	}
	slices.Sort(want)
	slices.Sort(names)
	if !slices.Equal(names, want) {
		t.Errorf("it has %q, want %q", names, want)
	}
}

// The same sources make the same bytes.
func TestReproducible(t *testing.T) {
	for _, make := range []func() (sdk.Archive, error){sdk.PythonWheel, sdk.PythonSdist, sdk.TypeScriptTarball} {
		archive, err := make()
		first := made(t, archive, err)
		archive, err = make()
		if again := made(t, archive, err); !bytes.Equal(first.Data, again.Data) {
			t.Errorf("%s differs from one time to the next", first.Name)
		}
	}
}

// python returns a Python that the kit runs on, or skips the test.
func python(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil {
		t.Skip(err)
	}
	if err := exec.Command(path, "-c", "import sys; sys.exit(sys.version_info < (3, 10))").Run(); err != nil {
		t.Skipf("%s is older than 3.10", path)
	}
	return path
}

// The kit's own tests pass.
func TestPython(t *testing.T) {
	cmd := exec.Command(python(t), "-X", "dev", "-W", "error", "-m", "unittest", "discover", "-s", "tests")
	cmd.Dir = "python"
	cmd.Env = append(os.Environ(), "PYTHONPATH=src", "PYTHONDONTWRITEBYTECODE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

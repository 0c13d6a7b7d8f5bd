package sandbox_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/skill/sandbox"
)

func openFolders(t *testing.T) (*sandbox.Folders, string) {
	t.Helper()
	parent := filepath.Join(t.TempDir(), "calls")
	f, err := sandbox.OpenFolders(parent)
	if err != nil {
		t.Fatal(err)
	}
	return f, parent
}

// gone waits until a path has been removed.
func gone(t *testing.T, path string) {
	t.Helper()
	eventually.Holds(t, path+" is gone", func() bool { _, err := os.Lstat(path); return os.IsNotExist(err) })
}

// Whatever a skill leaves behind goes, and nothing else does.
func TestFoldersAreRemoved(t *testing.T) {
	f, parent := openFolders(t)
	outside := t.TempDir()
	kept := filepath.Join(outside, "kept")
	if err := os.WriteFile(kept, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, script := range map[string]string{
		"nothing":            ``,
		"files":              `echo a >a; mkdir -p b/c; echo d >b/c/d`,
		"no permissions":     `mkdir -p a/b/c; echo d >a/b/c/d; chmod 000 a/b/c a/b a .`,
		"links":              `ln -s "$OUTSIDE" out; ln -s . self; ln "$OUTSIDE/kept" hard; mkdir d; ln -s "$OUTSIDE" d/out`,
		"odd names":          `mkdir -- "-rf" "a b" .lifted-1 .lifted-2; echo x >"$(printf 'new\nline')"; mkdir -p x/.lifted-1/y; mkfifo p; : >.lifted-2/f`,
		"names to move to":   `mkdir -p $(seq -f .lifted-%.0f/a/b 1200)`,
		"many files":         `mkdir m; cd m; seq 1000 | xargs touch`,
		"deep folders":       `mkdir -p $(printf 'd/%.0s' $(seq 1500)); echo x >d/d/d/d/f`,
		"a file instead":     `mkdir a; echo x >a/f; chmod 555 a`,
		"read-only contents": `mkdir -p m/n; touch m/n/f; chmod -R a-w m`,
	} {
		t.Run(name, func(t *testing.T) {
			folder, err := f.Make(nil)
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "sh", "-ec", script)
			cmd.Dir, cmd.Env = folder, append(os.Environ(), "OUTSIDE="+outside)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			f.Remove(folder)
			gone(t, folder)
		})
	}
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("what a link named has gone: %v", err)
	}
	f.Close()
	gone(t, parent)
}

// What a killed process has left goes with the next start, and a folder of somebody else
// is not used.
func TestFoldersOfAKilledProcess(t *testing.T) {
	f, parent := openFolders(t)
	left, err := f.Make(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(left, "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f.Close()
	next, err := sandbox.OpenFolders(parent)
	if err != nil {
		t.Fatal(err)
	}
	gone(t, left)
	next.Close()
	if err := os.Mkdir(parent, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(parent, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := sandbox.OpenFolders(parent); err == nil || !strings.Contains(err.Error(), "not a folder of this user alone") {
		t.Errorf("a folder for everybody to write: %v", err)
	}
}

func ExampleLayers_Missing() {
	kernel := sandbox.Layers{Landlock: 4, Seccomp: true, Marks: true}
	fmt.Println(kernel.Missing())
	// Output: [signals and abstract sockets (Landlock is older than version 6)]
}

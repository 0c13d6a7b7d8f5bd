package codegen_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/codegen"
)

// client is the standalone file for an agent with one loose capability.
func client(t *testing.T, name, id string) codegen.File {
	t.Helper()
	return lang(t, name).Standalone().Generate(loose(t, id))
}

// loose is an agent with one capability without schemas.
func loose(t *testing.T, id string) *codegen.API {
	t.Helper()
	doc, err := capability.Parse("c.json", []byte(`{"version":1,"agent":"agent://`+id+`","transports":[{"kind":"memory","topics":{"requests":"t"}}],
		"capabilities":[{"name":"x"}]}`), capability.LoadOptions{ValidateSchemas: true})
	if err != nil {
		t.Fatal(err)
	}
	api, err := codegen.NewAPI(doc)
	if err != nil {
		t.Fatal(err)
	}
	return api
}

func TestPaths(t *testing.T) {
	tests := []struct{ lang, id, want string }{
		{"ts", "pr-reviewer", "pr-reviewer.ts"},
		{"ts", "a.b_c", "a.b_c.ts"},
		{"ts", "x.d", "x.d_.ts"}, // x.d.ts would be a declaration file
		{"go", "pr-reviewer", "prreviewer/agent.go"},
		{"go", "3d.x", "agent3dx/agent.go"},
		{"go", "func", "funcagent/agent.go"},
		{"go", "internal", "internalagent/agent.go"},
		{"go", "load_test", "loadtestagent/agent.go"},
		{"python", "pr-reviewer", "pr_reviewer.py"},
		{"python", "3d", "agent_3d.py"},
		{"python", "import", "import_.py"},
		{"python", "json", "json_.py"}, // it would hide the module that it imports
	}
	for _, tt := range tests {
		if got := client(t, tt.lang, tt.id).Path; got != tt.want {
			t.Errorf("%s, %s: path %s, want %s", tt.lang, tt.id, got, tt.want)
		}
	}
}

func TestWriteAndCheck(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	file := client(t, "go", "a-b")
	var stale *codegen.StaleError
	if err := file.Check(dir, "a-b"); !errors.As(err, &stale) || !stale.Missing {
		t.Fatalf("check of nothing: %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("check made the folder")
	}
	for range 2 {
		if err := file.Write(dir, "a-b"); err != nil {
			t.Fatal(err)
		}
	}
	if err := file.Check(dir, "a-b"); err != nil {
		t.Errorf("check of what was written: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || len(left) != 1 || left[0] != file.In(dir) {
		t.Errorf("the folder holds %q, %v", left, err)
	}
	changed := codegen.File{Path: file.Path, Content: append(file.Content, '\n')}
	if err := changed.Check(dir, "a-b"); !errors.As(err, &stale) || stale.Missing {
		t.Errorf("check of another content: %v", err)
	}
	if err := changed.Write(dir, "a-b"); err != nil {
		t.Errorf("rewrite: %v", err)
	}
}

// Two agents can come to one path, and a file may be somebody's own.
func TestWriteReplacesNobodyElsesFile(t *testing.T) {
	dir := t.TempDir()
	first, second := client(t, "python", "a-b"), client(t, "python", "a.b")
	if first.Path != second.Path {
		t.Fatalf("%s, %s: no collision to test", first.Path, second.Path)
	}
	if err := first.Write(dir, "a-b"); err != nil {
		t.Fatal(err)
	}
	var taken *codegen.TakenError
	for _, err := range []error{second.Write(dir, "a.b"), second.Check(dir, "a.b")} {
		if !errors.As(err, &taken) || taken.Owner != "a-b" || !strings.Contains(err.Error(), "agent://a.b") {
			t.Errorf("err = %v, want one that names both agents", err)
		}
	}
	own := client(t, "ts", "mine")
	write(t, own.In(dir), []byte("export const mine = 1;\n"))
	if err := own.Write(dir, "mine"); !errors.As(err, &taken) || taken.Owner != "" {
		t.Errorf("err = %v, want a refusal to replace a file that was not generated", err)
	}
}

// Nothing leads out of the folder, not a link that somebody has put there.
func TestWriteStaysInItsFolder(t *testing.T) {
	out, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "elsewhere")
	file := client(t, "ts", "a")
	if err := os.Symlink(elsewhere, file.In(out)); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	if err := file.Write(out, "a"); err == nil {
		t.Error("a link was followed out of the folder")
	}
	if _, err := os.Stat(elsewhere); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file elsewhere: %v", err)
	}
	outside := codegen.File{Path: "../x.ts", Content: []byte("x")}
	if err := outside.Write(out, "x"); err == nil {
		t.Error("a path led out of the folder")
	}
}

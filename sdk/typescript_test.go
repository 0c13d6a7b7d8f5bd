package sdk_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/internal/npmtest"
	"github.com/agentd/agentd/sdk"
	"github.com/agentd/agentd/skill/worker/conformance"
)

// unpacked are the files of a tarball of npm.
func unpacked(t *testing.T, data []byte) map[string]string {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for r := tar.NewReader(plain); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = string(text)
	}
}

// tree are the files below a folder, by their names in it.
func tree(t *testing.T, folder string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(folder), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(folder, name))
		files[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func names(files map[string]string) []string {
	all := make([]string, 0, len(files))
	for name := range files {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// The tarball is the folder without sources and tests, and a module for each source.
func TestTypeScriptTarball(t *testing.T) {
	archive, err := sdk.TypeScriptTarball()
	tarball := made(t, archive, err)
	if tarball.Name != "agentd-sdk-0.1.0.tgz" {
		t.Errorf("it is called %s", tarball.Name)
	}
	files := unpacked(t, tarball.Data)
	want := map[string]string{}
	for name, text := range tree(t, "typescript/dist") {
		want["package/dist/"+name] = text
	}
	for _, name := range []string{"LICENSE", "README.md", "package.json"} {
		text, err := os.ReadFile(filepath.Join("typescript", name))
		if err != nil {
			t.Fatal(err)
		}
		want["package/"+name] = string(text)
	}
	if !slices.Equal(names(files), names(want)) {
		t.Errorf("it has %q, want %q", names(files), names(want))
	}
	for name, text := range want {
		if files[name] != text {
			t.Errorf("%s is another one", name)
		}
	}
	for source := range tree(t, "typescript/src") {
		for _, ending := range []string{".js", ".d.ts"} {
			if name := "package/dist/" + strings.TrimSuffix(source, ".ts") + ending; want[name] == "" {
				t.Errorf("there is no %s", name)
			}
		}
	}
	folder, err := sdk.TypeScriptPackage()
	if err != nil || len(folder) != len(files) || !slices.ContainsFunc(folder, func(f sdk.Archive) bool { return f.Name == "@agentd/sdk/dist/index.js" }) {
		t.Errorf("the folder has %d files and no error was expected: %v", len(folder), err)
	}
	again, err := sdk.TypeScriptTarball()
	if !bytes.Equal(made(t, again, err).Data, tarball.Data) {
		t.Error("it differs from one time to the next")
	}
}

// modulesFolder is a node_modules folder with what a test needs, or skips it.
func modulesFolder(t *testing.T, packages ...string) string {
	t.Helper()
	folder := os.Getenv(npmtest.Env)
	if folder == "" {
		t.Skip(npmtest.Env + " does not say where the packages of npm are: .ci/run sets it")
	}
	for _, name := range packages {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			t.Skip("npm has not installed it: ", err)
		}
	}
	return folder
}

// tsc compiles with options, and returns what it says.
func tsc(t *testing.T, args ...string) (string, error) {
	t.Helper()
	modules := modulesFolder(t, "typescript/bin/tsc", "@types/node")
	out, err := exec.CommandContext(t.Context(), node(t), append([]string{filepath.Join(modules, "typescript/bin/tsc")}, args...)...).CombinedOutput()
	return string(out), err
}

// dist is what tsc makes of src.
func TestTypeScriptIsCompiled(t *testing.T) {
	out := t.TempDir()
	if text, err := tsc(t, "-p", "typescript", "--outDir", out, "--typeRoots", filepath.Join(modulesFolder(t), "@types")); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	compiled, kept := tree(t, out), tree(t, "typescript/dist")
	if !slices.Equal(names(compiled), names(kept)) {
		t.Errorf("dist has %q, and src makes %q: run npm run build in sdk/typescript", names(kept), names(compiled))
	}
	for name, text := range compiled {
		if kept[name] != text {
			t.Errorf("dist/%s is not what src makes: run npm run build in sdk/typescript", name)
		}
	}
}

// The declarations need the types of nothing: neither of Node.js nor of the DOM. What a test in
// TypeScript expects of them holds.
func TestTypeScriptTypes(t *testing.T) {
	folder := t.TempDir()
	files, err := sdk.TypeScriptPackage()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := filepath.Join(folder, "node_modules", f.Name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, f.Data, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("typescript/test/types.ts")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(folder, "types.ts")
	if err := os.WriteFile(program, text, 0o600); err != nil {
		t.Fatal(err)
	}
	strict := []string{"--ignoreConfig", "--noEmit", "--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess", "--module", "nodenext", "--target", "es2022"}
	for _, with := range [][]string{
		{"--lib", "es2022", "--types", ""},
		{"--lib", "es2022,dom", "--types", ""},
		{"--lib", "es2022", "--types", "node", "--typeRoots", filepath.Join(modulesFolder(t), "@types")},
	} {
		if out, err := tsc(t, slices.Concat(strict, with, []string{program})...); err != nil {
			t.Errorf("%s: %v\n%s", with, err, out)
		}
	}
}

// node is a Node.js that the kit runs on, or skips the test.
func node(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("node")
	if err != nil {
		t.Skip(err)
	}
	if err := exec.Command(path, "-e", "process.exit(+process.versions.node.split('.')[0] < 20 ? 1 : 0)").Run(); err != nil {
		t.Skipf("%s is older than 20", path)
	}
	return path
}

// nodes are that of the machine, and a newer one that npm has installed.
func nodes(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{"node": node(t)}
	if newer := filepath.Join(os.Getenv(npmtest.Env), "node", "bin", "node"); os.Getenv(npmtest.Env) != "" {
		if _, err := os.Stat(newer); err == nil {
			all["newer"] = newer
		}
	}
	return all
}

// The kit's own tests pass.
func TestTypeScript(t *testing.T) {
	tests, err := filepath.Glob("typescript/test/*.test.js")
	if err != nil || len(tests) == 0 {
		t.Fatal("there are no tests: ", err)
	}
	cmd := exec.CommandContext(t.Context(), node(t), append([]string{"--test", "--test-timeout=120000"}, tests...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// A worker with the kit passes the check of workers.
func TestTypeScriptWorker(t *testing.T) {
	for name, path := range nodes(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			cfg := conformance.Config{Command: []string{path, "typescript/test/programs/check.mjs"}, Timeout: time.Minute, Grace: 30 * time.Second}
			checks := 0
			passed, err := conformance.Run(ctx, cfg, func(c conformance.Check) {
				if checks++; c.Outcome == conformance.Failed || c.Outcome == conformance.Skipped && c.Name != "answers the calls given" {
					t.Errorf("%s: %s %s", c.Name, c.Outcome, c.Detail)
				}
			})
			if !passed || err != nil || checks < 15 {
				t.Errorf("%d checks, passed %t: %v", checks, passed, err)
			}
		})
	}
}

func ExampleTypeScriptTarball() {
	tarball, err := sdk.TypeScriptTarball()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("npm install ./" + tarball.Name)
	// Output: npm install ./agentd-sdk-0.1.0.tgz
}

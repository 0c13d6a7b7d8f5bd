package codegen_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/agentd/agentd/codegen"
)

// nodeModulesEnv names the folder node_modules in which npm has installed
// typescript and pyright.
const nodeModulesEnv = "AGENTD_NODE_MODULES"

// nodeTool is the command line of a program in node_modules, or a skip.
func nodeTool(t *testing.T, script ...string) []string {
	t.Helper()
	modules := os.Getenv(nodeModulesEnv)
	if modules == "" {
		t.Skipf("%s is not set: install typescript and pyright with npm and name their node_modules to check generated code with them", nodeModulesEnv)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no Node.js")
	}
	path := filepath.Join(append([]string{modules}, script...)...)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s: %v", nodeModulesEnv, err)
	}
	return []string{node, path}
}

// run runs a command and fails the test, with its output, if it fails.
func run(t *testing.T, dir string, command ...string) string {
	t.Helper()
	return runWith(t, nil, dir, command...)
}

// runWith is run with variables added to the environment.
func runWith(t *testing.T, env []string, dir string, command ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
	}
	return string(out)
}

// tsc checks TypeScript files, with exactOptionalPropertyTypes or without.
func tsc(t *testing.T, exact bool, files ...string) {
	t.Helper()
	command := nodeTool(t, "typescript", "bin", "tsc")
	command = append(command, "--strict", "--noEmit", "--target", "es2022", "--module", "es2022", "--moduleResolution", "bundler",
		"--lib", "es2022", "--types", "", "--noUnusedLocals", "--erasableSyntaxOnly", "--noUncheckedIndexedAccess", "--noPropertyAccessFromIndexSignature",
		"--allowImportingTsExtensions", "--verbatimModuleSyntax")
	if exact {
		command = append(command, "--exactOptionalPropertyTypes")
	}
	run(t, ".", append(command, files...)...)
}

// pyright checks Python files in strict mode, in a folder of their own. They can import
// what is in path.
func pyright(t *testing.T, dir string, path ...string) {
	t.Helper()
	command := nodeTool(t, "pyright", "index.js")
	config, err := json.Marshal(map[string]any{
		"typeCheckingMode": "strict", "pythonVersion": "3.11", "reportUnnecessaryTypeIgnoreComment": "error", "extraPaths": append([]string{}, path...),
	})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "pyrightconfig.json"), config)
	run(t, dir, append(command, "-p", ".")...)
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// goldenFiles writes the golden files of one extension and form below dir, each in a folder
// of its own, and returns their paths.
func goldenFiles(t *testing.T, form, ext, dir string) (files []string) {
	t.Helper()
	golden, err := filepath.Glob(filepath.Join("testdata", form, "*", "*"+ext))
	if err != nil || len(golden) != len(goldens()) {
		t.Fatalf("%d golden files, %v; want %d", len(golden), err, len(goldens()))
	}
	for _, path := range golden {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, form+"_"+filepath.Base(filepath.Dir(path)), filepath.Base(path))
		write(t, file, content)
		files = append(files, file)
	}
	return files
}

// serverBeside writes the skill to be filled in of shapes to dir, with the client that it
// serves by, and returns its path.
func serverBeside(t *testing.T, name, dir string) string {
	t.Helper()
	l := lang(t, name)
	client, server := l.Generate(api(t, goldens()["shapes"])), serverOf(t, l)
	write(t, client.In(dir), client.Content)
	write(t, server.In(dir), server.Content)
	return server.In(dir)
}

// kit is the folder of a kit, sdk/<name>.
func kit(t *testing.T, name string) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "sdk", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Fatal("the kit is not there:", err)
	}
	return dir
}

// linkKit installs the kit for TypeScript in dir, as npm does.
func linkKit(t *testing.T, dir string) {
	t.Helper()
	modules := filepath.Join(dir, "node_modules", "@agentd")
	if err := errors.Join(os.MkdirAll(modules, 0o755), os.Symlink(kit(t, "typescript"), filepath.Join(modules, "sdk"))); err != nil {
		t.Fatal(err)
	}
}

// pythonPath is the folder that has the kit for Python.
func pythonPath(t *testing.T) string { return filepath.Join(kit(t, "python"), "src") }

func TestGoldenGoVets(t *testing.T) {
	t.Parallel()
	run(t, ".", "go", "vet", "./testdata/golden/...", "./testdata/server/...")
}

func TestGoldenTypeScriptCompiles(t *testing.T) {
	t.Parallel()
	nodeTool(t, "typescript", "bin", "tsc")
	dir := t.TempDir()
	linkKit(t, dir)
	files := append(goldenFiles(t, onKit, ".ts", dir), goldenFiles(t, standalone, ".ts", dir)...)
	files = append(files, docsBeside(t, "ts", ".ts", dir)...)
	files = append(files, serverBeside(t, "ts", dir))
	for _, exact := range []bool{false, true} {
		tsc(t, exact, files...)
	}
}

func TestGoldenPythonTypeChecks(t *testing.T) {
	t.Parallel()
	nodeTool(t, "pyright", "index.js")
	dir := t.TempDir()
	goldenPython(t, dir)
	pyright(t, dir, pythonPath(t))
}

// mypy refuses other things than pyright. It judges the golden files, the examples of the
// docs and the types of random schemas, all at once: it takes its time to start. Values are
// left to pyright: mypy does not find the part of a union that a literal is of.
func TestPythonPassesMypy(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("mypy")
	if err != nil {
		t.Skip("there is no mypy")
	}
	dir := t.TempDir()
	goldenPython(t, dir)
	write(t, filepath.Join(dir, "fuzz.py"), generate(t, "python", soundnessContracts()))
	runWith(t, []string{"MYPYPATH=" + pythonPath(t)}, dir, program, "--strict", "--namespace-packages", "--explicit-package-bases", "--python-version", "3.11",
		"--cache-dir", filepath.Join(t.TempDir(), "cache"), ".")
}

// goldenPython writes the golden modules below dir, and the examples of the docs.
func goldenPython(t *testing.T, dir string) {
	t.Helper()
	docsBeside(t, "python", ".py", dir)
	serverBeside(t, "python", dir)
	goldenFiles(t, onKit, ".py", dir)
	goldenFiles(t, standalone, ".py", dir)
}

// Type checkers do not run a module; Python does.
func TestGoldenPythonLoads(t *testing.T) {
	t.Parallel()
	const load = `
import importlib.util, sys
for i, path in enumerate(sys.argv[1:]):
    spec = importlib.util.spec_from_file_location(f"golden{i}", path)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
`
	dir := t.TempDir()
	files := append(goldenFiles(t, onKit, ".py", dir), goldenFiles(t, standalone, ".py", dir)...)
	runWith(t, []string{"PYTHONPATH=" + pythonPath(t)}, ".", append([]string{python3(t), "-B", "-c", load}, files...)...)
}

// python3 is a Python of 3.11 or later, or a skip.
func python3(t *testing.T) string {
	t.Helper()
	path, reason := findPython()
	if reason != "" {
		t.Skip(reason)
	}
	return path
}

// findPython is the interpreter itself, or why there is none. On some machines
// python3 is a script that looks for it, which takes longer than the tests do.
var findPython = sync.OnceValues(func() (path, reason string) {
	path, err := exec.LookPath("python3")
	if err != nil {
		return "", "there is no Python"
	}
	out, err := exec.Command(path, "-c", "import sys; print(sys.executable); sys.exit(sys.version_info < (3, 11))").Output()
	if err != nil {
		return "", "Python is older than 3.11"
	}
	return strings.TrimSpace(string(out)), ""
})

// Members that objects inherit may be absent from a literal, and are what the schema says
// where they are there.
func TestTypeScriptObjectsNeedNotNameWhatTheyInherit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := lang(t, "ts").Standalone().Generate(api(t, goldens()["shapes"]))
	write(t, file.In(dir), file.Content)
	write(t, filepath.Join(dir, "values.ts"), []byte(`
import type { InheritedRequest } from "./shapes";
export const none: InheritedRequest = {};
export const some: InheritedRequest = { other: 1, valueOf: { a: "x" } };
export const all: InheritedRequest = { toString: "text", constructor: 1, valueOf: { hasOwnProperty: true } };
// @ts-expect-error
export const wrong: InheritedRequest = { toString: 1 };
export const read = (r: InheritedRequest) => (typeof r.toString === "string" ? r.toString.length : 0);
`))
	for _, exact := range []bool{false, true} {
		tsc(t, exact, filepath.Join(dir, "values.ts"))
	}
}

// lang is a language by its name.
func lang(t *testing.T, name string) codegen.Language {
	t.Helper()
	l, err := codegen.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

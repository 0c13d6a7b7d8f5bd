package codegen_test

import (
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
		"--lib", "es2022", "--types", "", "--noUnusedLocals", "--erasableSyntaxOnly", "--noUncheckedIndexedAccess", "--noPropertyAccessFromIndexSignature")
	if exact {
		command = append(command, "--exactOptionalPropertyTypes")
	}
	run(t, ".", append(command, files...)...)
}

// pyright checks Python files in strict mode, in a folder of their own.
func pyright(t *testing.T, dir string) {
	t.Helper()
	command := nodeTool(t, "pyright", "index.js")
	const config = `{"typeCheckingMode": "strict", "pythonVersion": "3.11", "reportUnnecessaryTypeIgnoreComment": "error"}`
	write(t, filepath.Join(dir, "pyrightconfig.json"), []byte(config))
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

func goldenFiles(t *testing.T, ext string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "golden", "*", "*"+ext))
	if err != nil || len(files) != len(goldens()) {
		t.Fatalf("%d golden files, %v; want %d", len(files), err, len(goldens()))
	}
	return files
}

func TestGoldenGoVets(t *testing.T) {
	t.Parallel()
	run(t, ".", "go", "vet", "./testdata/golden/...")
}

func TestGoldenTypeScriptCompiles(t *testing.T) {
	t.Parallel()
	nodeTool(t, "typescript", "bin", "tsc")
	files := append(goldenFiles(t, ".ts"), docsBeside(t, "ts", ".ts", t.TempDir())...)
	for _, exact := range []bool{false, true} {
		tsc(t, exact, files...)
	}
}

func TestGoldenPythonTypeChecks(t *testing.T) {
	t.Parallel()
	nodeTool(t, "pyright", "index.js")
	dir := t.TempDir()
	goldenPython(t, dir)
	pyright(t, dir)
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
	run(t, dir, program, "--strict", "--namespace-packages", "--explicit-package-bases", "--python-version", "3.11",
		"--cache-dir", filepath.Join(t.TempDir(), "cache"), ".")
}

// goldenPython writes the golden modules below dir, each in a folder of its own, and the
// examples of the docs.
func goldenPython(t *testing.T, dir string) {
	t.Helper()
	docsBeside(t, "python", ".py", dir)
	for _, path := range goldenFiles(t, ".py") {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, strings.ReplaceAll(filepath.Dir(path), string(filepath.Separator), "_"), filepath.Base(path)), content)
	}
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
	run(t, ".", append([]string{python3(t), "-B", "-c", load}, goldenFiles(t, ".py")...)...)
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
	file := lang(t, "ts").Generate(api(t, goldens()["shapes"]))
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

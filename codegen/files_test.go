package codegen_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// awkward are ids whose plain file or package would not do: some language, some tool or
// some system gives them a meaning.
var awkward = strings.Fields(`init con aux.x documentation x.d.y x.d x.js logging select internal main vendor testdata
	context typed json import string error nil test a-test x.test asyncio typing socket agentd func index com1`)

// Whatever an agent is called: a program that stands beside its client, as generated ones
// do beside those that use them, imports it and runs.
func TestClientsOfAwkwardAgentsAreUsable(t *testing.T) {
	t.Parallel()
	t.Run("go", func(t *testing.T) {
		t.Parallel()
		// An overlay puts the files into this module, where their imports are found.
		place, err := filepath.Abs(filepath.Join("testdata", "awkward"))
		if err != nil {
			t.Fatal(err)
		}
		dir, replace := t.TempDir(), map[string]string{}
		put := func(path string, content []byte) {
			write(t, filepath.Join(dir, path), content)
			replace[filepath.Join(place, path)] = filepath.Join(dir, path)
		}
		program, uses := "package main\n\nimport (\n", ""
		for _, id := range awkward {
			file := client(t, "go", id)
			put(file.Path, file.Content)
			pkg := path.Dir(file.Path)
			program += "\t\"github.com/agentd/agentd/codegen/testdata/awkward/" + pkg + "\"\n"
			uses += "\t_ = " + pkg + ".NewClient\n"
		}
		put("program.go", []byte(program+")\n\nfunc main() {\n"+uses+"}\n"))
		overlay, err := json.Marshal(map[string]any{"Replace": replace})
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "overlay.json"), overlay)
		run(t, ".", "go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", os.DevNull, "./testdata/awkward")
	})
	t.Run("python", func(t *testing.T) {
		t.Parallel()
		python, dir := python3(t), t.TempDir()
		program := ""
		for _, id := range awkward {
			file := client(t, "python", id)
			write(t, file.In(dir), file.Content)
			program += "import " + strings.TrimSuffix(file.Path, ".py") + " as m\nm.Client('socket'); assert m.ADDRESS == 'agent://" + id + "'\n"
		}
		write(t, filepath.Join(dir, "program.py"), []byte(program+"import logging.config, asyncio, http.client, selectors\n"))
		run(t, dir, python, "-B", "program.py")

		// The kit is found, too: no client is called like it.
		path := pythonPath(t)
		for _, id := range awkward {
			file := lang(t, "python").Generate(loose(t, id))
			write(t, file.In(dir), file.Content)
		}
		runWith(t, []string{"PYTHONPATH=" + path}, dir, python, "-B", "program.py")
	})
	t.Run("typescript", func(t *testing.T) {
		t.Parallel()
		nodeTool(t, "typescript", "bin", "tsc")
		dir, program := t.TempDir(), ""
		for i, id := range awkward {
			file := client(t, "ts", id)
			write(t, file.In(dir), file.Content)
			module := "./" + strings.TrimSuffix(file.Path, ".ts")
			program += fmt.Sprintf("import { requestAgent as m%d } from \"%s.js\";\nawait m%d(\"x\", {});\n", i, module, i)
		}
		write(t, filepath.Join(dir, "program.ts"), []byte(program))
		tsc(t, true, filepath.Join(dir, "program.ts"))
	})
}

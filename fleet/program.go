package fleet

import (
	"path/filepath"
	"slices"
	"strings"
)

// Path returns the absolute path of what the command names: relative paths begin at Dir.
func (p *Process) Path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(p.Dir, name)
}

// Script returns the file that an interpreter is given, as the command names it, or "": the
// first argument that is no option, if it looks like the name of a program's text.
func (p *Process) Script() string {
	suffixes := []string{".py", ".js", ".mjs", ".cjs", ".ts", ".sh", ".rb", ".pl", ".php", ".lua", ".jar"}
	for _, arg := range p.Command[1:] {
		if strings.HasPrefix(arg, "-") {
			continue
		}
		// A command line for a shell, such as sh -c 'run x.py', is no name.
		if slices.Contains(suffixes, filepath.Ext(arg)) && !strings.ContainsAny(arg, " \t\n;|&$*") {
			return arg
		}
		return ""
	}
	return ""
}

// programs returns the absolute paths of what the command runs, as far as it shows them:
// a program that is named by a path, a script, and the files or the package of a `go run`,
// which agentd builds without a sandbox.
func (p *Process) programs() (paths []string) {
	if strings.ContainsRune(p.Command[0], filepath.Separator) {
		paths = append(paths, p.Path(p.Command[0]))
	}
	if script := p.Script(); script != "" {
		paths = append(paths, p.Path(script))
	}
	if filepath.Base(p.Command[0]) != "go" || len(p.Command) < 3 || p.Command[1] != "run" {
		return paths
	}
	for _, word := range p.Command[2:] {
		if strings.HasPrefix(word, ".") || strings.HasSuffix(word, ".go") || filepath.IsAbs(word) {
			paths = append(paths, p.Path(word))
		}
	}
	return paths
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
)

// A pkg is one package as go list describes it.
type pkg struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Module     struct{ Path string }

	TestGoFiles, XTestGoFiles []string
}

// name is the import path below the module, as the report shows it.
func (p pkg) name() string {
	if p.ImportPath == p.Module.Path {
		return "."
	}
	return strings.TrimPrefix(p.ImportPath, p.Module.Path+"/")
}

// selectPackages returns the packages that the command line names, without
// those that have no tests or, with -changed, no changed Go file.
func selectPackages(ctx context.Context, o options) ([]pkg, error) {
	out, err := output(ctx, o.dir, "go", append([]string{"list", "-json=ImportPath,Dir,GoFiles,Module,TestGoFiles,XTestGoFiles"}, o.patterns...)...)
	if err != nil {
		return nil, err
	}
	var changed map[string]bool
	if o.changed != "" {
		if changed, err = changedFolders(ctx, o.dir, o.changed); err != nil {
			return nil, err
		}
	}
	var packages []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		// Without tests every mutant survives, which measures nothing.
		tested := len(p.TestGoFiles)+len(p.XTestGoFiles) > 0
		if tested && len(p.GoFiles) > 0 && (changed == nil || changed[p.Dir]) {
			packages = append(packages, p)
		}
	}
}

// changedFolders are the folders with a Go file that differs between the tree
// as it is and the commit where it left revision. Test files count:
// a weaker test is what the tool is there to find.
func changedFolders(ctx context.Context, dir, revision string) (map[string]bool, error) {
	top, err := output(ctx, dir, "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	// The merge base, not the tip of revision: commits made there since must not
	// count as changes here.
	committed, err := output(ctx, dir, "git", "diff", "--name-only", "--merge-base", revision)
	if err != nil {
		return nil, err
	}
	// New files that git does not know yet would otherwise be missed.
	untracked, err := output(ctx, dir, "git", "ls-files", "--others", "--exclude-standard", "--full-name")
	if err != nil {
		return nil, err
	}
	folders := map[string]bool{}
	for name := range strings.Lines(string(committed) + string(untracked)) {
		if name = strings.TrimSpace(name); strings.HasSuffix(name, ".go") {
			folders[filepath.Join(strings.TrimSpace(string(top)), filepath.Dir(filepath.FromSlash(name)))] = true
		}
	}
	return folders, nil
}

// output runs a command and returns what it prints. Its error holds what the
// command wrote about it.
func output(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return out, nil
}

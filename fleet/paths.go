package fleet

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/agentd/agentd/internal/strictyaml"
)

// paths resolves the paths of a fleet's files.
type paths struct {
	root  string // absolute
	real  string // root after symbolic links
	shown string // root as faults print it
}

// newPaths prepares to resolve paths of the fleet in root.
func newPaths(root string) (paths, error) {
	abs, err := filepath.Abs(root)
	if err != nil {
		return paths{}, fmt.Errorf("fleet root: %w", err)
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return paths{}, fmt.Errorf("fleet root: %w", err)
	}
	return paths{root: abs, real: real, shown: root}, nil
}

// name is how faults print an absolute path below the root.
func (p paths) name(abs string) string {
	rel, err := filepath.Rel(p.root, abs)
	if err != nil || !filepath.IsLocal(rel) {
		return abs
	}
	return filepath.Join(p.shown, rel)
}

// inside resolves a path that must stay inside the root, "" if it does not.
// A relative path starts at base.
func (p paths) inside(v strictyaml.Value, base string) string {
	return p.resolve(v, base, false)
}

// carried resolves a path that is not read here: absolute ones are kept as
// they are.
func (p paths) carried(v strictyaml.Value) string {
	return p.resolve(v, p.root, true)
}

// resolve makes a path of a file absolute, and keeps it inside the root.
func (p paths) resolve(v strictyaml.Value, base string, absoluteAnywhere bool) string {
	text := v.Text()
	if text == "" {
		return ""
	}
	if strings.ContainsRune(text, 0) {
		v.Fault("the path holds a NUL byte", "")
		return ""
	}
	path := filepath.FromSlash(text)
	if filepath.IsAbs(path) {
		if path = filepath.Clean(path); absoluteAnywhere {
			return path
		}
	} else {
		path = filepath.Join(base, path)
	}
	if !within(p.root, path) || !p.linksStayInside(path) {
		v.Fault("the path leads out of the fleet's root", "move the file below fleet.yaml")
		return ""
	}
	return path
}

// linksStayInside follows the symbolic links of what exists of a path.
func (p paths) linksStayInside(path string) bool {
	for within(p.root, path) {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			return within(p.real, real)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return true // unreadable: whoever opens it gets the system's error
		}
		path = filepath.Dir(path)
	}
	return true
}

// within reports whether path is root or below it, by their names.
func within(root, path string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && filepath.IsLocal(rel)
}

package fleet

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/agentd/agentd/internal/strictyaml"
)

// paths resolves the paths that a fleet's files name.
type paths struct {
	root  string    // absolute
	real  string    // root after symbolic links
	shown string    // root as faults print it
	asked *[]string // gets the paths whose links were followed; nil for nobody
}

// newPaths returns the resolver for the fleet in root, which must exist.
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

// name returns the form in which faults show an absolute path: relative to
// the root as it was given, if the path is below it.
func (p paths) name(abs string) string {
	rel, err := filepath.Rel(p.root, abs)
	if err != nil || !filepath.IsLocal(rel) {
		return abs
	}
	return filepath.Join(p.shown, rel)
}

// inside resolves a path that must stay inside the root. A relative path
// starts at base. It returns "" for no path, and for one that leads out,
// which it reports.
func (p paths) inside(v strictyaml.Value, base string) string {
	return p.resolve(v, base, false)
}

// carried resolves a path that this package does not read. An absolute path
// may lead anywhere, such as to a secrets file in /etc.
func (p paths) carried(v strictyaml.Value) string {
	return p.resolve(v, p.root, true)
}

// resolve makes a path absolute. Relative paths must stay inside the root,
// and absolute ones too unless absoluteAnywhere is set.
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
	// First by name, which needs no disk, then through links: a link inside the
	// root may lead out of it.
	if !within(p.root, path) || !p.linksStayInside(path) {
		v.Fault("the path leads out of the fleet's root", "move the file below fleet.yaml")
		return ""
	}
	if p.asked != nil {
		*p.asked = append(*p.asked, path)
	}
	return path
}

// linksStayInside follows the symbolic links in the part of a path that
// exists. What does not exist yet cannot be a link.
func (p paths) linksStayInside(path string) bool {
	for within(p.root, path) {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			return within(p.real, real)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return true // unreadable: opening it later returns the system's error
		}
		path = filepath.Dir(path)
	}
	return true
}

// within reports whether path is root or below it, judged by the names alone.
func within(root, path string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && filepath.IsLocal(rel)
}

package rootfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/truncate"
)

// DefaultMaxBytes bounds a file where the options do not.
const DefaultMaxBytes = 1 << 20

// A Folder is one that may be read.
type Folder struct {
	// Name is how paths begin. A tree of one folder may leave it empty: paths then begin
	// in it.
	Name string
	// Path is where it is. A link is followed once, when the tree is opened.
	Path string
	// Write allows files to be written.
	Write bool
}

// Options are the rules of a tree.
type Options struct {
	HardLinks bool  // also files with several names
	MaxBytes  int64 // of a file; DefaultMaxBytes if 0
}

// A Tree is some folders. It is safe for concurrent use.
type Tree struct {
	options Options
	names   []string
	folders map[string]*folder
}

type folder struct {
	Folder
	real string // Path without links, as it was when the tree was opened

	mu   sync.Mutex
	root *os.Root
}

// Open opens the folders. It is an error if one is not there or none is given, and if
// names are missing or used twice.
func Open(folders []Folder, options Options) (*Tree, error) {
	if options.MaxBytes <= 0 {
		options.MaxBytes = DefaultMaxBytes
	}
	t := &Tree{options: options, folders: map[string]*folder{}}
	for _, f := range folders {
		if err := t.add(f, len(folders) == 1); err != nil {
			t.Close()
			return nil, err
		}
	}
	if len(folders) == 0 {
		return nil, errors.New("no folder is named")
	}
	slices.Sort(t.names)
	return t, nil
}

func (t *Tree) add(f Folder, only bool) error {
	if f.Name == "" && !only {
		return fmt.Errorf("folder %q has no name, and there are several", f.Path)
	}
	if f.Name != "" && (checkPath(f.Name) != nil || strings.Contains(f.Name, "/")) {
		return fmt.Errorf("%q is no name for a folder: it is neither . nor .. and has no slash", f.Name)
	}
	if t.folders[f.Name] != nil {
		return fmt.Errorf("two folders have the name %q", f.Name)
	}
	absolute, err := filepath.Abs(f.Path)
	if err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(absolute)
	if err != nil {
		return err
	}
	if real == "/" {
		return fmt.Errorf("folder %q is the root of the file system: name one below it", f.Path)
	}
	opened := &folder{Folder: f, real: real}
	if opened.root, err = os.OpenRoot(real); err != nil {
		return err
	}
	t.folders[f.Name] = opened
	t.names = append(t.names, f.Name)
	return nil
}

// Names returns the names of the folders, sorted.
func (t *Tree) Names() []string { return slices.Clone(t.names) }

// Close closes the folders.
func (t *Tree) Close() {
	for _, f := range t.folders {
		f.mu.Lock()
		f.root.Close()
		f.mu.Unlock()
	}
}

// locate finds the folder of a path, and the path within it, "." for the folder itself.
func (t *Tree) locate(path string) (*folder, *os.Root, string, error) {
	if err := checkPath(path); err != nil {
		return nil, nil, "", err
	}
	name, rest := "", path
	if t.folders[""] == nil {
		var below bool
		if name, rest, below = strings.Cut(path, "/"); !below {
			rest = "."
		}
	}
	f := t.folders[name]
	if f == nil {
		return nil, nil, "", failure.Errorf(failure.NotFound, "there is no folder %s: paths begin with %s",
			truncate.Quote(name), strings.Join(t.names, ", "))
	}
	root, err := f.current()
	if err != nil {
		return nil, nil, "", failure.Errorf(failure.Unavailable, "the folder %s is not there at present", truncate.Quote(name)).Because(err)
	}
	return f, root, rest, nil
}

// current returns the folder, and opens it again when it was removed and made anew, or
// another one was moved to its place, as deployments do. It must then be a folder at the
// same place: a link that somebody put there leads elsewhere.
func (f *folder) current() (*os.Root, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := f.root.Stat(".")
	if at, atErr := os.Lstat(f.real); err == nil && links(info) > 0 && (atErr != nil || !at.IsDir() || os.SameFile(info, at)) {
		return f.root, nil
	}
	again, err := os.OpenRoot(f.real)
	if err != nil {
		return nil, err
	}
	opened, err := again.Stat(".")
	if err == nil {
		var at fs.FileInfo
		if at, err = os.Lstat(f.real); err == nil && !os.SameFile(opened, at) {
			err = errors.New("a link took the place of the folder")
		}
	}
	if real, evalErr := filepath.EvalSymlinks(f.real); err == nil && (evalErr != nil || real != f.real) {
		err = errors.New("the folder moved")
	}
	if err != nil {
		again.Close()
		return nil, err
	}
	// A reader may still hold the old one: closing it ends no file that is open, and the
	// next step of that reader fails, rather than to mix two folders.
	f.root.Close()
	f.root = again
	return again, nil
}

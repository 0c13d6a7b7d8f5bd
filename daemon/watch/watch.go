package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// DefaultQuiet is how long the files must stay unchanged before a change is
// reported, so that an operation on several of them counts as one change.
const DefaultQuiet = 250 * time.Millisecond

// A Watcher reports changes of a set of files.
type Watcher struct {
	// Files returns their absolute paths. It is called again after each change, since
	// changed files may refer to other files. A file that does not exist yet is
	// watched for, provided that its folder exists.
	Files func() []string
	// Began is called once, when changes are noticed from now on. It may be nil.
	Began func()
	// Changed is called after a change, from one goroutine.
	Changed func()
	// Quiet is [DefaultQuiet] when 0.
	Quiet time.Duration
	// Failed is called with the error for a folder that cannot be watched; the folder
	// is tried again after the next change. It may be nil.
	Failed func(error)
}

// kubernetesData is the symbolic link that the kubelet replaces when a mounted
// ConfigMap changes. The files beside it are links through it, and so they change
// without an event of their own.
const kubernetesData = "..data"

// Run watches until ctx ends. It returns an error when nothing can be watched at
// all, for example when the system has no watches left.
func (w *Watcher) Run(ctx context.Context) error {
	quiet := w.Quiet
	if quiet == 0 {
		quiet = DefaultQuiet
	}
	events, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	defer func() { _ = events.Close() }() // nothing is written through it
	watched := w.add(events)
	if w.Began != nil {
		w.Began()
	}
	settled := time.NewTimer(time.Hour)
	settled.Stop()
	defer settled.Stop()
	for {
		select {
		case e, ok := <-events.Events:
			if !ok {
				return errors.New("watch: the system ended the watch")
			}
			if watched[e.Name] || filepath.Base(e.Name) == kubernetesData {
				settled.Reset(quiet)
			}
		case err := <-events.Errors:
			w.fail(err)
			settled.Reset(quiet) // events may have been lost
		case <-settled.C:
			w.Changed()
			watched = w.add(events)
		case <-ctx.Done():
			return nil
		}
	}
}

// add watches the folders of the files rather than the files: a watch belongs to
// the inode, and would not see the file that replaces it.
func (w *Watcher) add(events *fsnotify.Watcher) (watched map[string]bool) {
	watched = map[string]bool{}
	for _, file := range w.Files() {
		watched[filepath.Clean(file)] = true
		if err := events.Add(filepath.Dir(file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			w.fail(fmt.Errorf("watch %s: %w", filepath.Dir(file), err))
		}
	}
	return watched
}

func (w *Watcher) fail(err error) {
	if w.Failed != nil {
		w.Failed(err)
	}
}

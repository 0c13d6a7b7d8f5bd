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

// DefaultQuiet is how long the files must have been left alone: what changes several
// of them is seen as one change.
const DefaultQuiet = 250 * time.Millisecond

// A Watcher watches files.
type Watcher struct {
	// Files names them, absolute. It is asked again after each change: the files may
	// name others. One that does not exist yet is waited for, if its folder does.
	Files func() []string
	// Changed is called after a change, from one goroutine.
	Changed func()
	// Quiet is [DefaultQuiet] when 0.
	Quiet time.Duration
	// Failed hears of folders that cannot be watched; they are tried again with the
	// next change. It may be nil.
	Failed func(error)
}

// kubernetesData is the link that is swapped when a mounted ConfigMap changes; the
// files beside it are links through it.
const kubernetesData = "..data"

// Run watches until ctx ends. The error says that nothing can be watched at all, as
// where the system has no watches left.
func (w *Watcher) Run(ctx context.Context) error {
	quiet := w.Quiet
	if quiet == 0 {
		quiet = DefaultQuiet
	}
	events, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	defer func() { _ = events.Close() }() // only read from
	watched := w.add(events)
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

// add watches the folders of the files, since a file that is replaced takes its
// watch along.
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

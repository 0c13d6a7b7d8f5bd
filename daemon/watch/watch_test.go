package watch_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/agentd/agentd/daemon/watch"
)

const limit = 30 * time.Second

// A scene is a folder under watch.
type scene struct {
	t       *testing.T
	dir     string
	changes chan struct{}
}

func newScene(t *testing.T, files ...string) *scene {
	t.Helper()
	s := &scene{t: t, dir: t.TempDir(), changes: make(chan struct{}, 100)}
	ready := make(chan struct{})
	var once sync.Once
	w := &watch.Watcher{
		Files: func() (all []string) {
			for _, f := range files {
				all = append(all, filepath.Join(s.dir, f))
			}
			// Run has added the folders when it calls this again, so begin with one change.
			once.Do(func() { close(ready) })
			return all
		},
		Changed: func() { s.changes <- struct{}{} },
		Quiet:   20 * time.Millisecond,
		Failed:  func(err error) { t.Error(err) },
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	<-ready
	return s
}

func (s *scene) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// until does something again and again until it is seen: the watch may begin a
// moment after the scene.
func (s *scene) until(what string, do func()) {
	s.t.Helper()
	deadline := time.After(limit)
	for {
		do()
		select {
		case <-s.changes:
			return
		case <-time.After(200 * time.Millisecond):
		case <-deadline:
			s.t.Fatalf("%s is not seen", what)
		}
	}
}

func TestChangesAreSeen(t *testing.T) {
	s := newScene(t, "a.yaml", "later.yaml")
	n := 0
	s.until("a file that is written", func() { n++; s.write("a.yaml", fmt.Sprint(n)) })
	s.until("a file that is replaced", func() {
		s.write("new", fmt.Sprint(n))
		if err := os.Rename(filepath.Join(s.dir, "new"), filepath.Join(s.dir, "a.yaml")); err != nil {
			t.Fatal(err)
		}
	})
	s.until("a file that is made later", func() { n++; s.write("later.yaml", fmt.Sprint(n)) })
	s.until("a file that is removed", func() {
		s.write("a.yaml", "")
		if err := os.Remove(filepath.Join(s.dir, "a.yaml")); err != nil {
			t.Fatal(err)
		}
	})
}

// A mounted ConfigMap: the file is a link through ..data, which is swapped.
func TestKubernetesVolumes(t *testing.T) {
	s := newScene(t, "a.yaml")
	link := func(target, name string) {
		t.Helper()
		temporary := filepath.Join(s.dir, "tmp")
		if err := os.Symlink(target, temporary); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(temporary, filepath.Join(s.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	s.until("the first version", func() {
		version := fmt.Sprintf("..v%d", n)
		n++
		if err := os.Mkdir(filepath.Join(s.dir, version), 0o700); err != nil {
			t.Fatal(err)
		}
		s.write(version+"/a.yaml", fmt.Sprint(n))
		link(version, "..data")
	})
	link("..data/a.yaml", "a.yaml")
	s.until("a swapped volume", func() { link(fmt.Sprintf("..v%d", n-1), "..data") })
}

// What changes many files at once is one change, and what changes others is none.
func TestManyWritesAreOneChange(t *testing.T) {
	s := newScene(t, "a.yaml")
	s.until("the first write", func() { s.write("a.yaml", "") })
	for len(s.changes) > 0 {
		<-s.changes
	}
	s.write("other.yaml", "")
	for range 50 {
		s.write("a.yaml", "x")
	}
	select {
	case <-s.changes:
	case <-time.After(limit):
		t.Fatal("the change is not seen")
	}
	if n := len(s.changes); n > 2 {
		t.Errorf("%d more changes", n)
	}
}

package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A call does not wait for a pipe that a skill has put in the place of its program.
func TestPipeInPlaceOfAProgram(t *testing.T) {
	t.Parallel()
	folder := Real(t.TempDir())
	pipe, script := filepath.Join(folder, "pipe"), filepath.Join(folder, "script")
	if err := syscall.Mkfifo(pipe, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(script, []byte("#!"+pipe+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for program, want := range map[string][]string{pipe: {pipe}, script: {script, pipe}} {
		found := make(chan []string, 1)
		go func() { found <- interpreters(program, nil) }()
		select {
		case got := <-found:
			if !slices.Equal(got, want) {
				t.Errorf("%s takes %q", program, got)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("it waits for %s", program)
		}
	}
}

// What is not for everybody is found, and a folder that is too large to see all of it counts
// as such as a whole, while those beside it do not.
func TestPrivate(t *testing.T) {
	t.Parallel()
	root := filepath.Join(Real(t.TempDir()), "etc")
	for name, mode := range map[string]os.FileMode{
		"key": 0o600, "hosts": 0o644, "closed/file": 0o644, "unlisted/file": 0o644, "ssl/certs/ca": 0o644, "ssl/private": 0o640,
		"large/1": 0o644, "large/2": 0o644, "large/3": 0o644, "large/4": 0o644, "large/key": 0o600,
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.WriteFile(path, nil, mode), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
	}
	for name, mode := range map[string]os.FileMode{"": 0o755, "closed": 0o750, "unlisted": 0o744, "ssl": 0o755, "ssl/certs": 0o755, "large": 0o755} {
		if err := os.Chmod(filepath.Join(root, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("key", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	const atTop, inSSL, inCerts, inLarge = 7, 2, 1, 5
	for _, test := range []struct {
		most            int
		private, unseen []string
	}{
		{atTop + inSSL + inCerts + inLarge, []string{"closed", "key", "large/key", "ssl/private", "unlisted"}, nil},
		{atTop + inSSL + inCerts + inLarge - 1, []string{"closed", "key", "large/key", "ssl/certs", "ssl/private", "unlisted"}, []string{"ssl/certs"}},
		{atTop, []string{"closed", "key", "large", "ssl", "unlisted"}, []string{"large", "ssl"}},
		{atTop - 1, []string{""}, []string{""}},
	} {
		private, unseen := Private(root, test.most)
		for _, list := range [][]string{private, unseen} {
			for i, path := range list {
				list[i] = strings.TrimPrefix(strings.TrimPrefix(path, root), "/")
			}
			slices.Sort(list)
		}
		if !slices.Equal(private, test.private) || !slices.Equal(unseen, test.unseen) {
			t.Errorf("of %d entries at most: %q, unseen %q", test.most, private, unseen)
		}
	}
}

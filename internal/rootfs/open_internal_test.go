package rootfs

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/agentd/agentd/internal/failure"
)

// What was swapped in after the first look is refused by its descriptor, at once.
func TestOpenedIsJudged(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.WriteFile(in("file"), nil, 0o600), os.WriteFile(in("other"), nil, 0o600), os.Link(in("other"), in("hard")),
		unix.Mkfifo(in("pipe"), 0o600), os.Mkdir(in("folder"), 0o700), os.Symlink("/proc/self/environ", in("outside"))); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, want := range map[string]failure.Code{
		"file": "", "hard": failure.NotAllowed, "pipe": failure.NotAllowed, "outside": failure.NotAllowed, "folder": failure.InvalidArgument,
	} {
		file, _, err := new(Tree).openJudged(root, name, name)
		if err == nil {
			_ = file.Close()
		}
		if e := failure.As(err); (e == nil) != (want == "") || e != nil && e.Code != want {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// A hard link that is taken away once it is open leaves a file with one name: another one.
func TestNameIsTakenAway(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems do not say by which name a file was opened")
	}
	dir := t.TempDir()
	outside, inside := filepath.Join(t.TempDir(), "secret"), filepath.Join(dir, "file")
	if err := errors.Join(os.WriteFile(outside, nil, 0o600), os.Link(outside, inside)); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(inside)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, step := range []struct {
		do   func() error
		want failure.Code
	}{
		{func() error { return nil }, failure.NotAllowed},
		{func() error { return os.Remove(inside) }, failure.Unavailable},
		{func() error { return errors.Join(os.Link(outside, inside), os.Remove(inside)) }, failure.Unavailable},
		{func() error { return os.Rename(outside, inside) }, failure.Unavailable},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if _, err := new(Tree).judgeOpened("file", file); failure.As(err) == nil || failure.As(err).Code != step.want {
			t.Errorf("%v, want %s", err, step.want)
		}
	}
}

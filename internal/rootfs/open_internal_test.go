package rootfs

import (
	"errors"
	"os"
	"path/filepath"
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

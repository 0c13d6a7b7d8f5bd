package daemon

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentd/agentd/fleet"
)

// What skills of other users have left in an earlier run, which was killed, goes with the
// next one, also if no skill has another user any more. Without either there is no place for
// them.
func TestLeftOversOfOtherUsers(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	d := &Daemon{cfg: Config{Paths: Paths{State: "/state"}}, log: slog.New(slog.DiscardHandler)}
	d.member.Store(&fleet.Member{ID: "a"})
	if c, err := d.openOthers(&confinement{}, false); err != nil || c.others != nil {
		t.Errorf("%+v, %v", c, err)
	}
	left := filepath.Join(placeName(othersPlace), "calls", d.agentFolder(), "1", "folder")
	if err := os.MkdirAll(left, 0o700); err != nil {
		t.Fatal(err)
	}
	c, err := d.openOthers(&confinement{}, false)
	if err != nil || c.others == nil {
		t.Fatalf("%+v, %v", c, err)
	}
	defer c.others.folders.Close()
	if _, err := os.Stat(filepath.Dir(left)); !os.IsNotExist(err) {
		t.Errorf("it is left: %v", err)
	}
	if info, err := os.Stat(placeName(othersPlace)); err != nil || info.Mode().Perm() != 0o711 {
		t.Errorf("%v, %v", info, err)
	}
}

// Without a folder for temporary files an agent does not start, and says which variable names one.
func TestNoTemporaryFolder(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "gone"))
	d := &Daemon{log: slog.New(slog.DiscardHandler)}
	_, err := d.temporaryBase("skills", func(string) error { return os.ErrPermission })
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "TMPDIR") {
		t.Errorf("%v", err)
	}
}

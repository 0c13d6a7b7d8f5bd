package auditchain_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/internal/audittest"
)

// inFolder opens a log in a folder of its own, which may be moved, with three
// records.
func inFolder(t *testing.T) (l *auditchain.Log, folder string) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := auditchain.Open(t.Context(), filepath.Join(folder, "audit.db"), auditchain.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	audittest.Fill(t, l, 3)
	audittest.Publish(t, l)
	return l, folder
}

// goesOn checks that a log takes records again, has lost none, and that its readers
// see the new ones.
func goesOn(t *testing.T, l *auditchain.Log, records int64) {
	t.Helper()
	audittest.Append(t, l, audittest.Violation(9))
	if s, err := l.Status(t.Context()); err != nil || s.Broken != nil || s.Records != records {
		t.Errorf("%+v, %v", s, err)
	}
	audittest.WantIntact(t, audittest.Verify(t, l.Reader, auditchain.VerifyOptions{}), records)
}

// copyFolder copies the files of a log, for their owner alone.
func copyFolder(t *testing.T, to, from string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(to)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if err := os.Chmod(filepath.Join(to, f.Name()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A log that a fault of the disk has broken goes on without a restart.
func TestReopenAfterAFaultOfTheDisk(t *testing.T) {
	t.Parallel()
	disk := &audittest.Disk{}
	l, err := auditchain.OpenWith(t.Context(), filepath.Join(t.TempDir(), "audit.db"), auditchain.Options{}, disk.Connect)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	// The first commit signs, whichever of these it has; the record after them is unsigned.
	audittest.Fill(t, l, 3)
	audittest.Append(t, l, audittest.Violation(3))
	if err := l.Reopen(t.Context()); err != nil {
		t.Errorf("a sound log: %v", err)
	}
	disk.FailNext("COMMIT", 0, false)
	_, err = l.Append(t.Context(), audittest.Violation(1))
	audittest.WantCode(t, err, auditchain.CodeIO)
	// The fault has not passed: the log stays broken, and may be tried again.
	disk.FailNext("BEGIN IMMEDIATE", 0, false)
	disk.FailNext("INSERT OR REPLACE INTO checkpoints", 0, false)
	if err := l.Reopen(t.Context()); !errors.Is(err, audittest.ErrDisk) {
		t.Errorf("the disk fails still: %v", err)
	}
	if _, err := l.Append(t.Context(), audittest.Violation(1)); !errors.Is(err, audittest.ErrDisk) {
		t.Errorf("a broken log takes a record: %v", err)
	}
	if err := l.Reopen(t.Context()); err != nil {
		t.Fatal(err)
	}
	goesOn(t, l, 5)
}

// Files that are moved away are noticed without an append, and the log goes on when
// they are back. Nothing takes their place meanwhile.
func TestReopenAfterTheFolderIsBack(t *testing.T) {
	t.Parallel()
	l, folder := inFolder(t)
	if err := os.Rename(folder, folder+"-away"); err != nil {
		t.Fatal(err)
	}
	s, err := l.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	audittest.WantCode(t, s.Broken, auditchain.CodeIO)
	audittest.WantCode(t, l.Reopen(t.Context()), auditchain.CodeIO)
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	audittest.WantCode(t, l.Reopen(t.Context()), auditchain.CodeIO)
	if left, err := os.ReadDir(folder); err != nil || len(left) != 0 {
		t.Errorf("in the empty folder are %v, %v", left, err)
	}
	if err := errors.Join(os.Remove(folder), os.Rename(folder+"-away", folder), l.Reopen(t.Context())); err != nil {
		t.Fatal(err)
	}
	goesOn(t, l, 4)
}

// What lies at the path must be this log, with everything that was acknowledged: an
// older copy and another log are refused, for as long as they are there.
func TestReopenRefusesOtherFiles(t *testing.T) {
	t.Parallel()
	l, folder := inFolder(t)
	old := filepath.Join(t.TempDir(), "old")
	copyFolder(t, old, folder)
	audittest.Append(t, l, audittest.Violation(4))
	_, other := inFolder(t)
	if err := os.Rename(folder, folder+"-away"); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		files string
		code  auditchain.Code
	}{"an old copy": {old, auditchain.CodeRollback}, "another log": {other, auditchain.CodeTampered}} {
		copyFolder(t, folder, test.files)
		_, _ = l.Status(t.Context())
		if err := l.Reopen(t.Context()); auditchain.CodeOf(err) != test.code {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := l.Append(t.Context(), audittest.Violation(5)); err == nil {
			t.Errorf("%s takes records", name)
		}
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Rename(folder+"-away", folder), l.Reopen(t.Context())); err != nil {
		t.Fatal(err)
	}
	goesOn(t, l, 5)
}

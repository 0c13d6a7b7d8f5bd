package auditchain_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/internal/audittest"
)

// readOnly makes a folder that nothing can be written to, with the files of a folder
// in it. It skips the test where neither permissions nor mounts bring that about.
func readOnly(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	lock := mountReadOnly(t, to)
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	lock()
	if f, err := os.CreateTemp(to, "x"); err == nil {
		_ = f.Close()
		t.Fatal("the folder can be written to")
	} else if !errors.Is(err, fs.ErrPermission) && !isReadOnlyFileSystem(err) {
		t.Fatal(err)
	}
	return to
}

// The log of a process that was killed can be read where nothing can be written:
// its newest records are in SQLite's write-ahead log, which SQLite would have to
// share. With the index of that log, without it, and with an empty one.
func TestCrashedLogOnAReadOnlyFileSystem(t *testing.T) {
	t.Parallel()
	for name, index := range map[string]func(shm []byte) []byte{
		"as it was":         func(shm []byte) []byte { return shm },
		"without the index": func([]byte) []byte { return nil },
		"an empty index":    func(shm []byte) []byte { return make([]byte, len(shm)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			running := audittest.Open(t, auditchain.Options{Name: "crashed"})
			audittest.Fill(t, running, 50)
			if _, err := running.Checkpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
			audittest.Append(t, running, audittest.Violation(50))
			killed := audittest.CopyLog(t, running.Path()) // as a crash leaves the files
			if info, err := os.Stat(killed + "-wal"); err != nil || info.Size() == 0 {
				t.Fatalf("nothing is in the write-ahead log: %v", err)
			}
			shm, err := os.ReadFile(running.Path() + "-shm")
			if err != nil {
				t.Fatal(err)
			}
			if shm = index(shm); shm != nil {
				if err := os.WriteFile(killed+"-shm", shm, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			path := filepath.Join(readOnly(t, filepath.Dir(killed)), filepath.Base(killed))
			report := audittest.VerifyPath(t, path, auditchain.VerifyOptions{})
			audittest.WantIntact(t, report, 51)
		})
	}
}

package pgtest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// startTimeout is generous: the machine may be busy.
const startTimeout = 2 * time.Minute

// Start starts a server and returns the connection string of a role, to be given its name.
// The superuser is "postgres", and nobody needs a password. The test is skipped where
// Postgres is not installed.
func Start(t testing.TB) (url func(role string) string) {
	t.Helper()
	initdb, postgres := program(t, "initdb"), program(t, "postgres")
	// The path of a socket has about a hundred bytes, which t.TempDir may exceed.
	dir, err := os.MkdirTemp("", "pgtest")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	credential := ordinaryUser(t, dir)
	data := filepath.Join(dir, "data")
	command := func(name string, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential, Setpgid: true}
		return cmd
	}
	if out, err := command(initdb, "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	server := command(postgres, "-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=16MB", "-c", "max_connections=20")
	// SIGINT is the fast shutdown: sessions are ended, and their processes waited for.
	server.Cancel = func() error { return server.Process.Signal(os.Interrupt) }
	server.WaitDelay = 30 * time.Second
	log, err := server.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// t.Context ended just before, which sent the signal.
		_ = server.Wait()
	})
	waitUntilReady(t, log)
	return func(role string) string {
		return fmt.Sprintf("postgres://%s@/postgres?host=%s", role, dir)
	}
}

// waitUntilReady reads the server's log to the line that says so, and the rest of it on
// the side, so that the server never waits for a reader.
func waitUntilReady(t testing.TB, log io.Reader) {
	t.Helper()
	ready := make(chan string, 1)
	go func() {
		var all strings.Builder
		for lines := bufio.NewScanner(log); lines.Scan(); {
			fmt.Fprintln(&all, lines.Text())
			if strings.Contains(lines.Text(), "ready to accept connections") {
				ready <- ""
				_, _ = io.Copy(io.Discard, log)
				return
			}
		}
		ready <- all.String()
	}()
	select {
	case failed := <-ready:
		if failed != "" {
			t.Fatalf("postgres did not start:\n%s", failed)
		}
	case <-time.After(startTimeout):
		t.Fatalf("postgres was not ready within %v", startTimeout)
	}
}

// program finds a program of Postgres, which Debian keeps out of the path.
func program(t testing.TB, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	found, _ := filepath.Glob(filepath.Join("/usr/lib/postgresql/*/bin", name))
	if len(found) == 0 {
		t.Skipf("%s is not installed: Debian's package is postgresql", name)
	}
	slices.Sort(found)
	return found[len(found)-1]
}

// ordinaryUser hands dir to a user that the server may run as: it refuses to run as root.
func ordinaryUser(t testing.TB, dir string) *syscall.Credential {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	var uid, gid uint64
	for _, name := range []string{"postgres", "nobody"} {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, _ = strconv.ParseUint(account.Uid, 10, 32)
		gid, _ = strconv.ParseUint(account.Gid, 10, 32)
		break
	}
	if uid == 0 {
		t.Skip("Postgres does not run as root, and there is neither a user postgres nor nobody")
	}
	if err := os.Chown(dir, int(uid), int(gid)); err != nil {
		t.Skipf("Postgres does not run as root: %v", err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

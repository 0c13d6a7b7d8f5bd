package sandbox_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/agentd/agentd/skill/sandbox"
)

// byThread returns the test's user with programs that threads start, or skips the test.
func byThread(t *testing.T) user {
	t.Helper()
	available(t)
	for _, u := range users(t) {
		if u.threads != nil {
			return u
		}
	}
	t.Skip("this machine does not let a thread start a confined program")
	return user{}
}

// What confines hundreds of programs leaves this process as it is: it has as many threads,
// none of them has given anything up, and each can use files and sockets.
func TestThreadsLeaveTheProcessAlone(t *testing.T) {
	u := byThread(t)
	dir := u.folder(t)
	secret := u.file(t, filepath.Join(u.folder(t), "audit.db.key"), "secret", 0o600)
	start := func(starts int) {
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range starts / 4 {
					if out, err := u.run(t, sandbox.Default(dir), nil, "/", "true"); err != nil {
						t.Errorf("%v\n%s", err, out)
					}
				}
			})
		}
		all.Wait()
	}
	start(20)
	before := states(t)
	start(500)
	after := states(t)
	if len(after) > len(before)+16 {
		t.Errorf("there were %d threads, and are %d", len(before), len(after))
	}
	for thread, state := range after {
		if state != before["self"] {
			t.Errorf("thread %s is held by\n%s\nand this one was by\n%s", thread, state, before["self"])
		}
	}
	// More goroutines than there were threads, each with its own.
	var all, ready sync.WaitGroup
	ready.Add(64)
	for range 64 {
		all.Go(func() {
			runtime.LockOSThread()
			ready.Done()
			ready.Wait()
			_, err := os.ReadFile(secret)
			fd, serr := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err := errors.Join(err, serr); err != nil {
				t.Error(err)
				return
			}
			unix.Close(fd)
		})
	}
	all.Wait()
}

// states returns what each thread of this process has given up, by its id, and as "self"
// that of the caller's.
func states(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	read := func(thread, file string) {
		status, err := os.ReadFile(file)
		if err != nil {
			return // it has ended
		}
		var state []string
		for line := range strings.Lines(string(status)) {
			switch name, _, _ := strings.Cut(line, ":"); name {
			case "Uid", "Gid", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp":
				state = append(state, line)
			}
		}
		all[thread] = strings.Join(state, "")
	}
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		read(entry.Name(), filepath.Join("/proc/self/task", entry.Name(), "status"))
	}
	read("self", "/proc/thread-self/status")
	return all
}

// A program that is quick to go for the threads of the process that has started it finds none
// that the kernel takes for its own.
func TestNoThreadIsThePrograms(t *testing.T) {
	u := byThread(t)
	for range 50 {
		out, err := u.run(t, sandbox.Default("/"), nil, "/", "/bin/sh", "-c", `for t in /proc/$PPID/task/*; do kill -0 ${t##*/} && echo ${t##*/}; done 2>/dev/null; true`)
		if err != nil || out != "" {
			t.Fatalf("it could signal %s, %v", out, err)
		}
	}
}

// A program is held by what it was given, and by nothing that its start has needed.
func TestNothingOfTheStartIsLeft(t *testing.T) {
	u := byThread(t)
	state := func() string {
		out, err := u.run(t, sandbox.Default("/"), nil, "/", "sh", "-c",
			"grep -E '^(Sig[BIC]|Shd|Tracer|Uid|Gid|Groups|Cap|Seccomp|NoNew|Umask|Specul|x86)' /proc/self/status; ulimit -a | grep -v ^locks; ls -l /proc/self/fd | wc -l")
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	byThread := state()
	u.threads = nil
	byHelper := strings.Split(state(), "\n")
	for i, line := range strings.Split(byThread, "\n") {
		if i >= len(byHelper) || line != byHelper[i] {
			t.Errorf("by a thread it has %q, and by the helper %q", line, byHelper[min(i, len(byHelper)-1)])
		}
	}
}

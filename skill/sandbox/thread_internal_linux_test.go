//go:build amd64 || arm64

package sandbox

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/procmark"
	"github.com/agentd/agentd/internal/proctree"
)

// threads skips a test where threads cannot start programs.
func threads(t *testing.T) {
	t.Helper()
	if _, err := OpenThreads(t.Context()); err != nil {
		t.Skipf("this machine does not let a thread start a confined program: %v", err)
	}
}

// touch returns a command that makes a file, and the file.
func touch(t *testing.T) (*exec.Cmd, *Policy, string) {
	t.Helper()
	file := filepath.Join(Real(t.TempDir()), "ran")
	p := Default("/")
	p.Mark = procmark.NewSource().Next()
	p.Write = append(p.Write, Path{Name: filepath.Dir(file), Required: true})
	cmd := exec.Command("/bin/sh", "-c", `: >"$0"`, file)
	cmd.Env = []string{}
	return cmd, &p, file
}

// A thread that is confined is never the first of the process, by which the kernel judges who
// may trace and signal it, and ends with its function.
func TestThreadIsNotTheFirst(t *testing.T) {
	for range 500 {
		own := make(chan int)
		onThread(func() { own <- unix.Gettid() })
		thread := <-own
		if thread == os.Getpid() {
			t.Fatal("it is the first thread")
		}
		if err := ended(thread); err != nil {
			t.Fatal(err)
		}
	}
}

// A program has its mark and its limits before it runs, and runs only when the thread that
// has started it has ended: that one is in its domain.
func TestProgramWaits(t *testing.T) {
	threads(t)
	cmd, p, file := touch(t)
	p.Limits.OpenFiles = 64
	closeStreams, err := openStreams(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer closeStreams()
	s := newStart(p, cmd, new(atomic.Int32))
	onThread(s.run)
	if err := s.awaitStop(t.Context()); err != nil {
		t.Fatal(err)
	}
	waits := func(when string) {
		t.Helper()
		status, err := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/status")
		if err != nil || !strings.Contains(string(status), "State:\tt") && !strings.Contains(string(status), "State:\tT") {
			t.Errorf("%s it does not wait: %v\n%s", when, err, status)
		}
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%s it has run", when)
		}
	}
	waits("at first")
	if err := s.limit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if mark, err := procmark.Of(cmd.Process.Pid); err != nil || mark != p.Mark {
		t.Errorf("its mark is %d, %v", mark, err)
	}
	var files unix.Rlimit
	if err := unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_NOFILE, nil, &files); err != nil || files.Max != 64 {
		t.Errorf("its limit of files is %d, %v", files.Max, err)
	}
	waits("with its limits")
	s.letGo <- true
	if err := errors.Join(<-s.gone, ended(int(s.thread.Load()))); err != nil {
		t.Fatal(err)
	}
	var info unix.Siginfo // it may have been on its way from one stop to the other
	if err := unix.Waitid(unix.P_PID, cmd.Process.Pid, &info, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	waits("when the thread has ended")
	if err := cmd.Process.Signal(unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("it has not run: %v", err)
	}
}

// A program that is not to run any more, or cannot be held, is killed before it has run, and
// is waited for.
func TestProgramThatIsNotToRun(t *testing.T) {
	threads(t)
	gone := errors.New("the caller has left")
	for name, test := range map[string]struct {
		step  string // of the error; or the cause of the context
		spoil func(*Policy, context.CancelCauseFunc)
	}{
		"cancelled": {"", func(_ *Policy, cancel context.CancelCauseFunc) { cancel(gone) }},
		"not confined": {"landlock", func(p *Policy, _ context.CancelCauseFunc) {
			p.Read = append(p.Read, Path{Name: "/absent", Required: true})
		}},
		"not executable": {"exec", func(p *Policy, _ context.CancelCauseFunc) { p.Execute = false }},
	} {
		t.Run(name, func(t *testing.T) {
			cmd, p, file := touch(t)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			test.spoil(p, cancel)
			var alive atomic.Int32
			err := startOnThread(ctx, p, cmd, &alive)
			eventually.Holds(t, "the thread has ended", func() bool { return alive.Load() == 0 })
			var failed *Error
			if errors.As(err, &failed) != (test.step != "") || failed != nil && failed.Step != test.step || test.step == "" && !errors.Is(err, gone) {
				t.Errorf("the error is %v", err)
			}
			if _, err := os.Stat(file); err == nil {
				t.Error("it has run")
			}
			if cmd.Process == nil {
				return
			}
			if cmd.ProcessState == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Errorf("it has ended with %v", cmd.ProcessState)
			}
			if _, err := proctree.Read(cmd.Process.Pid); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("it is left: %v", err)
			}
		})
	}
}

// refuse has the kernel refuse a system call to all threads of this process from now on, as
// the rules of a container do.
func refuse(t *testing.T, rules code) {
	t.Helper()
	instructions := join(load(offsetNumber), rules, allow())
	program := unix.SockFprog{Len: uint16(len(instructions)), Filter: &instructions[0]}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program))); errno != 0 {
		t.Fatal(errno)
	}
}

// Where the kernel does not let a thread hold a program, the helper starts all of them; where
// it does so no longer, the program that finds out does not run, and the helper starts the
// next.
func TestRefusedByTheKernel(t *testing.T) {
	const variable = "SANDBOX_REFUSED"
	request := func(of uint32) code {
		return ifEqual(unix.SYS_PTRACE, argument(0), ifEqual(of, fail(unix.EPERM)), allow())
	}
	rules := map[string]code{
		"ptrace":  ifEqual(unix.SYS_PTRACE, fail(unix.EPERM)),
		"options": request(unix.PTRACE_SETOPTIONS),
		"mask":    request(unix.PTRACE_SETSIGMASK),
		"detach":  request(unix.PTRACE_DETACH),
		"prlimit": ifEqual(unix.SYS_PRLIMIT64, argument(0), ifEqual(0, allow()), fail(unix.EPERM)),
		"tgkill":  ifEqual(unix.SYS_TGKILL, argument(2), ifEqual(0, fail(unix.EPERM)), allow()),
	}
	if name := os.Getenv(variable); name != "" {
		refusedByTheKernel(t, rules[name])
		return
	}
	threads(t)
	for name := range rules {
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestRefusedByTheKernel$", "-test.v")
		cmd.Env = append(os.Environ(), variable+"="+name)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

func refusedByTheKernel(t *testing.T, rules code) {
	before, err := OpenThreads(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	refuse(t, rules)
	if _, err := OpenThreads(t.Context()); err == nil {
		t.Fatal("a start that was not permitted has succeeded")
	}
	cmd, p, file := touch(t)
	if !before.serve(t.Context(), p, cmd) {
		t.Error("threads do not serve at first")
	}
	if err := before.start(t.Context(), p, cmd); err == nil {
		t.Error("a program that is not held has been started")
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("it has run")
	}
	if before.serve(t.Context(), p, cmd) {
		t.Error("threads go on")
	}
	last := time.Now()
	before.again.Store(&last)
	if before.serve(t.Context(), p, cmd) {
		t.Error("threads go on after another try")
	}
	if next := before.again.Load(); next == nil || time.Until(*next) <= 0 {
		t.Errorf("the next try is at %v", next)
	}
	s := Sandbox{Policy: *p, Marks: procmark.NewSource(), Threads: before}
	run, err := s.Begin("any")
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	cmd, _, _ = touch(t)
	cmd.Args[len(cmd.Args)-1] = file
	if err := errors.Join(run.Confine(t.Context(), cmd), run.Start(t.Context(), cmd)); err != nil {
		t.Fatal(err)
	}
	run.Started()
	if err := cmd.Wait(); err != nil {
		t.Error(err, run.Failure())
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("the helper has not started it: %v", err)
	}
}

// What the kernel has refused is tried again after a time, not before, and then goes on.
func TestRefusalEnds(t *testing.T) {
	threads(t)
	var all Threads
	cmd, p, file := touch(t)
	all.tryLater()
	if all.serve(t.Context(), p, cmd) {
		t.Error("threads go on at once")
	}
	now := time.Now()
	all.again.Store(&now)
	if !all.serve(t.Context(), p, cmd) || all.again.Load() != nil {
		t.Fatal("the refusal has not ended")
	}
	if err := errors.Join(all.start(t.Context(), p, cmd), cmd.Wait()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

// A thread is counted until it ends. Of those that outlive their calls there are no more than
// a bound: helpers, which can be killed, start the others.
func TestThreadsAreBounded(t *testing.T) {
	threads(t)
	var all Threads
	cmd, p, _ := touch(t)
	if err := errors.Join(all.start(t.Context(), p, cmd), cmd.Wait()); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "no thread is left", func() bool { return all.alive.Load() == 0 })
	all.alive.Store(mostThreads)
	if all.serve(t.Context(), p, cmd) {
		t.Error("there are more threads")
	}
	all.alive.Add(-1)
	if !all.serve(t.Context(), p, cmd) {
		t.Error("threads do not serve again")
	}
}

// leased writes a file on which somebody holds a lease, or skips the test: who opens it waits
// for 45 seconds. waits reports whether somebody does.
func leased(t *testing.T, path string, text []byte) (waits func() bool) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o700); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	if _, err := unix.FcntlInt(file.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Skipf("this file system has no leases: %v", err)
	}
	return func() bool {
		held, err := unix.FcntlInt(file.Fd(), unix.F_GETLEASE, 0)
		return err != nil || held != unix.F_WRLCK
	}
}

// A program that cannot be opened, or whose execve hangs, keeps its call no longer than that
// lasts, and is killed.
func TestHangingProgram(t *testing.T) {
	threads(t)
	shell, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	// A start that hangs in its execve takes a processor from the Go runtime, which then
	// cannot stop all threads for a collection.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for name, leasedIs := range map[string]string{"the program": "program", "its interpreter": "interpreter"} {
		t.Run(name, func(t *testing.T) {
			cmd, p, file := touch(t)
			folder := filepath.Dir(file)
			program, interpreter := filepath.Join(folder, "program"), filepath.Join(folder, "interpreter")
			if err := os.WriteFile(program, []byte("#!"+interpreter+"\n: >"+file), 0o700); err != nil {
				t.Fatal(err)
			}
			waits := leased(t, filepath.Join(folder, leasedIs), shell)
			cmd.Path = program
			ctx, cancel := context.WithCancelCause(t.Context())
			gone := errors.New("the caller has left")
			result := make(chan error, 1)
			go func() { result <- startOnThread(ctx, p, cmd, new(atomic.Int32)) }()
			for !waits() {
				select {
				case err := <-result:
					t.Fatalf("it does not hang: %v", err)
				case <-time.After(time.Millisecond):
				}
			}
			cancel(gone)
			select {
			case err := <-result:
				if !errors.Is(err, gone) {
					t.Errorf("the error is %v", err)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("it hangs still")
			}
			if _, err := os.Stat(file); err == nil {
				t.Error("it has run")
			}
		})
	}
}

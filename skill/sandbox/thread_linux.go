package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// cldTrapped is the code of a child that has stopped for its tracer.
	cldTrapped = 4
	// threadEnds is far more than a thread takes to end, on a busy machine too.
	threadEnds = 10 * time.Second
	// leaseRetry is how often a program is opened on which somebody holds a lease.
	leaseRetry = 10 * time.Millisecond
)

// A start is one program on its way. It is started by a thread that is confined for it, and
// traced by that thread as long as it takes to give it what a thread cannot: its limits.
type start struct {
	policy  *Policy
	cmd     *exec.Cmd
	alive   *atomic.Int32 // counts the threads of all starts
	thread  atomic.Int32  // its id
	claimed atomic.Bool   // the thread goes on to fork, or the caller has given up: whoever is first
	stopped chan error    // the program is there, and has stopped before its first instruction
	letGo   chan bool
	gone    chan error // the thread traces it no longer
}

func newStart(p *Policy, cmd *exec.Cmd, alive *atomic.Int32) *start {
	return &start{policy: p, cmd: cmd, alive: alive, stopped: make(chan error, 1), letGo: make(chan bool, 1), gone: make(chan error, 1)}
}

// startOnThread starts a command of a program that is confined by a policy. The command has
// not run when it returns an error. alive counts the thread until that ends, which may be
// later.
//
// No instruction of the program is executed before
//
//   - the thread that starts it is confined, as is all that the thread starts,
//   - the mark and the limits are set: until then it is stopped at the end of its execve,
//     and killed if this process ends,
//   - and the thread has ended. It is in the program's Landlock domain, and what Landlock
//     permits to the program against itself, such as a signal, it would permit against this
//     thread, and so against the whole process.
func startOnThread(ctx context.Context, p *Policy, cmd *exec.Cmd, alive *atomic.Int32) error {
	closeStreams, err := openStreams(cmd)
	if err != nil {
		return failedAt("start", err)
	}
	defer closeStreams()
	s := newStart(p, cmd, alive)
	alive.Add(1)
	onThread(s.run)
	if err = s.awaitStop(ctx); err == nil {
		err = s.limit(ctx)
		s.letGo <- err == nil
		err = errors.Join(err, <-s.gone)
	}
	if err == nil {
		err = failedAt("thread", ended(int(s.thread.Load())))
	}
	if err == nil {
		err = failedAt("start", cmd.Process.Signal(unix.SIGCONT))
	}
	if err != nil && cmd.Process != nil {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()         // it has never run; what it says of that is nothing new
	}
	return err
}

// openStreams opens the standard streams that the command leaves out, which os/exec would do
// within the sandbox.
func openStreams(cmd *exec.Cmd) (closeAll func(), err error) {
	if cmd.Stdin != nil && cmd.Stdout != nil && cmd.Stderr != nil {
		return func() {}, nil
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	if cmd.Stdin == nil {
		cmd.Stdin = null
	}
	if cmd.Stdout == nil {
		cmd.Stdout = null
	}
	if cmd.Stderr == nil {
		cmd.Stderr = null
	}
	return func() { _ = null.Close() }, nil
}

// onThread runs a function on a thread that ends with it, and that is not the first one of
// the process: by that one the kernel judges who may signal and trace the process, so that
// the program would count as its equal.
func onThread(f func()) {
	go func() {
		runtime.LockOSThread() // until the goroutine ends, and the thread with it
		if unix.Gettid() != unix.Getpid() {
			f()
			return
		}
		// While this goroutine keeps the first thread, another one gets another.
		locked := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(locked)
			f()
		}()
		<-locked
		runtime.UnlockOSThread()
	}()
}

// run is what the thread does: it confines itself, starts the program, and lets it go when
// its limits have been set. It ends stopped, so that it waits for the thread to end.
func (s *start) run() {
	defer s.alive.Add(-1)
	s.thread.Store(int32(unix.Gettid())) //nolint:gosec // the kernel's are no longer
	err := s.stop()
	if err != nil && s.cmd.Process != nil {
		_ = s.cmd.Process.Kill() // else the end of the thread, its tracer, might let it run
	}
	s.stopped <- err
	if err != nil {
		return
	}
	if !<-s.letGo {
		s.gone <- nil // the kernel kills it when the thread ends
		return
	}
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(s.cmd.Process.Pid), 0, uintptr(unix.SIGSTOP), 0, 0)
	s.gone <- failedWith("trace", errno)
}

// stop confines the thread and starts the program, which stops at the end of its execve.
func (s *start) stop() error {
	s.touch()
	if err := closeDescriptors(); err != nil {
		return err
	}
	if err := confineThread(s.policy); err != nil {
		return err
	}
	// Any other signal between the fork and the end of execve would stop the program too,
	// and this thread, which could resume it, waits there for the execve.
	var blocked, before unix.Sigset_t
	for i := range blocked.Val {
		blocked.Val[i] = ^blocked.Val[i]
	}
	blocked.Val[0] &^= 1 << (unix.SIGTRAP - 1)
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &blocked, &before); err != nil {
		return failedAt("thread", err)
	}
	attr := syscall.SysProcAttr{}
	if s.cmd.SysProcAttr != nil {
		attr = *s.cmd.SysProcAttr
	}
	attr.Ptrace = true
	if s.claimed.Swap(true) {
		return errGivenUp // the caller no longer waits
	}
	s.cmd.SysProcAttr = &attr
	if err := s.cmd.Start(); err != nil {
		return execFailed(s.cmd, err)
	}
	pid := s.cmd.Process.Pid
	var info unix.Siginfo
	for {
		// The end of it is left for the command's Wait.
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT|unix.WALL, nil)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EINTR) {
			return failedAt("trace", err)
		}
	}
	if info.Code != cldTrapped {
		return failedAt("start", errors.New("the program was killed before it ran"))
	}
	if err := unix.PtraceSetOptions(pid, unix.PTRACE_O_EXITKILL); err != nil {
		return failedAt("trace", err)
	}
	const size = 8                                                                                                                    // of the kernel's sigset_t
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SETSIGMASK, uintptr(pid), size, uintptr(unsafe.Pointer(&before)), 0, 0) //nolint:gosec // x/sys has no function for it
	return failedWith("trace", errno)
}

// failedWith returns the [Error] of a step whose system call has returned a number.
func failedWith(step string, errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return failedAt(step, errno)
}

// errGivenUp ends a thread whose start has been given up.
var errGivenUp = errors.New("sandbox: the start was given up")

// touch reads the beginning of the program. Where its file system does not answer, or somebody
// holds a lease on it, this thread waits here, and not for the execve of its child: until that
// ends, the Go runtime cannot stop the thread, and so can collect no garbage, for which it
// stops all of them. What cannot be read is left to execve.
func (s *start) touch() {
	path := s.cmd.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.cmd.Dir, path)
	}
	named, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(named) //nolint:errcheck // it was only named
	var stat unix.Stat_t
	if unix.Fstat(named, &stat) != nil || stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return // to open another file may do something
	}
	for !s.claimed.Load() {
		fd, err := unix.Open("/proc/self/fd/"+strconv.Itoa(named), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err == nil {
			_, _ = unix.Read(fd, make([]byte, 64))
			_ = unix.Close(fd) // it was only read
		}
		if !errors.Is(err, unix.EWOULDBLOCK) { // it is not leased
			return
		}
		time.Sleep(leaseRetry)
	}
}

// execFailed returns the error of a command that could not be started.
func execFailed(cmd *exec.Cmd, err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return &Error{Step: "exec", Text: cmd.Path + ": " + errno.Error(), Err: errno}
	}
	return err
}

// awaitStop waits until the program has stopped, or has failed to start. A file system that
// does not answer may keep the thread from that: the end of ctx gives it up, and kills the
// program if it has been forked.
func (s *start) awaitStop(ctx context.Context) error {
	select {
	case err := <-s.stopped:
		return err
	case <-ctx.Done():
	}
	if !s.claimed.Swap(true) {
		return context.Cause(ctx)
	}
	again := time.NewTicker(10 * time.Millisecond) // it may not have been forked yet
	defer again.Stop()
	for {
		s.killChild()
		select {
		case err := <-s.stopped:
			if err != nil {
				err = context.Cause(ctx)
			}
			return err
		case <-again.C:
		}
	}
}

// killChild kills the child of the thread, if it has one.
func (s *start) killChild() {
	thread := strconv.Itoa(int(s.thread.Load()))
	children := func() []string {
		text, _ := os.ReadFile("/proc/self/task/" + thread + "/children") // without it there is none yet, or none any more
		return strings.Fields(string(text))
	}
	for _, child := range children() {
		pid, err := strconv.Atoi(child)
		if err != nil {
			continue
		}
		process, err := os.FindProcess(pid)
		if err != nil {
			continue
		}
		if slices.Contains(children(), child) { // so the handle is that of the child
			_ = process.Kill()
		}
		_ = process.Release()
	}
}

// limit sets what holds the whole process of the program. The thread could not: it may not
// touch the limits of another process any more.
func (s *start) limit(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := takeMark(s.cmd.Process.Pid, s.policy); err != nil {
		return err
	}
	return takeLimits(s.cmd.Process.Pid, s.policy)
}

// ended returns when a thread of this process has ended, which is about to.
func ended(thread int) error {
	const spins = 64
	pid, deadline := os.Getpid(), time.Now().Add(threadEnds)
	for i := 0; ; i++ {
		err := unix.Tgkill(pid, thread, 0)
		switch {
		case errors.Is(err, unix.ESRCH):
			return nil
		case err != nil:
			return err
		case i < spins:
			runtime.Gosched()
		case time.Now().After(deadline):
			return fmt.Errorf("it has not ended in %v", threadEnds)
		default:
			pause := unix.NsecToTimespec(int64(50 * time.Microsecond))
			_ = unix.Nanosleep(&pause, nil) // a timer of the runtime takes a millisecond
		}
	}
}

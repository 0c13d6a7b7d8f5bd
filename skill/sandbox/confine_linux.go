package sandbox

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/agentd/agentd/internal/procmark"
)

// supported is true where programs can be confined at all.
const supported = true

// confine confines this thread by a policy and executes a program on it, which ends all
// other threads. It returns only when something has failed.
func confine(p *Policy, program string, args []string) error {
	// execve keeps what the thread that calls it is confined by.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const self = 0
	for _, confine := range [...]func() error{
		closeDescriptors,
		func() error { return takeMark(self, p) },
		func() error { return confineThread(p) },
		// Last, for they hold the helper, too.
		func() error { return takeLimits(self, p) },
	} {
		if err := confine(); err != nil {
			return err
		}
	}
	err := syscall.Exec(program, args, unseal(os.Environ()))
	return &Error{Step: "exec", Text: program + ": " + err.Error(), Err: err}
}

// confineThread confines the calling thread, and what it starts or executes from now on, for
// good. The goroutine must be locked to it.
func confineThread(p *Policy) error {
	for _, step := range [...]struct {
		name  string
		apply func(*Policy) error
	}{
		{"no_new_privs", func(*Policy) error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }},
		// With the capabilities, which may be needed to open a path.
		{"landlock", restrict},
		{"capabilities", dropBounding},
		// Before the capabilities that permit it go. The user need not be able to open the
		// paths of the policy: what is granted is not thereby readable.
		{"user", switchUser},
		{"capabilities", dropCapabilities},
		{"seccomp", installFilter},
	} {
		if err := failedAt(step.name, step.apply(p)); err != nil {
			return err
		}
	}
	return nil
}

// failedAt returns the [Error] of a step, or nil if it has not failed.
func failedAt(step string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Step: step, Text: err.Error(), Err: err}
}

// closeDescriptors keeps every descriptor but the first three from the program: what was
// opened before keeps its rights in a Landlock domain.
func closeDescriptors() error {
	return failedAt("descriptors", closeOnExec())
}

func closeOnExec() error {
	err := unix.CloseRange(reportFD, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // before Linux 5.11
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if fd, err := strconv.Atoi(entry.Name()); err == nil && fd >= reportFD {
				unix.CloseOnExec(fd)
			}
		}
		return nil
	}
	return err
}

// takeMark marks a process; 0 is this one. Where agentd runs inside of a skill of another
// one, the process has that one's mark, and may not have a higher one: it keeps it.
func takeMark(pid int, p *Policy) error {
	if p.Mark == procmark.None {
		return nil
	}
	err := procmark.SetOf(pid, p.Mark)
	if errors.Is(err, unix.EPERM) {
		if pid == 0 {
			pid = os.Getpid()
		}
		if outer, outerErr := procmark.Of(pid); outerErr == nil && outer != procmark.None {
			return nil
		}
	}
	return failedAt("mark", err)
}

// takeLimits sets the resource limits of a process, hard and soft; 0 is this one. A limit
// that is lower already stays.
func takeLimits(pid int, p *Policy) error {
	if err := unix.Prlimit(pid, unix.RLIMIT_CORE, &unix.Rlimit{}, nil); err != nil {
		return failedAt("limits", err)
	}
	for _, l := range [...]struct {
		resource int
		most     uint64
	}{
		{unix.RLIMIT_DATA, p.Limits.MemoryBytes}, {unix.RLIMIT_FSIZE, p.Limits.FileBytes},
		{unix.RLIMIT_NOFILE, p.Limits.OpenFiles}, {unix.RLIMIT_CPU, p.Limits.CPUSeconds},
	} {
		var now unix.Rlimit
		if l.most == 0 {
			continue
		}
		if err := unix.Prlimit(pid, l.resource, nil, &now); err != nil {
			return failedAt("limits", err)
		}
		most := min(l.most, now.Max)
		if err := unix.Prlimit(pid, l.resource, &unix.Rlimit{Cur: most, Max: most}, nil); err != nil {
			return failedAt("limits", err)
		}
	}
	return nil
}

// drops reports whether a program under a policy loses a capability. With Off it loses
// CAP_SYS_RESOURCE alone, which could take off the mark, unless another user is to have none
// of this one's.
func drops(p *Policy, capability int) bool {
	return !p.Off || p.User != nil || capability == unix.CAP_SYS_RESOURCE
}

// dropBounding keeps capabilities from what this thread executes: also from a program of
// root, which would get back those of the bounding set.
func dropBounding(p *Policy) error {
	if p.Off && p.User == nil {
		_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_LOWER, unix.CAP_SYS_RESOURCE, 0, 0) // not there before Linux 4.3
	} else {
		_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) // as above
	}
	for c := 0; c <= unix.CAP_LAST_CAP; c++ {
		if !drops(p, c) {
			continue
		}
		// EINVAL: the kernel has fewer. EPERM: without CAP_SETPCAP; no_new_privs then keeps
		// execve from giving what this thread does not have.
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EPERM) {
			return fmt.Errorf("bounding set: %w", err)
		}
	}
	return nil
}

// dropCapabilities takes capabilities from this thread. A switch from root to another user
// has taken some of them, and one between others none.
func dropCapabilities(p *Policy) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var now [2]unix.CapUserData
	if err := unix.Capget(&header, &now[0]); err != nil {
		return err
	}
	for c := 0; c <= unix.CAP_LAST_CAP; c++ {
		if !drops(p, c) {
			continue
		}
		word, bit := &now[c/32], uint32(1)<<(c%32)
		word.Effective &^= bit
		word.Permitted &^= bit
		word.Inheritable &^= bit
	}
	return unix.Capset(&header, &now[0])
}

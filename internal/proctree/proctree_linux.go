package proctree

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// maxDepth bounds a walk up the tree: a stranger must not keep the walker busy with a
// long line of ancestors.
const maxDepth = 1024

// Read returns a process. The error wraps [os.ErrNotExist] when it is gone.
func Read(pid int) (Process, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Process{}, gone(err)
	}
	// proc(5): the name in parentheses may hold parentheses and spaces itself.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	const state, parent, group, started = 0, 1, 2, 19
	if len(fields) <= started {
		return Process{}, fmt.Errorf("proctree: the state of process %d cannot be read", pid)
	}
	p := Process{PID: pid, Zombie: fields[state][0] == 'Z' || fields[state][0] == 'X'}
	var errs [3]error
	p.Parent, errs[0] = strconv.Atoi(string(fields[parent]))
	p.Group, errs[1] = strconv.Atoi(string(fields[group]))
	p.Started, errs[2] = strconv.ParseUint(string(fields[started]), 10, 64)
	if err := errors.Join(errs[:]...); err != nil {
		return Process{}, fmt.Errorf("proctree: process %d: %w", pid, err)
	}
	return p, nil
}

// gone adds [os.ErrNotExist] to the error of a process that ends while its file is read.
func gone(err error) error {
	if errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("proctree: %w (%w)", os.ErrNotExist, err)
	}
	return fmt.Errorf("proctree: %w", err)
}

// Descends reports whether a process is a child of an ancestor, or a child of one of its
// descendants. The process and the ancestor must stay what they are meanwhile: the
// caller checks that afterwards. It fails with [ErrChanged] or [os.ErrNotExist] when
// another process of the line ends: then a second attempt finds out, since its children
// have another parent by now.
func Descends(pid, ancestor int) (bool, error) {
	child, err := Read(pid)
	if err != nil {
		return false, err
	}
	for range maxDepth {
		switch child.Parent {
		case ancestor:
			return true, nil
		case 0:
			return false, nil
		}
		parent, err := Read(child.Parent)
		if err != nil {
			return false, err
		}
		// Nobody is younger than his child, but for one who got the process id of a
		// parent that has ended.
		if parent.Started > child.Started {
			return false, ErrChanged
		}
		child = parent
	}
	return false, fmt.Errorf("proctree: process %d has more than %d ancestors", pid, maxDepth)
}

// Children returns the children of a process, those that its threads have adopted
// included. A child may be missing while others of the process end. Kernels that do not
// list children return [ErrUnsupported].
func Children(pid int) ([]int, error) {
	tasks := "/proc/" + strconv.Itoa(pid) + "/task"
	threads, err := names(tasks)
	if err != nil {
		return nil, gone(err)
	}
	var children []int
	for i, thread := range threads {
		text, err := os.ReadFile(tasks + "/" + thread + "/children")
		if err != nil {
			// The first thread lasts as long as the process: without the file there, the
			// kernel has none.
			if i == 0 && errors.Is(err, os.ErrNotExist) {
				if _, err := os.Stat(tasks + "/" + thread); err == nil {
					return nil, ErrUnsupported
				}
			}
			continue
		}
		children = append(children, numbers(text)...)
	}
	return children, nil
}

// Adopted returns the children that a process has adopted, and some that it has started:
// the kernel gives orphans to the first of its threads that has not ended
// (find_alive_thread), and the first one of a Go program never does. It costs less than
// [Children], the more so the more threads there are. A child may be missing while others
// of the process end.
func Adopted(pid int) ([]int, error) {
	id := strconv.Itoa(pid)
	text, err := os.ReadFile("/proc/" + id + "/task/" + id + "/children")
	if errors.Is(err, os.ErrNotExist) {
		if _, err := Read(pid); err == nil {
			return nil, ErrUnsupported
		}
	}
	if err != nil {
		return nil, gone(err)
	}
	return numbers(text), nil
}

// numbers are the process ids of a list.
func numbers(text []byte) (pids []int) {
	for field := range strings.FieldsSeq(string(text)) {
		if pid, err := strconv.Atoi(field); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// All returns every process that is there from the beginning of the call to its end.
func All() ([]int, error) {
	entries, err := names("/proc")
	if err != nil {
		return nil, fmt.Errorf("proctree: %w", err)
	}
	var all []int
	for _, name := range entries {
		if pid, err := strconv.Atoi(name); err == nil {
			all = append(all, pid)
		}
	}
	return all, nil
}

// names lists a folder, unsorted and without a look at the entries.
func names(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return f.Readdirnames(-1)
}

// Executable returns the path of the program that a process runs, or "" where the
// kernel does not show it: to others than the process's user, and of processes that
// have ended.
func Executable(pid int) string {
	path, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
	if err != nil {
		return ""
	}
	return path
}

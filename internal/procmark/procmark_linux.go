package procmark

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Limit is the number of the resource limit that holds the mark: RLIMIT_LOCKS, on every
// architecture.
const Limit = 10

// Set marks this process and all that it starts from now on, for good. A process that
// has a mark already cannot take a greater one.
func Set(m Mark) error { return SetOf(0, m) }

// SetOf marks another process, and all that it starts from now on; 0 is this one.
func SetOf(pid int, m Mark) error {
	if err := unix.Prlimit(pid, Limit, &unix.Rlimit{Cur: uint64(m), Max: uint64(m)}, nil); err != nil {
		return fmt.Errorf("procmark: %w", err)
	}
	return nil
}

// Of returns the mark of a process, or None. The error wraps [os.ErrNotExist] when the
// process is gone.
func Of(pid int) (Mark, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/limits")
	if errors.Is(err, unix.ESRCH) { // it has ended between the opening and the reading
		err = fmt.Errorf("%w (%w)", os.ErrNotExist, err)
	}
	if err != nil {
		return None, fmt.Errorf("procmark: %w", err)
	}
	_, line, _ := bytes.Cut(text, []byte("\nMax file locks"))
	fields := bytes.Fields(line)
	// What has ended has no limits left.
	if len(fields) < 2 {
		return None, fmt.Errorf("procmark: the limits of process %d cannot be read: %w", pid, os.ErrNotExist)
	}
	hard := string(fields[1])
	if hard == "unlimited" {
		return None, nil
	}
	m, err := strconv.ParseUint(hard, 10, 64)
	if err != nil {
		return None, fmt.Errorf("procmark: process %d: %w", pid, err)
	}
	// A process that lowers its limit to 0 is not one that has no mark.
	return max(Mark(m), Lowered), nil
}

package ownprocess

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Conceal keeps other processes of this user from the memory, the environment and the
// open files of this one: from ptrace(2), process_vm_readv(2), pidfd_getfd(2) and the
// files below /proc that show them. The process leaves no core dump, and a debugger of
// root alone can attach. A program that this one starts is not concealed.
//
// It does not keep them from signals and from prlimit(2).
func Conceal() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("ownprocess: PR_SET_DUMPABLE: %w", err)
	}
	return nil
}

// Adopt makes this process the parent of each descendant whose own parent ends
// (PR_SET_CHILD_SUBREAPER), so that a descendant stays one whatever it does. Those that
// end must be waited for.
func Adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("ownprocess: PR_SET_CHILD_SUBREAPER: %w", err)
	}
	return nil
}

package worker_test

import (
	"os"

	"golang.org/x/sys/unix"
)

// pending is how much there is to read in a pipe.
func pending(f *os.File) int {
	n, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCINQ)
	if err != nil {
		return 0
	}
	return n
}

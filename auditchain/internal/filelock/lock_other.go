//go:build !unix

package filelock

// A Lock is never had on this system.
type Lock struct{}

// Acquire fails with [ErrUnsupported].
func Acquire(string) (*Lock, error) { return nil, ErrUnsupported }

// Release does nothing.
func (*Lock) Release() {}

// Held returns false.
func (*Lock) Held() bool { return false }

//go:build !linux

package programpages

// Release does nothing on this system.
func Release() error { return nil }

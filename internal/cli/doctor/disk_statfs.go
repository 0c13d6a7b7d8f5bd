//go:build linux || darwin || freebsd

package doctor

import "golang.org/x/sys/unix"

// freeBytes is what an ordinary user may still write in a folder.
func freeBytes(folder string) (free uint64, known bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return 0, false
	}
	return uint64(s.Bavail) * uint64(s.Bsize), true //nolint:gosec,unconvert // sizes; the types differ between systems
}

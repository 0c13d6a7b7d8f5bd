package rootfs

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// isKernel reports whether a file lies on a file system in which the kernel shows its
// state, such as /proc/self/environ with this process's secrets.
func isKernel(file *os.File) bool {
	var stat unix.Statfs_t
	for {
		err := unix.Fstatfs(int(file.Fd()), &stat)
		if err == unix.EINTR {
			continue
		}
		// Which file system it is cannot be told: not one that is read.
		return err != nil || slices.Contains([]int64{
			unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.DEVPTS_SUPER_MAGIC, unix.CGROUP_SUPER_MAGIC,
			unix.CGROUP2_SUPER_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC, unix.SECURITYFS_MAGIC,
			unix.BPF_FS_MAGIC, unix.NSFS_MAGIC, unix.SELINUX_MAGIC, unix.EFIVARFS_MAGIC, unix.PSTOREFS_MAGIC,
		}, int64(stat.Type)) //nolint:unconvert // it is narrower on 386 and s390x
	}
}

// hasItsName reports whether a file still has the name that it was opened by, in whatever
// folder. The kernel marks one that has lost it, for good; a file that is really called so
// counts as one, and so does any without /proc.
func hasItsName(file *os.File) bool {
	link := "/proc/self/fd/" + strconv.Itoa(int(file.Fd()))
	name, err := os.Readlink(link)
	if err != nil || strings.HasSuffix(name, " (deleted)") {
		return false
	}
	// The kernel counts a name less a moment before it marks the one that is gone, and holds
	// the lock of the folder until both are done. To look for a name that nobody has asked for
	// before takes that lock, so that what was counted is marked by then.
	_, _ = os.Lstat(filepath.Join(filepath.Dir(name), "."+rand.Text()))
	again, err := os.Readlink(link)
	return err == nil && again == name
}

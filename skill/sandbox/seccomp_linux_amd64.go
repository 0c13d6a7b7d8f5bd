package sandbox

import "golang.org/x/sys/unix"

// auditArch is the architecture that the filter knows. Another one of the same kernel, such
// as that of int 0x80, has other numbers for its system calls.
const auditArch = unix.AUDIT_ARCH_X86_64

// otherABI refuses the system calls of x32, which have the architecture of the others.
func otherABI() code {
	const x32 = 0x40000000
	return ifAny(x32, fail(unix.ENOSYS))
}

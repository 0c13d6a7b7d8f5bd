package sandbox

import "golang.org/x/sys/unix"

// auditArch is the architecture that the filter knows. Another one of the same kernel, such
// as that of 32-bit programs, has other numbers for its system calls.
const auditArch = unix.AUDIT_ARCH_AARCH64

// otherABI refuses nothing: there is only one.
func otherABI() code { return nil }

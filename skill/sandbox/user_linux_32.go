//go:build linux && (386 || arm)

package sandbox

import "golang.org/x/sys/unix"

// The calls of these names without 32 take numbers of 16 bits.
const (
	sysSetresuid = unix.SYS_SETRESUID32
	sysSetresgid = unix.SYS_SETRESGID32
)

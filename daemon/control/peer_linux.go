package control

import (
	"net"
	"syscall"
)

// peerUID returns the user of the process at the other end (SO_PEERCRED, unix(7)).
// The kernel recorded it when the process connected.
func peerUID(conn net.Conn) (uid uint32, ok bool) {
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		return 0, false
	}
	raw, err := unix.SyscallConn()
	if err != nil {
		return 0, false
	}
	var cred *syscall.Ucred
	cerr := raw.Control(func(fd uintptr) {
		cred, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if cerr != nil || err != nil {
		return 0, false
	}
	return cred.Uid, true
}

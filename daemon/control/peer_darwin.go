package control

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// examine returns user and process of the other end as the kernel has noted them
// (LOCAL_PEERCRED, LOCAL_PEERPID). Nothing here tells skills and operators apart.
func examine(conn net.Conn) *peer {
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return &peer{}
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return &peer{}
	}
	p := &peer{}
	cerr := raw.Control(func(fd uintptr) {
		var cred *unix.Xucred
		if cred, err = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED); err == nil {
			p.known, p.uid = true, cred.Uid
		}
		p.pid, _ = unix.GetsockoptInt(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERPID) // 0 where it is not shown
	})
	if errors.Join(cerr, err) != nil {
		return &peer{}
	}
	return p
}

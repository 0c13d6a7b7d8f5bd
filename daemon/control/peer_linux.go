package control

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/agentd/agentd/internal/procmark"
	"github.com/agentd/agentd/internal/proctree"
)

// lookAttempts bounds how often a peer is looked at whose ancestors end meanwhile.
const lookAttempts = 5

// errGone means that nothing can be learned of a peer any more.
var errGone = errors.New("its process has ended")

// examine describes the process at the other end of a connection. The kernel has noted
// it when it connected: it stays the same if the process passes the connection on, or
// becomes another program.
func examine(conn net.Conn) *peer {
	cred, pidfd, err := peerOf(conn)
	if err != nil {
		return &peer{err: fmt.Errorf("its process cannot be found: %w", err)}
	}
	if pidfd >= 0 {
		defer func() { _ = unix.Close(pidfd) }()
	}
	p := &peer{known: true, pid: int(cred.Pid), uid: cred.Uid}
	switch p.pid {
	case os.Getpid():
		return p // who asks itself is alive
	case 0:
		p.err = errors.New("its process is in another namespace of process ids")
		return p
	}
	for range lookAttempts {
		if p.err = p.look(); p.err == nil {
			break
		}
	}
	// What was read is the peer's if it still exists: nobody else had its id meanwhile.
	if err := exists(pidfd); err != nil {
		p.err = err
	}
	return p
}

// peerOf returns what the kernel has noted of the peer, and a pidfd of it, which the
// caller closes, or -1.
func peerOf(conn net.Conn) (cred *unix.Ucred, pidfd int, err error) {
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, -1, errors.New("the connection is not one of a Unix socket")
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil, -1, err
	}
	pidfd = -1
	cerr := raw.Control(func(fd uintptr) {
		if cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err != nil {
			return
		}
		pidfd, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PEERPIDFD)
		switch {
		case errors.Is(err, unix.ENOPROTOOPT):
			// Before Linux 6.5 the number has to do. It is another process's only if the
			// peer has ended, and all other numbers were used, since it connected.
			pidfd, err = -1, nil
		case errors.Is(err, unix.ESRCH), errors.Is(err, unix.EINVAL):
			err = errGone // before Linux 6.16 an ended process has no pidfd
		}
	})
	if err = errors.Join(cerr, err); err != nil {
		return nil, -1, err
	}
	return cred, pidfd, nil
}

// look reads what /proc shows of the peer.
func (p *peer) look() (err error) {
	if p.mark, err = procmark.Of(p.pid); err != nil {
		return unreadable(err)
	}
	if p.descends, err = proctree.Descends(p.pid, os.Getpid()); err != nil {
		return unreadable(err)
	}
	p.executable = proctree.Executable(p.pid)
	return nil
}

func unreadable(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return errGone
	}
	return fmt.Errorf("its process cannot be examined: %w", err)
}

// exists fails if the process of a pidfd has ended and was waited for.
func exists(pidfd int) error {
	if pidfd < 0 {
		return nil
	}
	err := unix.PidfdSendSignal(pidfd, 0, nil, 0)
	if err == nil || errors.Is(err, unix.EPERM) { // root's process, which exists
		return nil
	}
	if errors.Is(err, unix.ESRCH) {
		return errGone
	}
	return fmt.Errorf("its process cannot be examined: %w", err)
}

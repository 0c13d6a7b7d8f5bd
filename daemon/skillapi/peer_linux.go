package skillapi

import (
	"encoding/binary"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// The parts of sock_diag(7) that golang.org/x/sys lacks: the type of its messages, and
// the places in inet_diag_req_v2 and inet_diag_msg.
const (
	sockDiagByFamily = 20
	diagRequestBytes = unix.SizeofNlMsghdr + 56
	diagUserAt       = unix.SizeofNlMsghdr + 64 // of idiag_uid in the answer
	diagInodeAt      = unix.SizeofNlMsghdr + 68 // of idiag_inode
)

// diagTimeoutMicros bounds the wait for the kernel, which answers at once.
const diagTimeoutMicros = 100_000

// userOf returns the user that owns the other end of a loopback connection. The kernel
// finds that socket by its addresses, as ss(8) has it do: 4 system calls, some 15 µs. It is
// unknownUser where the kernel has no sock_diag, or no trace of the other end, and noUser
// when that is closed and the kernel keeps what is left of it.
func userOf(c *net.TCPConn) int {
	near, okNear := netAddr(c.LocalAddr())
	far, okFar := netAddr(c.RemoteAddr())
	if !okNear || !okFar {
		return unknownUser
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return unknownUser
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: diagTimeoutMicros}); err != nil {
		return unknownUser
	}
	// Of the socket at the other end, the far address is the local one.
	if err := unix.Sendto(fd, diagRequest(far, near), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return unknownUser
	}
	answer := make([]byte, 512)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil || n < diagInodeAt+4 || binary.NativeEndian.Uint16(answer[4:]) != sockDiagByFamily {
		return unknownUser // among others NLMSG_ERROR, for a socket that does not exist
	}
	if binary.NativeEndian.Uint32(answer[diagInodeAt:]) == 0 {
		return noUser // the kernel says 0, which is root's
	}
	return int(binary.NativeEndian.Uint32(answer[diagUserAt:]))
}

// diagRequest asks for the one TCP socket with these addresses.
func diagRequest(local, remote netip.AddrPort) []byte {
	m := make([]byte, diagRequestBytes)
	native, network := binary.NativeEndian, binary.BigEndian
	native.PutUint32(m[0:], diagRequestBytes)
	native.PutUint16(m[4:], sockDiagByFamily)
	native.PutUint16(m[6:], unix.NLM_F_REQUEST)
	body := m[unix.SizeofNlMsghdr:]
	body[0], body[1] = unix.AF_INET, unix.IPPROTO_TCP
	if local.Addr().Is6() {
		body[0] = unix.AF_INET6
	}
	native.PutUint32(body[4:], ^uint32(0)) // in every state
	network.PutUint16(body[8:], local.Port())
	network.PutUint16(body[10:], remote.Port())
	copy(body[12:], local.Addr().AsSlice())
	copy(body[28:], remote.Addr().AsSlice())
	native.PutUint64(body[48:], ^uint64(0)) // INET_DIAG_NOCOOKIE
	return m
}

func netAddr(a net.Addr) (netip.AddrPort, bool) {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, false
	}
	addr := tcp.AddrPort()
	return netip.AddrPortFrom(addr.Addr().Unmap().WithZone(""), addr.Port()), true
}

//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/agentd/agentd/internal/procmark"
)

// The filter closes what Landlock lets through: sockets of paths and of protocols that it
// does not know, limits of other processes, and ways round system calls. It is classic BPF
// over struct seccomp_data; see seccomp(2).

// Where struct seccomp_data has the number of the system call and the architecture. Of an
// argument the low half counts: those that are looked at are ints.
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16
)

// What the arguments of sockets mean.
const (
	ipprotoTCP   = unix.IPPROTO_TCP
	sockTypeMask = 0xf // what is above are SOCK_CLOEXEC and SOCK_NONBLOCK
	netlinkRoute = unix.NETLINK_ROUTE
)

type code = []unix.SockFilter

// join puts pieces of code one behind the other.
func join(parts ...code) code { return slices.Concat(parts...) }

// load loads a word of struct seccomp_data.
func load(offset uint32) code {
	return code{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}}
}

// argument loads an argument.
func argument(n uint32) code { return load(offsetArgs + 8*n) }

// argumentHigh runs code after it has loaded the high half of an argument.
func argumentHigh(n uint32, then code) code { return join(load(offsetArgs+8*n+4), then) }

// and keeps the bits of a mask of what is loaded.
func and(mask uint32) code {
	return code{{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: mask}}
}

// ifEqual runs code only if what is loaded is k.
func ifEqual(k uint32, then ...code) code { return jump(unix.BPF_JEQ, k, join(then...)) }

// ifAny runs code only if what is loaded has one of the bits.
func ifAny(bits uint32, then ...code) code { return jump(unix.BPF_JSET, bits, join(then...)) }

func jump(test uint16, k uint32, then code) code {
	// Jf skips the code; no piece here is as long as 255 instructions.
	return append(code{{Code: unix.BPF_JMP | test | unix.BPF_K, Jf: uint8(len(then)), K: k}}, then...) //nolint:gosec // see above
}

// result ends the filter.
func result(action uint32) code { return code{{Code: unix.BPF_RET | unix.BPF_K, K: action}} }

func allow() code { return result(unix.SECCOMP_RET_ALLOW) }

func fail(errno unix.Errno) code { return result(unix.SECCOMP_RET_ERRNO | uint32(errno)) } //nolint:gosec // a small number

// filter returns the filter of a policy.
func filter(p *Policy) code {
	parts := []code{
		load(offsetArch),
		jumpUnless(auditArch, result(unix.SECCOMP_RET_KILL_PROCESS)),
		load(offsetNumber),
		otherABI(),
	}
	for _, rule := range rules(p) {
		parts = append(parts, ifEqual(rule.number, rule.then, allow()))
	}
	return join(append(parts, allow())...)
}

// jumpUnless runs code only if what is loaded is not k.
func jumpUnless(k uint32, then code) code {
	return append(code{{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: uint8(len(then)), K: k}}, then...) //nolint:gosec // it is short
}

// A rule is what the filter does at one system call, when it falls through: allow it.
type rule struct {
	number uint32
	then   code
}

func rules(p *Policy) []rule {
	const cloneNewUser = unix.CLONE_NEWUSER
	all := []rule{
		{unix.SYS_SOCKET, socket(p)},
		// Whoever opens or executes a leased file of the user, agentd too, waits for its holder.
		{unix.SYS_FCNTL, join(argument(1), ifEqual(unix.F_SETLEASE, fail(unix.EPERM)), ifEqual(unix.F_SETDELEG, fail(unix.EPERM)))},
		// Pairs stay: Node's and Python's children talk by them. A pair of datagram sockets
		// could send to the path of any other.
		{unix.SYS_SOCKETPAIR, join(argument(1), and(sockTypeMask),
			ifEqual(unix.SOCK_STREAM, allow()), ifEqual(unix.SOCK_SEQPACKET, allow()), fail(unix.EPROTONOSUPPORT))},
		// TCP Fast Open connects without a check of the port.
		{unix.SYS_SENDTO, join(argument(3), ifAny(unix.MSG_FASTOPEN, fail(unix.EOPNOTSUPP)))},
		{unix.SYS_SENDMSG, join(argument(2), ifAny(unix.MSG_FASTOPEN, fail(unix.EOPNOTSUPP)))},
		{unix.SYS_SENDMMSG, join(argument(3), ifAny(unix.MSG_FASTOPEN, fail(unix.EOPNOTSUPP)))},
		// Its operations are not filtered.
		{unix.SYS_IO_URING_SETUP, fail(unix.ENOSYS)},
		// The limits of another process of the user: RLIMIT_CPU kills it.
		{unix.SYS_PRLIMIT64, join(argument(0), ifEqual(0, markStays()), fail(unix.EPERM))},
		{unix.SYS_SETRLIMIT, join(argument(0), ifEqual(procmark.Limit, fail(unix.EPERM)))},
		// Priorities and processors of another process, or of all of the user's: agentd could
		// be made to run last.
		{unix.SYS_SETPRIORITY, priority(unix.PRIO_USER)},
		{unix.SYS_IOPRIO_SET, priority(ioprioWhoUser)},
		{unix.SYS_SCHED_SETAFFINITY, ownProcess()},
		{unix.SYS_SCHED_SETSCHEDULER, ownProcess()},
		{unix.SYS_SCHED_SETPARAM, ownProcess()},
		{unix.SYS_SCHED_SETATTR, ownProcess()},
		// A namespace of one's own opens much of the kernel. The flags of clone3 are out of a
		// filter's sight; libraries fall back to clone.
		{unix.SYS_CLONE, join(argument(0), ifAny(cloneNewUser, fail(unix.EPERM)))},
		{unix.SYS_UNSHARE, join(argument(0), ifAny(cloneNewUser, fail(unix.EPERM)))},
		{unix.SYS_CLONE3, fail(unix.ENOSYS)},
		{unix.SYS_SETNS, fail(unix.EPERM)},
		// The keys of the user, which the kernel keeps.
		{unix.SYS_KEYCTL, fail(unix.EPERM)},
		{unix.SYS_ADD_KEY, fail(unix.EPERM)},
		{unix.SYS_REQUEST_KEY, fail(unix.EPERM)},
		{unix.SYS_BPF, fail(unix.EPERM)},
		{unix.SYS_PERF_EVENT_OPEN, fail(unix.EPERM)},
		{unix.SYS_USERFAULTFD, fail(unix.EPERM)},
	}
	// Memory, messages and semaphores of System V, and queues of POSIX: whoever is of the user
	// finds and opens those of all programs.
	for _, number := range [...]uint32{
		unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
		unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
	} {
		all = append(all, rule{number, fail(unix.ENOSYS)})
	}
	if len(p.Listen) == 0 {
		// A socket that listens without a bind gets a port that Landlock is not asked about.
		all = append(all, rule{unix.SYS_LISTEN, fail(unix.EACCES)})
	}
	if !p.Execute {
		// A file without a path can be executed whatever Landlock says.
		all = append(all, rule{unix.SYS_MEMFD_CREATE, fail(unix.ENOSYS)})
	}
	return all
}

// ioprioWhoUser is IOPRIO_WHO_USER.
const ioprioWhoUser = 3

// ownProcess permits a call whose first argument is 0, which stands for the process itself.
func ownProcess() code { return join(argument(0), ifEqual(0, allow()), fail(unix.EPERM)) }

// markStays permits to read and set limits, but not to set that which is the mark: a lower
// one could be another call's, with which a process would outlive its own.
func markStays() code {
	none := argumentHigh(2, ifEqual(0, allow()))
	return join(argument(1), ifEqual(procmark.Limit, argument(2), ifEqual(0, none), fail(unix.EPERM)), allow())
}

// priority permits a call for the process itself or its group, and none for all processes
// of the user.
func priority(user uint32) code {
	return join(argument(0), ifEqual(user, fail(unix.EPERM)), argument(1), ifEqual(0, allow()), fail(unix.EPERM))
}

// socket permits TCP and UDP, as far as the policy has a network, and the questions that a
// lookup of names asks the kernel.
func socket(p *Policy) code {
	inet := fail(unix.EACCES)
	if p.sockets() {
		stream := ifEqual(unix.SOCK_STREAM, argument(2), ifEqual(0, allow()), ifEqual(ipprotoTCP, allow()), fail(unix.EPROTONOSUPPORT))
		var datagram code
		if p.Network {
			datagram = ifEqual(unix.SOCK_DGRAM, argument(2), ifEqual(0, allow()), ifEqual(unix.IPPROTO_UDP, allow()), fail(unix.EPROTONOSUPPORT))
		}
		inet = join(argument(1), and(sockTypeMask), stream, datagram, fail(unix.EACCES))
	}
	return join(argument(0),
		ifEqual(unix.AF_INET, inet),
		ifEqual(unix.AF_INET6, inet),
		ifEqual(unix.AF_NETLINK, argument(2), ifEqual(netlinkRoute, allow()), fail(unix.EPROTONOSUPPORT)),
		fail(unix.EAFNOSUPPORT),
	)
}

// hasSeccomp reports whether the kernel takes filters.
func hasSeccomp() bool {
	action := uint32(unix.SECCOMP_RET_KILL_PROCESS)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action))) //nolint:gosec // x/sys has no function for it
	return errno == 0
}

// installFilter installs the filter of a policy on this thread, which has no_new_privs.
func installFilter(p *Policy) error {
	if p.Off || !hasSeccomp() {
		return nil
	}
	instructions := filter(p)
	program := unix.SockFprog{Len: uint16(len(instructions)), Filter: &instructions[0]}                               //nolint:gosec // about a hundred
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program))) //nolint:gosec // as above
	if errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	return nil
}

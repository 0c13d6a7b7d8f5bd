package sandbox_test

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/agentd/agentd/internal/procmark"
	"github.com/agentd/agentd/skill/sandbox"
)

// targets are what the attacking program goes for, all of its own user's.
type targets struct {
	Secret   string // a file outside
	Hidden   string // a file in the skill's own folder that is hidden
	Beside   string // a file in the skill's own folder
	Outside  string // a folder outside
	PID      int    // a process outside
	Port     int    // a TCP port outside, not granted
	Socket   string // a Unix socket outside
	Abstract string // and an abstract one
	Off      bool   // nothing is confined: do no harm
}

type attack struct {
	name string
	try  func(*targets) error // nil if it has succeeded
}

// attacks lists what a program must not do. All of it succeeds, for a process of the same
// user, without a sandbox.
func attacks() []attack {
	openFor := func(path string, flags int) error {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o600)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}
	proc := func(t *targets, name string) string { return "/proc/" + strconv.Itoa(t.PID) + "/" + name }
	return []attack{
		{"read a file of the user", func(t *targets) error { return openFor(t.Secret, unix.O_RDONLY) }},
		{"read a hidden file", func(t *targets) error { return openFor(t.Hidden, unix.O_RDONLY) }},
		{"list a folder of the user", func(t *targets) error { _, err := os.ReadDir(t.Outside); return err }},
		{"make a file", func(t *targets) error { return openFor(filepath.Join(t.Outside, "new"), unix.O_CREAT|unix.O_WRONLY) }},
		{"change a file of its own folder", func(t *targets) error { return openFor(t.Beside, unix.O_WRONLY) }},
		{"truncate a file", func(t *targets) error { return unix.Truncate(t.Secret, 6) }},
		{"remove a file", func(t *targets) error {
			path := filepath.Join(t.Outside, "doomed")
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.WriteFile(path, nil, 0o600)
		}},
		{"link a file to the temporary folder", func(t *targets) error { return os.Link(t.Secret, filepath.Join(os.TempDir(), "link")) }},
		{"read through a symbolic link", func(t *targets) error {
			link := filepath.Join(os.TempDir(), "symlink")
			if err := os.Symlink(t.Secret, link); err != nil {
				return nil
			}
			return openFor(link, unix.O_RDONLY)
		}},
		{"environ of a process", func(t *targets) error { _, err := os.ReadFile(proc(t, "environ")); return err }},
		{"mem of a process", func(t *targets) error { return openFor(proc(t, "mem"), unix.O_RDONLY) }},
		{"maps of a process", func(t *targets) error { _, err := os.ReadFile(proc(t, "maps")); return err }},
		{"descriptors of a process", func(t *targets) error { return openFor(proc(t, "fd/0"), unix.O_RDONLY) }},
		{"root of a process", func(t *targets) error { return openFor(proc(t, "root")+t.Secret, unix.O_RDONLY) }},
		{"signal a process", func(t *targets) error { return unix.Kill(t.PID, 0) }},
		{"signal a process by pidfd", func(t *targets) error {
			fd, err := unix.PidfdOpen(t.PID, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.PidfdSendSignal(fd, 0, nil, 0)
		}},
		{"take a descriptor of a process", func(t *targets) error {
			fd, err := unix.PidfdOpen(t.PID, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			_, err = unix.PidfdGetfd(fd, 0, 0)
			return err
		}},
		{"limits of a process", func(t *targets) error {
			return unix.Prlimit(t.PID, unix.RLIMIT_CORE, &unix.Rlimit{}, nil)
		}},
		{"trace a process", func(t *targets) error {
			const seize = 0x4206
			_, _, errno := unix.Syscall6(unix.SYS_PTRACE, seize, uintptr(t.PID), 0, 0, 0, 0)
			return failed(errno)
		}},
		{"memory of a process", func(t *targets) error {
			buf := make([]byte, 1)
			_, err := unix.ProcessVMReadv(t.PID, []unix.Iovec{{Base: &buf[0], Len: 1}}, []unix.RemoteIovec{{Base: 0, Len: 1}}, 0)
			if errors.Is(err, unix.EFAULT) {
				return nil // the address is wrong, and may be read
			}
			return err
		}},
		{"a Unix socket", func(t *targets) error { _, err := net.Dial("unix", t.Socket); return err }},
		{"an abstract socket", func(t *targets) error { _, err := net.Dial("unix", "@"+t.Abstract); return err }},
		{"a pair of datagram sockets", func(*targets) error {
			_, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
			return err
		}},
		{"a TCP port", func(t *targets) error { return dial(t.Port, 0) }},
		{"a TCP port by MPTCP", func(t *targets) error { return dial(t.Port, unix.IPPROTO_MPTCP) }},
		{"a TCP port by Fast Open", func(t *targets) error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, &unix.SockaddrInet4{Port: t.Port, Addr: [4]byte{127, 0, 0, 1}})
		}},
		{"listen", func(*targets) error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_TCP)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.Bind(fd, &unix.SockaddrInet4{})
		}},
		{"netlink beyond routes", func(*targets) error {
			_, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_SOCK_DIAG)
			return err
		}},
		{"io_uring", func(*targets) error {
			params := make([]byte, 120)
			_, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params[0])), 0)
			return failed(errno)
		}},
		{"a user namespace", func(*targets) error {
			cmd := exec.Command("/bin/true")
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
			return cmd.Run()
		}},
		{"a lower mark", func(*targets) error {
			var now unix.Rlimit
			if err := unix.Getrlimit(procmark.Limit, &now); err != nil {
				return err
			}
			return unix.Setrlimit(procmark.Limit, &unix.Rlimit{Cur: now.Max - 1, Max: now.Max - 1})
		}},
		{"a lower mark by setrlimit", func(*targets) error {
			const low = 5
			limit := unix.Rlimit{Cur: low, Max: low}
			_, _, errno := unix.Syscall(unix.SYS_SETRLIMIT, procmark.Limit, uintptr(unsafe.Pointer(&limit)), 0)
			return failed(errno)
		}},
		{"a lease on a program", func(*targets) error { // which delays who executes it
			program, err := os.Open("/proc/self/exe")
			if err != nil {
				return nil
			}
			defer program.Close()
			_, err = unix.FcntlInt(program.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
			return err
		}},
		{"the keys of the user", func(*targets) error {
			_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, true)
			return err
		}},
	}
}

// privileged lists what root can do without a sandbox.
func privileged() []attack {
	return []attack{
		{"mount", func(t *targets) error { return unix.Mount("none", t.Outside, "tmpfs", 0, "") }},
		{"a mount namespace", func(*targets) error { return unix.Unshare(unix.CLONE_NEWNS) }},
		{"another user", func(*targets) error { return syscall.Setuid(12345) }},
		{"the owner of a file", func(t *targets) error { return os.Chown(t.Secret, 12345, -1) }},
	}
}

func failed(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

func dial(port, protocol int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, protocol)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
}

// prepare makes the targets of a user. dir is the skill's own folder.
func prepare(t *testing.T, u user, dir string) *targets {
	t.Helper()
	outside := u.folder(t)
	w := &targets{
		Outside: outside, Secret: u.file(t, filepath.Join(outside, "audit.db.key"), "secret", 0o600),
		Hidden: u.file(t, filepath.Join(dir, "agent.creds"), "secret", 0o600), Beside: u.file(t, filepath.Join(dir, "main.txt"), "text", 0o600),
		Socket: filepath.Join(outside, "s.sock"), Abstract: "agentd-test-" + filepath.Base(outside),
	}
	u.file(t, filepath.Join(outside, "doomed"), "", 0o600)
	for _, listen := range [][2]string{{"unix", w.Socket}, {"unix", "@" + w.Abstract}, {"tcp4", "127.0.0.1:0"}} {
		l, err := net.Listen(listen[0], listen[1])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		if a, ok := l.Addr().(*net.TCPAddr); ok {
			w.Port = a.Port
		}
	}
	u.own(t, w.Socket)
	process := exec.Command("sleep", "600")
	process.SysProcAttr = &syscall.SysProcAttr{Credential: u.credential}
	stdin, err := os.Open(w.Secret) // what /proc/<pid>/fd/0 leads to
	if err != nil {
		t.Fatal(err)
	}
	process.Stdin = stdin
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	stdin.Close()
	t.Cleanup(func() { _ = process.Process.Kill(); _ = process.Wait() })
	w.PID = process.Process.Pid
	return w
}

// attackWith runs the attacks under a policy, and returns the verdict of each.
func attackWith(t *testing.T, u user, p sandbox.Policy, w *targets, dir string) map[string]string {
	t.Helper()
	w.Off = p.Off
	env, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	out, err := u.run(t, p, []string{"SANDBOX_ATTACK=" + string(env)}, dir, testProgram(t))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	verdicts := map[string]string{}
	for line := range strings.Lines(out) {
		name, verdict, _ := strings.Cut(strings.TrimSpace(line), "\t")
		verdicts[name] = verdict
	}
	return verdicts
}

// testProgram is a copy of the test binary that every user can execute.
func testProgram(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(user{uid: os.Getuid()}.folder(t), "program")
	if err := os.WriteFile(path, text, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// A program under the default policy gets at nothing of its user's.
func TestMayNot(t *testing.T) {
	available(t)
	for _, u := range users(t) {
		t.Run(u.name, func(t *testing.T) {
			dir := u.folder(t)
			w := prepare(t, u, dir)
			p := sandbox.Default(dir)
			p.Hidden = []string{w.Hidden}
			without := attackWith(t, u, sandbox.Policy{Off: true}, w, dir)
			confined := attackWith(t, u, p, w, dir)
			w.PID = os.Getpid() // that has started it
			parent := attackWith(t, u, p, w, dir)
			for _, a := range attacks() {
				if got := confined[a.name]; !strings.HasPrefix(got, "refused") {
					t.Errorf("%s: %q", a.name, got)
				}
				if got := parent[a.name]; !strings.HasPrefix(got, "refused") {
					t.Errorf("%s: %q, with the parent as the process", a.name, got)
				}
				if got := without[a.name]; got != "done" && a.name != "io_uring" && a.name != "a lease on a program" && a.name != "a user namespace" && a.name != "the keys of the user" && a.name != "a TCP port by MPTCP" {
					t.Errorf("%s is no attack: without a sandbox it ends with %q", a.name, got)
				}
			}
		})
	}
}

// The mark stays whatever a program does, also root's and with the sandbox off.
func TestTheMarkStays(t *testing.T) {
	if !sandbox.Available().Marks {
		t.Skip("this system has no marks")
	}
	for _, u := range users(t) {
		for _, off := range []bool{false, true} {
			p := sandbox.Default("/")
			p.Off = off
			out, err := u.run(t, p, nil, "/", "sh", "-c", "ulimit -Hx unlimited; awk '/Max file locks/ {print $5}' /proc/self/limits; awk '/NoNewPrivs/ {print $2}' /proc/self/status")
			lines := strings.Split(strings.TrimSpace(out), "\n")
			mark, _ := strconv.ParseUint(lines[len(lines)-2], 10, 64)
			if err != nil || procmark.Mark(mark) == procmark.None || lines[len(lines)-1] != "1" {
				t.Errorf("%s, off %v: %v\n%s", u.name, off, err, out)
			}
		}
	}
}

// Root has none of its rights left, and nobody else gets any.
func TestRootIsAUser(t *testing.T) {
	available(t)
	if os.Getuid() != 0 {
		t.Skip("only root has something to lose")
	}
	for _, u := range users(t) {
		if u.uid != 0 {
			continue
		}
		dir := u.folder(t)
		w := prepare(t, u, dir)
		verdicts := attackWith(t, u, sandbox.Default(dir), w, dir)
		for _, a := range privileged() {
			if got := verdicts[a.name]; !strings.HasPrefix(got, "refused") {
				t.Errorf("%s: %s: %q", u.name, a.name, got)
			}
		}
	}
}

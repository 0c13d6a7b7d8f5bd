package control_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/internal/ownprocess"
	"github.com/agentd/agentd/internal/procmark"
)

// TestMain makes this program the processes of the tests: an agent's daemon, which starts
// others as its skills, and whoever uses its socket.
func TestMain(m *testing.M) {
	roles := map[string]func() error{"daemon": daemonProcess, "probe": probe, "marked": marked, "hand-over": handOver, "speak": speak}
	if role := roles[os.Getenv("OPERATORS_ROLE")]; role != nil {
		if err := role(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// daemonProcess serves the socket as agentd does. It runs each line that it reads with a
// shell, as skills' processes, and says by a line of its own whom it has refused.
func daemonProcess() error {
	if err := errors.Join(ownprocess.Adopt(), ownprocess.Conceal()); err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	served := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(auditchain.ActorOf(r.Context()))
	})
	var mu sync.Mutex
	operators := control.Operators{
		Alone: os.Getenv("OPERATORS_ALONE") != "", Logger: slog.New(slog.DiscardHandler),
		CallOf: func(m procmark.Mark) string {
			if m == testMark {
				return "call-7"
			}
			return ""
		},
		Refused: func(_ context.Context, i control.Intruder) {
			mu.Lock()
			defer mu.Unlock()
			_ = out.Encode(i)
		},
	}
	server, err := control.Listen(context.Background(), os.Getenv("OPERATORS_SOCKET"), operators.Only(served), slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	fmt.Println(`"ready"`)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		cmd := exec.Command("/bin/sh", "-c", lines.Text())
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			return err
		}
	}
	return server.Shutdown(context.Background())
}

// testMark is that of the skills of the tests.
const testMark = procmark.Mark(1<<62 | 7)

// marked marks itself and becomes a shell, as a confined skill does.
func marked() error {
	if err := procmark.Set(testMark); err != nil {
		return err
	}
	return syscall.Exec("/bin/sh", []string{"sh", "-c", os.Getenv("OPERATORS_SCRIPT")}, append(os.Environ(), "OPERATORS_ROLE=probe"))
}

// probe makes a request and writes the answer to a file, complete once it exists.
func probe() error {
	client := control.NewClient(os.Getenv("OPERATORS_SOCKET"))
	body, err := client.Capabilities(context.Background())
	answer := string(body)
	if err != nil {
		answer = err.Error()
	}
	return report(answer)
}

func report(answer string) error {
	name := os.Getenv("OPERATORS_ANSWER")
	if err := os.WriteFile(name+".new", []byte(answer), 0o666); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// handOver connects, passes the connection to a child, which speaks, and ends.
func handOver() error {
	conn, err := net.Dial("unix", os.Getenv("OPERATORS_SOCKET"))
	if err != nil {
		return err
	}
	file, err := conn.(*net.UnixConn).File()
	if err != nil {
		return err
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "OPERATORS_ROLE=speak", "OPERATORS_PARENT="+strconv.Itoa(os.Getpid()))
	cmd.ExtraFiles = []*os.File{file}
	cmd.Stderr = os.Stderr
	return cmd.Start()
}

// speak makes a request by descriptor 3, once the process that has connected is gone.
func speak() error {
	for parent := os.Getenv("OPERATORS_PARENT"); strconv.Itoa(os.Getppid()) == parent; {
		runtime.Gosched()
	}
	conn, err := net.FileConn(os.NewFile(3, "connection"))
	if err != nil {
		return err
	}
	_, err = io.WriteString(conn, "GET /v1/agent/capabilities HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	data, rerr := io.ReadAll(conn)
	if err := errors.Join(err, rerr); err != nil {
		return err
	}
	return report(string(data))
}

// A served is a daemon in a process of its own.
type served struct {
	t               *testing.T
	program, socket string
	stdin           io.WriteCloser
	out             *bufio.Reader
	env             []string
	n               int
}

// serveApart starts a daemon. alone is [control.Operators] Alone.
func serveApart(t *testing.T, alone bool, credential *syscall.Credential) *served {
	t.Helper()
	dir, err := os.MkdirTemp("", "op")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if credential != nil {
		// The folder of the test program is closed to other users.
		data, err := os.ReadFile(program)
		program = filepath.Join(dir, "program")
		if err = errors.Join(err, os.WriteFile(program, data, 0o755), os.Chown(dir, int(credential.Uid), int(credential.Gid))); err != nil {
			t.Fatal(err)
		}
	}
	s := &served{t: t, program: program, socket: filepath.Join(dir, "run", "a.sock")}
	s.env = []string{"PATH=" + os.Getenv("PATH"), "OPERATORS_SOCKET=" + s.socket, "SELF=" + program, "GORACE=atexit_sleep_ms=0"}
	cmd := exec.Command(program)
	cmd.Env = append(s.env, "OPERATORS_ROLE=daemon")
	if alone {
		cmd.Env = append(cmd.Env, "OPERATORS_ALONE=1")
	}
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	if s.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.out = bufio.NewReader(out)
	if line, err := s.out.ReadString('\n'); err != nil || line != "\"ready\"\n" {
		t.Fatalf("the daemon wrote %q, %v", line, err)
	}
	t.Cleanup(func() {
		_ = s.stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the daemon: %v", err)
		}
	})
	return s
}

// answerFile is where the next process writes what it was answered. Opening it for reading
// waits for that.
func (s *served) answerFile() string {
	s.n++
	return filepath.Join(filepath.Dir(filepath.Dir(s.socket)), fmt.Sprintf("answer-%d", s.n))
}

// bySkill runs a script as a process of a skill, and returns what the socket answers to
// the probe in it.
func (s *served) bySkill(script string) string {
	s.t.Helper()
	name := s.answerFile()
	done := s.watch(name)
	if _, err := fmt.Fprintf(s.stdin, "export OPERATORS_ANSWER='%s'; probe='OPERATORS_ROLE=probe '$SELF; %s\n", name, script); err != nil {
		s.t.Fatal(err)
	}
	return done()
}

// byOperator runs a script outside of the daemon.
func (s *served) byOperator(script string, env ...string) string {
	s.t.Helper()
	name := s.answerFile()
	done := s.watch(name)
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Env = append(append(s.env, "OPERATORS_ANSWER="+name), env...)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		s.t.Fatal(err)
	}
	return done()
}

// watch returns what waits for a file and reads it.
func (s *served) watch(name string) func() string {
	s.t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := unix.InotifyAddWatch(fd, filepath.Dir(name), unix.IN_MOVED_TO); err != nil {
		s.t.Fatal(err)
	}
	return func() string {
		s.t.Helper()
		defer func() { _ = unix.Close(fd) }()
		buffer := make([]byte, 4096)
		for {
			if data, err := os.ReadFile(name); err == nil {
				return string(data)
			}
			if _, err := unix.Read(fd, buffer); err != nil && !errors.Is(err, unix.EINTR) {
				s.t.Fatal(err)
			}
		}
	}
}

// refused reads whom the daemon has refused.
func (s *served) refused() (i control.Intruder) {
	s.t.Helper()
	line, err := s.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &i)
	}
	if err != nil {
		s.t.Fatalf("%q: %v", line, err)
	}
	return i
}

// The ways in which a skill without a mark can start a process that uses the socket.
func TestDescendantsAreNoOperators(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"a child":            `OPERATORS_ROLE=probe $SELF`,
		"forked twice":       `(OPERATORS_ROLE=probe $SELF & )`,
		"a session":          `OPERATORS_ROLE=probe setsid $SELF`,
		"later":              `(setsid sh -c 'while [ -d /proc/'$$' ]; do :; done; OPERATORS_ROLE=probe exec $SELF' &) ; :`,
		"nohup":              `OPERATORS_ROLE=probe nohup $SELF >/dev/null 2>&1 &`,
		"no environment":     `env -i GORACE=$GORACE OPERATORS_ROLE=probe OPERATORS_SOCKET=$OPERATORS_SOCKET OPERATORS_ANSWER=$OPERATORS_ANSWER setsid $SELF`,
		"passes it on, ends": `OPERATORS_ROLE=hand-over $SELF`,
		"a user namespace":   `unshare -Ur true 2>/dev/null && export OPERATORS_ROLE=probe && unshare -Ur $SELF || OPERATORS_ROLE=probe $SELF`,
		"a pid namespace":    `unshare -Urpf true 2>/dev/null && export OPERATORS_ROLE=probe && unshare -Urpf $SELF || OPERATORS_ROLE=probe $SELF`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serveApart(t, true, nil)
			if got := s.bySkill(script); !strings.Contains(got, "not-an-operator") {
				t.Fatalf("the skill was answered %q", got)
			}
			i := s.refused()
			if i.Request != "GET /v1/agent/capabilities" || i.Reason == "" || i.Actor.UID == nil || int(*i.Actor.UID) != os.Getuid() {
				t.Errorf("recorded %+v", i)
			}
			if got := s.byOperator(`OPERATORS_ROLE=probe exec $SELF`); strings.Contains(got, "not-an-operator") {
				t.Errorf("then an operator was answered %q", got)
			}
		})
	}
}

// A mark is known wherever its process stands, and whoever else has started it: a skill of
// another agent on the machine.
func TestMarkedProcessesAreNoOperators(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("prlimit"); err != nil {
		t.Skip("util-linux is missing")
	}
	for _, alone := range []bool{true, false} {
		s := serveApart(t, alone, nil)
		for name, script := range map[string]string{
			"the program":        `exec $SELF`,
			"a session":          `setsid $SELF`,
			"forked twice":       `(setsid $SELF &)`,
			"a lower mark":       `prlimit --pid $$ --locks=5:5; exec $SELF`,
			"no mark":            `prlimit --pid $$ --locks=0:0; exec $SELF`,
			"passes it on, ends": `OPERATORS_ROLE=hand-over exec $SELF`,
			"a user namespace":   `if unshare -Ur true 2>/dev/null; then exec unshare -Ur sh -c 'prlimit --pid $$ --locks=unlimited:unlimited 2>/dev/null; exec $SELF'; else exec $SELF; fi`,
		} {
			got := s.byOperator("exec $SELF", "OPERATORS_ROLE=marked", "OPERATORS_SCRIPT="+script)
			if !strings.Contains(got, "not-an-operator") {
				t.Errorf("%s, alone %v: it was answered %q", name, alone, got)
				continue
			}
			s.refused()
		}
	}
}

// Who is refused is known by the kernel's word: process, program and the call whose skill
// it is.
func TestRefusalsNameTheProcess(t *testing.T) {
	t.Parallel()
	s := serveApart(t, true, nil)
	if got := s.byOperator("echo $$ >$OPERATORS_ANSWER.pid; exec $SELF", "OPERATORS_ROLE=marked", "OPERATORS_SCRIPT=exec $SELF"); !strings.Contains(got, "not-an-operator") {
		t.Fatalf("it was answered %q", got)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	pid, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(s.socket)), "answer-1.pid"))
	if err != nil {
		t.Fatal(err)
	}
	i := s.refused()
	if strconv.Itoa(i.Actor.PID) != strings.TrimSpace(string(pid)) || i.Actor.Executable != program || i.CorrelationID != "call-7" || !strings.Contains(i.Reason, "skill") {
		t.Errorf("recorded %+v of process %s", i, pid)
	}
}

// Operators work from shells, from cron-like sessions, and from what has lost its parent.
// What they do is recorded as theirs.
func TestOperators(t *testing.T) {
	t.Parallel()
	s := serveApart(t, true, nil)
	for name, script := range map[string]string{
		"a shell":       `OPERATORS_ROLE=probe $SELF`,
		"a session":     `OPERATORS_ROLE=probe setsid $SELF`,
		"no parent":     `(OPERATORS_ROLE=probe setsid $SELF & )`,
		"becomes it":    `OPERATORS_ROLE=probe exec $SELF`,
		"no privileges": `if command -v setpriv >/dev/null; then OPERATORS_ROLE=probe exec setpriv --no-new-privs $SELF; else OPERATORS_ROLE=probe exec $SELF; fi`,
	} {
		var who auditchain.Actor
		if got := s.byOperator(script); json.Unmarshal([]byte(got), &who) != nil || who.PID == 0 || who.UID == nil || int(*who.UID) != os.Getuid() || who.Executable == "" {
			t.Errorf("%s: it was answered %q", name, got)
		}
	}
}

// Where the process is not agentd's alone, its children may be anybody's.
func TestChildrenOfAnotherProgram(t *testing.T) {
	t.Parallel()
	s := serveApart(t, false, nil)
	if got := s.bySkill(`OPERATORS_ROLE=probe $SELF`); strings.Contains(got, "not-an-operator") {
		t.Errorf("it was answered %q", got)
	}
}

// An agent that is not root's serves its own user and root.
func TestOtherUsers(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can run processes as other users")
	}
	const nobody = 65534
	s := serveApart(t, true, &syscall.Credential{Uid: nobody, Gid: nobody})
	if got := s.bySkill(`OPERATORS_ROLE=probe setsid $SELF`); !strings.Contains(got, "not-an-operator") {
		t.Fatalf("a skill was answered %q", got)
	}
	s.refused()
	if got := s.byOperator(`OPERATORS_ROLE=probe $SELF`); strings.Contains(got, "not-an-operator") || !strings.Contains(got, `"uid":0`) {
		t.Errorf("root was answered %q", got)
	}
	// The socket's folder keeps the others out; so that only the check can, it is opened.
	for _, name := range []string{filepath.Dir(s.socket), s.socket, filepath.Dir(filepath.Dir(s.socket))} {
		if err := os.Chmod(name, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(s.program)
	cmd.Env = append(s.env, "OPERATORS_ROLE=probe", "OPERATORS_ANSWER="+s.answerFile())
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody - 1, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s, %v", out, err)
	}
	got, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(s.socket)), fmt.Sprintf("answer-%d", s.n)))
	if err != nil || !bytes.Contains(got, []byte("not-an-operator")) {
		t.Errorf("another user was answered %q, %v", got, err)
	}
}

// However often it is refused, a skill cannot fill the log.
func TestRefusalsAreBounded(t *testing.T) {
	t.Parallel()
	s := serveApart(t, true, nil)
	for range 16 {
		s.bySkill(`OPERATORS_ROLE=probe $SELF`)
	}
	_ = s.stdin.Close()
	rest, err := io.ReadAll(s.out)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(rest, []byte("\n")); n < 8 || n > 12 {
		t.Errorf("%d of 16 refusals were recorded", n)
	}
}

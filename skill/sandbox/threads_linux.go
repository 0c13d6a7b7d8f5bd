package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agentd/agentd/internal/procmark"
)

// held is the command line of a program that reports what it is held to.
const held = "held"

// A hold is what a process finds itself held to.
type hold struct {
	Mark         procmark.Mark `json:"mark"`
	NoNewPrivs   bool          `json:"noNewPrivs"`
	Capabilities bool          `json:"capabilities"` // it has some
	Filter       bool          `json:"filter"`
	Files        bool          `json:"files"` // it could not list a folder
}

// tryThread starts this program on a thread of its own, and fails unless it is held as a
// skill's program must be. What a kernel or a container does not permit shows here: to trace
// one's own child, or to set its limits.
func tryThread(ctx context.Context, alive *atomic.Int32) error {
	// Package os finds out once whether it can use handles of processes, which a thread that
	// is confined could not.
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Release()
	}
	if err := tryDomain(); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	read, write, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	defer read.Close() //nolint:errcheck // it was only read
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Args, cmd.Env, cmd.Stdout = []string{"agentd", verb, held}, []string{}, write
	r := Run{policy: Policy{Mark: procmark.NewSource().Next(), Read: system(), Write: devices(), Execute: true}}
	r.complete(&r.policy, cmd)
	err = startOnThread(ctx, &r.policy, cmd, alive)
	_ = write.Close() // nothing has been written here
	if err != nil {
		return err
	}
	_ = read.SetReadDeadline(time.Now().Add(probeTimeout))
	var found hold
	err = json.NewDecoder(read).Decode(&found)
	_ = cmd.Process.Kill() // it has answered, or will not
	_ = cmd.Wait()         // as above
	if err != nil {
		return fmt.Errorf("sandbox: a confined start: %w", errors.Join(err, context.Cause(ctx)))
	}
	want := hold{Mark: r.policy.Mark, NoNewPrivs: true, Filter: hasSeccomp(), Files: landlockVersion() > 0}
	if own, err := procmark.Of(os.Getpid()); err == nil && own != procmark.None {
		want.Mark = found.Mark // within a skill of another agentd it may be that one's
	}
	if found != want {
		return fmt.Errorf("sandbox: a confined start: the program is held by %+v, and not by %+v", found, want)
	}
	return nil
}

// tryDomain fails where a thread in a Landlock domain may not signal the others of its process:
// so it was at first (erratum 2 of Landlock). The Go runtime preempts goroutines by signals,
// and remembers each as sent.
func tryDomain() error {
	result := make(chan error, 1)
	onThread(func() {
		err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		if err == nil {
			err = restrict(&Policy{})
		}
		if err == nil {
			err = os.NewSyscallError("tgkill", unix.Tgkill(os.Getpid(), os.Getpid(), 0))
		}
		result <- err
	})
	return <-result
}

// answerHeld answers tryThread.
func answerHeld() error {
	mark, err := procmark.Of(os.Getpid())
	if err != nil {
		return err
	}
	status, err := readStatus("self")
	if err != nil {
		return err
	}
	_, err = os.ReadDir("/")
	return json.NewEncoder(os.Stdout).Encode(hold{
		Mark:         mark,
		NoNewPrivs:   status.field("NoNewPrivs") == "1",
		Capabilities: status.field("CapEff") != noCapabilities,
		Filter:       status.field("Seccomp") == strconv.Itoa(unix.SECCOMP_MODE_FILTER),
		Files:        errors.Is(err, unix.EACCES),
	})
}

// noCapabilities is what the kernel shows of an empty set.
const noCapabilities = "0000000000000000"

// A status is what the kernel shows of a process to everybody.
type status []byte

func readStatus(process string) (status, error) {
	return os.ReadFile("/proc/" + process + "/status")
}

// field returns the value of a line, with single spaces, or "".
func (s status) field(name string) string {
	_, value, _ := bytes.Cut(s, []byte("\n"+name+":"))
	value, _, _ = bytes.Cut(value, []byte("\n"))
	return string(bytes.Join(bytes.Fields(value), []byte(" ")))
}

// isRefusal reports whether a start has failed as one does which the kernel does not permit
// to be traced: execve itself seldom does with this error.
func isRefusal(err error) bool { return errors.Is(err, unix.EPERM) }

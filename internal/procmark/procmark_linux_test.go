package procmark_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/agentd/agentd/internal/procmark"
)

// TestMain makes this program the marked process of the tests: it marks itself and
// becomes a shell.
func TestMain(m *testing.M) {
	if text := os.Getenv("PROCMARK"); text != "" {
		mark, _ := strconv.ParseUint(text, 10, 64)
		err := procmark.Set(procmark.Mark(mark))
		if err == nil {
			err = syscall.Exec("/bin/sh", []string{"sh", "-c", os.Getenv("PROCMARK_SCRIPT")}, nil)
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// A descendant keeps the mark in a session of its own, after its parent has gone, and
// when it has ended.
func TestDescendantsKeepTheMark(t *testing.T) {
	mark := procmark.NewSource().Next()
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "PROCMARK=" + strconv.FormatUint(uint64(mark), 10),
		"PROCMARK_SCRIPT=setsid sh -c 'echo $$; read x </dev/null; exec sleep 60' & wait $!",
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(pid, syscall.SIGKILL) }()
	for _, p := range []int{cmd.Process.Pid, pid} {
		if got, err := procmark.Of(p); err != nil || got != mark {
			t.Errorf("process %d has mark %d, %v", p, got, err)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if got, err := procmark.Of(pid); err != nil || got != mark {
		t.Errorf("the orphan has mark %d, %v", got, err)
	}
}

func TestUnmarked(t *testing.T) {
	if m, err := procmark.Of(os.Getpid()); err != nil || m != procmark.None {
		t.Errorf("this process has mark %d, %v", m, err)
	}
	if _, err := procmark.Of(1 << 22); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a process that does not exist: %v", err)
	}
}

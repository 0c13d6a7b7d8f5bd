package ownprocess_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/agentd/agentd/internal/ownprocess"
	"github.com/agentd/agentd/internal/procmark"
	"github.com/agentd/agentd/internal/proctree"
)

// TestMain makes this program a concealed process, and what that starts.
func TestMain(m *testing.M) {
	switch os.Getenv("OWNPROCESS_ROLE") {
	case "concealed":
		if err := concealed(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	case "child":
		fmt.Println("child")
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// concealed conceals itself, does what agentd does with its own process, says so, and waits
// for the end of its input.
func concealed() error {
	if err := errors.Join(ownprocess.Conceal(), ownprocess.Adopt()); err != nil {
		return err
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{"OWNPROCESS_ROLE=child"}
	if out, err := cmd.Output(); err != nil || string(out) != "child\n" {
		return fmt.Errorf("a child said %q, %w", out, err)
	}
	_, err := proctree.Children(os.Getpid())
	_, merr := procmark.Of(os.Getpid())
	_, rerr := proctree.Read(os.Getpid())
	_, perr := os.Executable()
	if err := errors.Join(err, merr, rerr, perr); err != nil {
		return err
	}
	// It still adopts what its children leave.
	out, err := exec.Command("sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!").Output()
	if err != nil {
		return err
	}
	orphan, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		return err
	}
	p, err := proctree.Read(orphan)
	if err = errors.Join(err, syscall.Kill(orphan, syscall.SIGKILL)); err != nil || p.Parent != os.Getpid() {
		return fmt.Errorf("the orphan is %+v, %w", p, err)
	}
	fmt.Println("ready")
	_, err = io.ReadAll(os.Stdin)
	return err
}

// Other processes of the user learn nothing of a concealed one, which itself goes on as
// before. Root may look at everything.
func TestConceal(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	attr := &syscall.SysProcAttr{}
	if os.Getuid() == 0 {
		const nobody = 65534
		attr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
		dir, err := os.MkdirTemp("", "own")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		data, err := os.ReadFile(program)
		program = filepath.Join(dir, "program")
		if err = errors.Join(err, os.WriteFile(program, data, 0o755), os.Chmod(dir, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(program)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "OWNPROCESS_ROLE=concealed", "GORACE=atexit_sleep_ms=0"}
	cmd.SysProcAttr = attr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}()
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("it said %q, %v", line, err)
	}
	for _, name := range []string{"environ", "maps", "mem", "fd", "cwd/.", "root/.", "exe"} {
		look := exec.Command("head", "-c1", fmt.Sprintf("/proc/%d/%s", cmd.Process.Pid, name))
		if name == "fd" {
			look = exec.Command("ls", fmt.Sprintf("/proc/%d/fd", cmd.Process.Pid))
		}
		look.SysProcAttr = attr
		if text, err := look.CombinedOutput(); err == nil || !strings.Contains(string(text), "ermission denied") {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	status := exec.Command("head", "-c1", fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
	status.SysProcAttr = attr
	if text, err := status.CombinedOutput(); err != nil {
		t.Errorf("who checks for a peer's mark must be able to: %q, %v", text, err)
	}
}

package proctree_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/agentd/agentd/internal/proctree"
)

func TestTree(t *testing.T) {
	self := os.Getpid()
	cmd := exec.Command("sh", "-c", `exec 3<&0; sh -c 'echo $$; read x <&3' & wait`)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	grandchild, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		pid, ancestor int
		want          bool
	}{
		{cmd.Process.Pid, self, true}, {grandchild, self, true}, {grandchild, cmd.Process.Pid, true},
		{self, grandchild, false}, {self, self, false}, {cmd.Process.Pid, grandchild, false}, {os.Getppid(), self, false},
	} {
		if got, err := proctree.Descends(test.pid, test.ancestor); err != nil || got != test.want {
			t.Errorf("%d descends from %d: %v, %v", test.pid, test.ancestor, got, err)
		}
	}
	if pids, err := proctree.Children(self); err != nil || !slices.Contains(pids, cmd.Process.Pid) || slices.Contains(pids, grandchild) {
		t.Errorf("children %v, %v", pids, err)
	}
	if pids, err := proctree.All(); err != nil || !slices.Contains(pids, grandchild) || !slices.Contains(pids, self) {
		t.Errorf("all processes: %v, %v", pids, err)
	}
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if got := proctree.Executable(self); got != own {
		t.Errorf("this program is %q, not %q", got, own)
	}
}

func TestGone(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	if _, err := proctree.Read(pid); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a process that is gone: %v", err)
	}
	if _, err := proctree.Descends(pid, os.Getpid()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its ancestors: %v", err)
	}
	if _, err := proctree.Children(pid); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its children: %v", err)
	}
	if got := proctree.Executable(pid); got != "" {
		t.Errorf("its program: %q", got)
	}
}

// A name can hold whatever its process likes, and is no part of the state.
func TestNames(t *testing.T) {
	cmd := exec.Command("sh", "-c", `printf ') Z 1 1 (\n' >/proc/$$/comm; echo; read x`)
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
	defer func() { _ = in.Close(); _ = cmd.Wait() }()
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	p, err := proctree.Read(cmd.Process.Pid)
	if err != nil || p.Zombie || p.Parent != os.Getpid() || p.Group == 1 || p.Started == 0 {
		t.Errorf("%+v, %v", p, err)
	}
}

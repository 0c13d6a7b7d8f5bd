package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"syscall"
	"time"

	"github.com/agentd/agentd/daemon/broker"
)

// roleFlag makes this program a child: the broker, or the callee of one system.
const roleFlag = "-role"

// A usage is what a process has used since it began.
type usage struct {
	cpu     time.Duration
	mallocs uint64
}

func (u usage) minus(v usage) usage { return usage{u.cpu - v.cpu, u.mallocs - v.mallocs} }

func ownUsage() usage {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r) // cannot fail for SELF
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{time.Duration(r.Utime.Nano() + r.Stime.Nano()), m.Mallocs}
}

// runRole serves until standard input ends. It prints its address, and its usage
// for every line that it reads.
func runRole(args []string) error {
	name, target := args[0], ""
	if len(args) > 1 {
		target = args[1]
	}
	address, stop, err := startRole(name, target)
	if err != nil {
		return err
	}
	if len(args) > 2 {
		end, err := profileTo(filepath.Join(args[2], name+"-callee.pprof"))
		if err != nil {
			return err
		}
		defer end()
	}
	fmt.Println(address)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		u := ownUsage()
		fmt.Println(int64(u.cpu), u.mallocs)
	}
	return stop()
}

func startRole(name, target string) (address string, stop func() error, err error) {
	if name == "broker" {
		b, err := broker.Start(context.Background(), broker.Config{Port: broker.RandomPort})
		if err != nil {
			return "", nil, err
		}
		return b.URL(), func() error { return b.Stop(context.Background()) }, nil
	}
	for _, s := range systems() {
		if s.name == name {
			return s.serve(target)
		}
	}
	return "", nil, fmt.Errorf("no system %q", name)
}

// profileTo writes a CPU profile to path, and one of allocations beside it.
func profileTo(path string) (end func(), err error) {
	runtime.MemProfileRate = 4096
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close()
		if f, err := os.Create(path + ".allocs"); err == nil {
			_ = pprof.Lookup("allocs").WriteTo(f, 0)
			_ = f.Close()
		}
	}, nil
}

// A child is another process of this program.
type child struct {
	address string
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
}

func startChild(args ...string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.Command(self, append([]string{roleFlag}, args...)...)}
	c.cmd.Stderr = os.Stderr
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := c.out.ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%v did not start: %w", args, err), c.stop())
	}
	c.address = strings.TrimSpace(line)
	return c, nil
}

// usage asks the child.
func (c *child) usage() (usage, error) {
	if _, err := fmt.Fprintln(c.in); err != nil {
		return usage{}, err
	}
	line, err := c.out.ReadString('\n')
	if err != nil {
		return usage{}, err
	}
	var cpu int64
	var u usage
	_, err = fmt.Sscan(line, &cpu, &u.mallocs)
	u.cpu = time.Duration(cpu)
	return u, err
}

func (c *child) stop() error { return errors.Join(c.in.Close(), c.cmd.Wait()) }

package main

import (
	"bufio"
	"context"
	"encoding/json"
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
	"github.com/agentd/agentd/internal/loadgen"
)

// roleFlag makes this program a child: -role broker, -role callee <system> <target>, or
// -role caller <system> <address>. A child prints its address, serves the commands on
// its standard input, one JSON object a line each way, and ends with the input.
const roleFlag = "-role"

// A command to a child. The zero value asks for its usage.
type command struct {
	// Load makes calls.
	Load *loadSpec `json:"load,omitempty"`
	// Profile begins to write profiles into a folder, until the next command that has
	// one; "-" ends that.
	Profile string `json:"profile,omitempty"`
	// Recorded asks for the records of the access log.
	Recorded bool `json:"recorded,omitempty"`
}

// A loadSpec is the load of one measurement.
type loadSpec struct {
	Size    int           `json:"size"`
	Callers int           `json:"callers"`
	Rate    float64       `json:"rate"`
	For     time.Duration `json:"for"`
}

// An answer of a child.
type answer struct {
	Usage  usage           `json:"usage"`
	Report *loadgen.Report `json:"report,omitempty"`
	// Recorded is the number of records of the access log, 0 without one.
	Recorded int64  `json:"recorded,omitempty"`
	Error    string `json:"error,omitempty"`
}

// A usage is what a process has used since it began.
type usage struct {
	CPU     time.Duration `json:"cpu"`
	Mallocs uint64        `json:"mallocs"`
	// Lost counts the calls without a record.
	Lost int64 `json:"lost"`
}

func (u usage) minus(v usage) usage {
	return usage{u.CPU - v.CPU, u.Mallocs - v.Mallocs, u.Lost - v.Lost}
}

func (u usage) plus(v usage) usage {
	return usage{u.CPU + v.CPU, u.Mallocs + v.Mallocs, u.Lost + v.Lost}
}

func ownUsage() usage {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r) // cannot fail for SELF
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{CPU: time.Duration(r.Utime.Nano() + r.Stime.Nano()), Mallocs: m.Mallocs}
}

// A role is what a child does.
type role struct {
	name   string
	callee *callee
	client client
	end    func() // of the profiles
}

// runRole is the main function of a child.
func runRole(args []string) error {
	switch args[0] {
	case "worker":
		return runWorker()
	case "fleet":
		return measureFleet(args[1])
	}
	r := role{name: strings.Join(args[:min(2, len(args))], "-"), end: func() {}}
	address, err := r.start(args)
	if err != nil {
		return err
	}
	fmt.Println(address)
	in := bufio.NewScanner(os.Stdin)
	for out := json.NewEncoder(os.Stdout); in.Scan(); {
		var c command
		if err := json.Unmarshal(in.Bytes(), &c); err != nil {
			return err
		}
		if err := out.Encode(r.do(c)); err != nil {
			return err
		}
	}
	r.end()
	if r.client != nil {
		return r.client.close()
	}
	return r.callee.stop()
}

func (r *role) start(args []string) (address string, err error) {
	if args[0] == "broker" {
		b, err := broker.Start(context.Background(), broker.Config{Port: broker.RandomPort})
		if err != nil {
			return "", err
		}
		r.callee = &callee{stop: func() error { return b.Stop(context.Background()) }}
		return b.URL(), nil
	}
	if len(args) != 3 {
		return "", fmt.Errorf("%q is no role", args)
	}
	chosen, err := choose(args[1])
	if err != nil {
		return "", err
	}
	if args[0] == "caller" {
		r.client, err = chosen[0].dial(args[2])
		return args[2], err
	}
	if r.callee, err = chosen[0].serve(args[2]); err != nil {
		return "", err
	}
	return r.callee.address, nil
}

func (r *role) do(c command) answer {
	var a answer
	var err error
	switch {
	case c.Load != nil:
		a.Report, err = load(r.client, *c.Load)
	case c.Recorded:
		a.Recorded, err = r.recorded()
	case c.Profile != "":
		r.end()
		r.end = func() {}
		if c.Profile != "-" {
			r.end, err = profileTo(filepath.Join(c.Profile, r.name+".pprof"))
		}
	}
	if a.Usage = ownUsage(); r.callee != nil && r.callee.used != nil {
		more, uerr := r.callee.used()
		a.Usage, err = a.Usage.plus(more), errors.Join(err, uerr)
	}
	if err != nil {
		a.Error = err.Error()
	}
	return a
}

func (r *role) recorded() (int64, error) {
	if log, ok := r.client.(recorder); ok {
		return log.recorded()
	}
	if r.callee != nil && r.callee.recorded != nil {
		return r.callee.recorded()
	}
	return 0, nil
}

// load makes the calls of one measurement.
func load(c client, spec loadSpec) (*loadgen.Report, error) {
	data := payload(spec.Size)
	sleep, release := loadgen.PreciseSleep()
	defer release()
	failed := make(chan error, 1)
	report := loadgen.Run(context.Background(), func(context.Context) loadgen.Outcome {
		err := c.call(data)
		if err == nil {
			return loadgen.Outcome{}
		}
		select {
		case failed <- err:
		default: // one is enough
		}
		return loadgen.Outcome{Status: "failed"}
	}, loadgen.Options{Rate: spec.Rate, Concurrency: spec.Callers, For: spec.For, Sleep: sleep})
	select {
	case err := <-failed:
		return report, err
	default:
		return report, nil
	}
}

// profileTo writes a CPU profile to path, and one of allocations beside it.
func profileTo(path string) (end func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return func() {}, err
	}
	f, err := os.Create(path)
	if err != nil {
		return func() {}, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return func() {}, errors.Join(err, f.Close())
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

func (p *plan) startChild(args ...string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.Command(self, append([]string{roleFlag}, args...)...)} //nolint:gosec // this program itself
	c.cmd.Stderr = os.Stderr
	c.cmd.Env = append(os.Environ(), envAgentd+"="+p.agentd)
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

// do lets the child execute a command.
func (c *child) do(cmd command) (answer, error) {
	text, err := json.Marshal(cmd)
	if err != nil {
		return answer{}, err
	}
	if _, err := c.in.Write(append(text, '\n')); err != nil {
		return answer{}, err
	}
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		return answer{}, fmt.Errorf("%v: %w", c.cmd.Args[2:], err)
	}
	var a answer
	if err := json.Unmarshal(line, &a); err != nil {
		return answer{}, err
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	return a, nil
}

func (c *child) stop() error {
	if c == nil {
		return nil
	}
	return errors.Join(c.in.Close(), c.cmd.Wait())
}

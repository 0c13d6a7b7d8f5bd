package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/internal/proctree"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/skill/sdk"
)

// envAgentd names the program agentd for the children of this one.
const envAgentd = "BENCH_AGENTD"

// buildAgentd compiles agentd into a folder, unless program is one already.
func buildAgentd(ctx context.Context, program, folder string) (string, error) {
	if program != "" {
		return filepath.Abs(program)
	}
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/agentd/agentd").Output()
	if err != nil {
		return "", fmt.Errorf("where is agentd? run this in the folder bench, or name a program with -agentd: %w", err)
	}
	program = filepath.Join(folder, "agentd")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "./cmd/agentd")
	build.Dir, build.Stdout, build.Stderr = strings.TrimSpace(string(root)), os.Stderr, os.Stderr
	return program, build.Run()
}

// runWorker is the main function of a worker: the skill of the system socket.
func runWorker() error {
	sdk.Main(func(_ context.Context, in json.RawMessage) (json.RawMessage, error) { return in, nil }, sdk.Concurrent(64))
	return nil
}

// serveSocket starts two real `agentd run`. The callee's skill is a worker, the caller's
// calls come over its control socket.
func serveSocket(target string) (*callee, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	v := variant{worker: self}
	dir, err := v.writeFleet()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	var agents []*agentProcess
	stop := func() error {
		var errs []error
		for _, a := range agents {
			errs = append(errs, a.stop())
		}
		return errors.Join(append(errs, os.RemoveAll(dir))...)
	}
	var sockets []string
	program := os.Getenv(envAgentd)
	if program == "" {
		return nil, errors.Join(fmt.Errorf("%s does not name the program agentd", envAgentd), stop())
	}
	for _, id := range []string{"callee", "caller"} {
		a, err := startAgent(program, dir, target, id)
		if err != nil {
			return nil, errors.Join(err, stop())
		}
		agents, sockets = append(agents, a), append(sockets, a.socket)
	}
	used := func() (usage, error) {
		var sum usage
		for _, a := range agents {
			u, err := cpuOfTree(a.cmd.Process.Pid)
			if err != nil {
				return usage{}, err
			}
			sum.CPU += u
		}
		return sum, nil
	}
	return &callee{address: sockets[1], stop: stop, used: used}, nil
}

// An agentProcess is one `agentd run`.
type agentProcess struct {
	cmd    *exec.Cmd
	socket string
	// took is from its start until it was ready.
	took time.Duration
}

// startAgent returns when the agent is ready.
func startAgent(program, dir, server, id string) (*agentProcess, error) {
	root := filepath.Join(dir, "fleet")
	env := map[string]string{"XDG_STATE_HOME": filepath.Join(dir, "s"), "XDG_RUNTIME_DIR": filepath.Join(dir, "r"), "AGENTD_NATS_URL": server}
	paths, err := daemon.DefaultPaths("bench", root, func(name string) string { return env[name] })
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	cmd := exec.Command(program, "run", "--fleet", root, "--agent", id, "--log-format", "json", "--log-level", "error") //nolint:gosec // agentd itself
	cmd.Env = os.Environ()
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	a := &agentProcess{cmd: cmd, socket: paths.Socket(id)}
	client := control.NewClient(a.socket)
	defer client.Close()
	for limit := begun.Add(callLimit); time.Now().Before(limit); time.Sleep(time.Millisecond) {
		if client.Ready(context.Background()) == nil {
			a.took = time.Since(begun)
			return a, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("the agent %s is not ready within %s", id, callLimit), a.stop())
}

func (a *agentProcess) stop() error {
	return errors.Join(a.cmd.Process.Signal(syscall.SIGTERM), a.cmd.Wait())
}

// cpuOfTree is the time that a process and its descendants have used, in steps of the
// kernel's clock.
func cpuOfTree(pid int) (time.Duration, error) {
	const ticks = 100 // a second, on every architecture of Linux that Go has
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	const user, system = 11, 12 // proc(5), from the state on
	if len(fields) <= system {
		return 0, fmt.Errorf("the state of process %d cannot be read", pid)
	}
	u, uerr := strconv.Atoi(fields[user])
	s, serr := strconv.Atoi(fields[system])
	sum := time.Duration(u+s) * time.Second / ticks
	children, err := proctree.Children(pid)
	if err = errors.Join(uerr, serr, err); err != nil {
		return 0, err
	}
	for _, child := range children {
		if more, err := cpuOfTree(child); err == nil { // else it has just ended
			sum += more
		}
	}
	return sum, nil
}

// A socketClient calls over the control socket of an agent.
type socketClient struct{ control *control.Client }

func dialSocket(address string) (client, error) { return socketClient{control.NewClient(address)}, nil }

func (c socketClient) call(payload []byte) error {
	res, err := c.control.RequestAgent(context.Background(), rpc.Request{To: calleeAddr, Capability: "review", Payload: payload, Timeout: callLimit})
	if err != nil {
		return err
	}
	if res.Error != nil {
		return res.Error
	}
	if len(res.Response) != len(payload) {
		return errWrongReply
	}
	return nil
}

func (c socketClient) close() error { c.control.Close(); return nil }

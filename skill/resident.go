package skill

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/agentd/agentd/internal/descendants"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/skill/sandbox"
)

// A Resident is a program that runs for longer than a call: one instance of a worker. It has
// the boundaries of a [Process]: sandbox, environment, descendants, and a bounded share of
// the log.
type Resident struct {
	// Input is the write end of the program's standard input, and Output the read end of its
	// standard output. Both take deadlines. Close closes them.
	Input, Output *os.File

	process  *Process
	name     string
	cmd      *exec.Cmd
	confined *sandbox.Run
	family   *descendants.Call
	stderr   *steadyLogger
	logged   *outlet
	ended    chan struct{}
	how      error // set before ended is closed
}

// Start starts the program of a process so that it stays. Of the sandbox it gets the policy
// of a capability, and it is told of no call. name is what the log calls it, and env is added
// to its environment. ctx bounds the start. An error is an [rpc.SkillError]: the program has
// not run.
func (p *Process) Start(ctx context.Context, name, capability string, env ...string) (*Resident, error) {
	confined, err := p.Sandbox.Begin(capability)
	if err != nil {
		return nil, &rpc.SkillError{Message: notStarted, Err: err}
	}
	r := &Resident{process: p, name: name, confined: confined, stderr: newSteadyLogger(p.Logger, name), ended: make(chan struct{})}
	// Before anything is started, the go command included.
	r.family = p.Descendants.Begin("the worker "+name, confined.Mark())
	if err := r.start(ctx, env); err != nil {
		r.endDescendants()
		confined.Close()
		var public *rpc.SkillError
		if !errors.As(err, &public) {
			err = &rpc.SkillError{Message: notStarted, Err: err}
		}
		return nil, err
	}
	go r.wait()
	return r, nil
}

// start starts the program. After an error nothing is open.
func (r *Resident) start(ctx context.Context, env []string) (err error) {
	stdin, stdout, err := r.open()
	if err != nil {
		return err
	}
	defer func() {
		_, _ = stdin.Close(), stdout.Close() // the program has its own by now
		if err != nil {
			r.Close()
			r.logged.close()
		}
	}()
	if r.cmd, err = r.command(ctx, env); err != nil {
		return err
	}
	r.cmd.Stdin, r.cmd.Stdout, r.cmd.Stderr = stdin, stdout, r.logged.write
	if err := r.confined.Confine(ctx, r.cmd); err != nil {
		return err
	}
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := r.confined.Turn(ctx); err != nil {
		return err
	}
	if err := r.confined.Start(ctx, r.cmd); err != nil {
		r.confined.Started()
		return err
	}
	r.stderr.started(r.Pid())
	r.logged.begin()
	r.family.Started(r.Pid())
	r.process.Usage.started(r.Pid())
	// Only a helper that hangs takes long here.
	stop := context.AfterFunc(ctx, func() { r.Signal(syscall.SIGKILL) })
	r.confined.Started()
	stop()
	if failure := r.confined.Failure(); failure != nil {
		_ = r.cmd.Wait() // the helper, which has said why it failed
		r.process.Usage.finished(r.Pid(), r.cmd.ProcessState)
		r.logged.finish(time.Now())
		return failure
	}
	return nil
}

// open opens the pipes, and returns the program's ends.
func (r *Resident) open() (stdin, stdout *os.File, err error) {
	if r.logged, err = newOutlet(r.stderr); err != nil {
		return nil, nil, err
	}
	if stdin, r.Input, err = os.Pipe(); err != nil {
		r.logged.close()
		return nil, nil, fmt.Errorf("skill: %w", err)
	}
	if r.Output, stdout, err = os.Pipe(); err != nil {
		_, _ = stdin.Close(), r.Input.Close() // nothing has been written
		r.logged.close()
		return nil, nil, fmt.Errorf("skill: %w", err)
	}
	return stdin, stdout, nil
}

// command returns the program, ready to be confined. What describes a call is set to
// nothing: agentd may itself run inside of a skill.
func (r *Resident) command(ctx context.Context, env []string) (*exec.Cmd, error) {
	ofNoCall, err := callEnvironment(&rpc.Invocation{})
	if err != nil {
		return nil, err
	}
	words, err := r.process.Builds.program(ctx, r.process)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(words[0], words[1:]...) //nolint:noctx // it outlives the start, and its owner ends it
	cmd.Dir = r.process.Dir
	cmd.Env = append(append(r.process.environment(os.Environ(), r.confined), ofNoCall...), env...)
	return cmd, nil
}

// wait waits for the program to end, and ends what it has left.
func (r *Resident) wait() {
	err := r.cmd.Wait()
	r.process.Usage.finished(r.Pid(), r.cmd.ProcessState)
	r.endDescendants()
	// Where descendants are not found, what is left in the group goes at least.
	_ = syscall.Kill(-r.Pid(), syscall.SIGKILL)
	r.logged.finish(time.Now().Add(r.process.grace()))
	r.stderr.close()
	r.how = errors.New("exit status 0")
	if err != nil {
		r.how = err
	}
	if policy := r.confined.Allowed(); policy != nil && r.stderr.refused != "" {
		r.how = fmt.Errorf("%w: the sandbox of the skill may be the cause of %q: %s", r.how, r.stderr.refused, grant(r.stderr.refused, policy))
	}
	r.confined.Close()
	close(r.ended)
}

// endDescendants ends what the program has left, and logs how much that was.
func (r *Resident) endDescendants() {
	ended, err := r.family.End()
	logLeft(r.process.Logger, ended, err, "skill", r.name)
}

// Pid is the process id of the program, and of its process group.
func (r *Resident) Pid() int { return r.cmd.Process.Pid }

// Signal sends a signal to the process group of the program, while that runs. SIGKILL
// reaches the program also if it has joined another group.
func (r *Resident) Signal(s syscall.Signal) {
	select {
	case <-r.ended: // the number may be another's by now
		return
	default:
	}
	err := syscall.Kill(-r.Pid(), s)
	if err != nil || s == syscall.SIGKILL { // any other signal means something else when it comes twice
		_ = r.cmd.Process.Signal(s) // it may be about to end
	}
}

// Ended is closed when the program, and all that it has left, has ended.
func (r *Resident) Ended() <-chan struct{} { return r.ended }

// How says how the program ended, such as "exit status 1". It may be called once Ended is
// closed.
func (r *Resident) How() error { return r.how }

// Status is How in short: without what the program itself has said.
func (r *Resident) Status() string { return r.cmd.ProcessState.String() }

// Close closes Input and Output. The program should have ended.
func (r *Resident) Close() { _, _ = r.Input.Close(), r.Output.Close() }

// logWindow is the time for which the bounds of a [lineLogger] hold, which are those of one
// call, where a program stays.
const logWindow = time.Minute

// A steadyLogger writes the standard error of a program that stays to the log: for each
// window as much as for one call.
type steadyLogger struct {
	lineLogger
	began time.Time // of the window
}

func newSteadyLogger(log *slog.Logger, name string) *steadyLogger {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &steadyLogger{lineLogger: lineLogger{of: "in a minute", log: log.With("skill", name)}, began: time.Now()}
}

// started adds the process id to the lines. Nothing has been written yet.
func (l *steadyLogger) started(pid int) { l.log = l.log.With("pid", pid) }

// Write implements [io.Writer].
func (l *steadyLogger) Write(p []byte) (int, error) {
	if time.Since(l.began) > logWindow {
		l.tally()
		l.lines, l.bytes, l.lost, l.lostBytes, l.began = 0, 0, 0, 0, time.Now()
		l.refused = "" // what was refused so long ago has not ended the program
	}
	return l.lineLogger.Write(p)
}

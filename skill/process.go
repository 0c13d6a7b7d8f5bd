package skill

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/agentd/agentd/internal/descendants"
	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/skill/sandbox"
)

// Defaults of a [Process].
const (
	// DefaultMaxOutputBytes bounds standard output.
	DefaultMaxOutputBytes = 4 << 20
	// DefaultKillGrace is the time between SIGTERM and SIGKILL.
	DefaultKillGrace = 2 * time.Second
)

// exitTempFail is EX_TEMPFAIL of sysexits.h.
const exitTempFail = 75

// notStarted is what a caller learns of a program that could not be started.
const notStarted = "the skill could not be started"

// maxMessageBytes bounds the error message that a failing program sends to
// the caller.
const maxMessageBytes = 2048

// A Calls registers running calls, so that a program's nested requests find
// the context of the call that they belong to.
type Calls interface {
	// Register keeps ctx under a token that cannot be guessed, until release.
	Register(ctx context.Context) (token string, release func())
}

// A Process is a program that is started for each call. See the package
// comment for what it must do. The zero value of an optional field is its
// default. A Process must not be changed while it is in use.
type Process struct {
	// Command is the program and its arguments. Required. A name without a
	// slash is looked up in PATH.
	Command []string
	// Dir is the working directory.
	Dir string
	// Env is what is added to the environment, as KEY=value.
	Env []string
	// InheritEnv names more variables of this process to pass on; a name that
	// ends in * is a prefix.
	InheritEnv []string
	// MaxOutputBytes bounds standard output. Default 4 MiB. A program that
	// writes more is killed.
	MaxOutputBytes int
	// KillGrace is how long a program may clean up after SIGTERM. Default 2 s.
	KillGrace time.Duration
	// Calls serves nested requests; nil means that the program makes none.
	Calls Calls
	// Sandbox confines the program. Nil lets it do whatever this process may.
	Sandbox *sandbox.Sandbox
	// Builds builds the program of a command `go run`, which a confined program could not
	// do without writing to the user's build cache. Nil runs the command as it is.
	Builds *Builds
	// Descendants ends what the program leaves running outside of its process group. Nil
	// leaves it alone. Only package daemon makes one.
	Descendants *descendants.Member
	// Usage notes what the programs use. Nil notes nothing.
	Usage *Usage
	// Logger receives standard error. The default discards it.
	Logger *slog.Logger
}

var _ rpc.Handler = (*Process)(nil)

// errTooMuchOutput is the cause with which a program is stopped that exceeds
// MaxOutputBytes.
var errTooMuchOutput = errors.New("skill: too much output")

// Handle implements [rpc.Handler]. It returns only after the program and its
// process group are gone.
func (p *Process) Handle(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
	if len(p.Command) == 0 {
		return nil, errors.New("skill: no command")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stdout := &cappedBuffer{most: p.maxOutput(), overflow: func() { cancel(errTooMuchOutput) }}
	stderr := newLineLogger(p.Logger, inv)
	confined, err := p.Sandbox.Begin(inv.Capability)
	if err != nil {
		return nil, &rpc.SkillError{Message: notStarted, Err: err}
	}
	defer confined.Close()
	state, err := p.run(ctx, inv, confined, stdout, stderr)
	stderr.close()
	if state == nil && ctx.Err() != nil { // it was not to start any more, whatever else kept it from that
		return nil, stopped(context.Cause(ctx))
	}
	if state == nil {
		return nil, err
	}
	if failure := confined.Failure(); failure != nil && ctx.Err() == nil {
		return nil, &rpc.SkillError{Message: notStarted, Err: failure}
	}
	out, err := p.outcome(ctx, state, stdout.buf.Bytes(), err)
	return out, withHint(err, stderr.refused, confined.Allowed())
}

// run runs the program until it, and what it has left, has ended, and has written all that
// it has to say. The state is nil when it has never run; the error then is the call's.
func (p *Process) run(ctx context.Context, inv *rpc.Invocation, confined *sandbox.Run, stdout, stderr io.Writer) (*os.ProcessState, error) {
	out, err := newOutlet(stdout)
	if err != nil {
		return nil, err
	}
	var ended time.Time
	defer func() { out.finish(ended.Add(p.grace())) }()
	logged, err := newOutlet(stderr)
	if err != nil {
		return nil, err
	}
	defer func() { logged.finish(ended.Add(p.grace())) }()
	// Before anything is started for the call, the go command included.
	family := p.Descendants.Begin(inv.CorrelationID, confined.Mark())
	defer p.endDescendants(family, inv) // of a program that has not started
	cmd, release, err := p.command(ctx, inv, confined)
	if err != nil {
		return nil, err
	}
	defer release()
	cmd.Stdout, cmd.Stderr = out.write, logged.write
	if err := confined.Turn(ctx); err != nil {
		return nil, stopped(err)
	}
	if err := confined.Start(ctx, cmd); err != nil {
		confined.Started()
		return nil, &rpc.SkillError{Message: notStarted, Err: err}
	}
	out.begin()
	logged.begin()
	family.Started(cmd.Process.Pid)
	p.Usage.started(cmd.Process.Pid)
	confined.Started()
	err = cmd.Wait()
	p.Usage.finished(cmd.Process.Pid, cmd.ProcessState)
	ended = time.Now()
	p.endDescendants(family, inv)
	// Where descendants are not found, what is left in the group goes at least.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	return cmd.ProcessState, err
}

// endDescendants ends what the program of a call has left, and logs how much that was.
func (p *Process) endDescendants(family *descendants.Call, inv *rpc.Invocation) {
	ended, err := family.End()
	logLeft(p.Logger, ended, err, "capability", inv.Capability, "correlationId", inv.CorrelationID, "traceId", inv.TraceID())
}

// logLeft logs how many processes a program has left that were ended, and that some were not.
func logLeft(log *slog.Logger, ended int, err error, of ...any) {
	if log == nil || ended == 0 && err == nil {
		return
	}
	log = log.With(of...).With("ended", ended)
	if err != nil {
		log.Error("the skill has left processes that could not all be ended", "error", err)
		return
	}
	log.Info("the skill has left processes, which were ended")
}

// command returns the program, ready to start, and what to call when it has ended.
func (p *Process) command(ctx context.Context, inv *rpc.Invocation, confined *sandbox.Run) (*exec.Cmd, func(), error) {
	ofCall, err := callEnvironment(inv)
	if err != nil {
		return nil, nil, err
	}
	command, err := p.Builds.program(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = p.Dir
	cmd.Stdin = bytes.NewReader(inv.Payload)
	cmd.Env = append(p.environment(os.Environ(), confined), ofCall...)
	release := func() {}
	if p.Calls != nil {
		var token string
		token, release = p.Calls.Register(ctx)
		cmd.Env = append(cmd.Env, "AGENTD_CALL="+token)
	}
	if err := confined.Confine(ctx, cmd); err != nil {
		release()
		return nil, nil, &rpc.SkillError{Message: notStarted, Err: err}
	}
	// A group of its own: a shell and its children are stopped together.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		signal := syscall.SIGTERM
		if errors.Is(context.Cause(ctx), errTooMuchOutput) {
			signal = syscall.SIGKILL
		}
		return syscall.Kill(-cmd.Process.Pid, signal)
	}
	cmd.WaitDelay = p.grace()
	return cmd, release, nil
}

func (p *Process) grace() time.Duration {
	if p.KillGrace <= 0 {
		return DefaultKillGrace
	}
	return p.KillGrace
}

func (p *Process) maxOutput() int {
	if p.MaxOutputBytes <= 0 {
		return DefaultMaxOutputBytes
	}
	return p.MaxOutputBytes
}

// environment returns the variables that a program may see. It copies a fixed
// few of agentd's own and those that the configuration names, because
// agentd's environment holds secrets. The temporary folder of a confined program, the only
// one that it may write, takes the place of the user's. One that runs as another user has
// that user's variables.
func (p *Process) environment(own []string, confined *sandbox.Run) []string {
	passed, env := []string{"PATH", "LANG"}, []string(nil)
	home, user := confined.Home(), confined.User()
	switch {
	case home != "":
		env = append(env, "HOME="+home, "TMPDIR="+home)
	case user != nil:
		env = append(env, "HOME="+user.Home)
	default:
		passed = append(passed, "HOME", "TMPDIR")
	}
	if user != nil {
		env = append(env, "USER="+user.Name, "LOGNAME="+user.Name)
	} else {
		passed = append(passed, "USER")
	}
	passed = append(passed, p.InheritEnv...)
	for _, kv := range own {
		name, _, _ := strings.Cut(kv, "=")
		for _, pattern := range passed {
			prefix, isPrefix := strings.CutSuffix(pattern, "*")
			if name == pattern || isPrefix && strings.HasPrefix(name, prefix) {
				env = append(env, kv)
				break
			}
		}
	}
	return append(env, p.Env...)
}

// stopped is the error of a program that was stopped before it had ended by itself.
func stopped(cause error) error { return fmt.Errorf("skill: stopped: %w", cause) }

// outcome turns the end of the program into a response or a typed error.
func (p *Process) outcome(ctx context.Context, state *os.ProcessState, stdout []byte, err error) (json.RawMessage, error) {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errTooMuchOutput):
		return nil, &rpc.SkillError{
			Code:    rpc.CodeBadSkillOutput,
			Message: fmt.Sprintf("the skill wrote more than %d bytes and was stopped", p.maxOutput()),
		}
	case cause != nil:
		return nil, stopped(cause)
	}
	if err == nil || errors.Is(err, exec.ErrWaitDelay) && state.Success() {
		return answer(stdout)
	}
	if state == nil || state.Success() {
		return nil, fmt.Errorf("skill: %w", err)
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return nil, &rpc.SkillError{Message: fmt.Sprintf("the skill was stopped by a signal (%s)", status.Signal()), Lost: true}
	}
	code := state.ExitCode()
	public := &rpc.SkillError{
		Message:   fmt.Sprintf("the skill exited with status %d", code),
		Retryable: code == exitTempFail,
	}
	var said struct {
		Error struct {
			Message   string `json:"message"`
			Retryable bool   `json:"retryable"`
		} `json:"error"`
	}
	if json.Unmarshal(stdout, &said) == nil && said.Error.Message != "" {
		public.Message = strings.ToValidUTF8(said.Error.Message[:min(len(said.Error.Message), maxMessageBytes)], "")
		public.Retryable = public.Retryable || said.Error.Retryable
	}
	return nil, public
}

// answer returns the program's output if it is exactly one JSON value.
func answer(stdout []byte) (json.RawMessage, error) {
	const depth = 512
	trimmed := bytes.TrimSpace(stdout)
	if len(trimmed) == 0 {
		return nil, &rpc.SkillError{Code: rpc.CodeBadSkillOutput, Message: "the skill exited with status 0 and wrote no answer"}
	}
	if err := ijson.Check(trimmed, depth); err != nil {
		return nil, &rpc.SkillError{Code: rpc.CodeBadSkillOutput, Message: "the skill's output is not one JSON value", Err: err}
	}
	return trimmed, nil
}

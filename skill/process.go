package skill

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

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
	run, err := p.prepare(ctx, inv)
	if err != nil {
		return nil, err
	}
	defer run.release()
	cmd := run.cmd
	cmd.Stdout, cmd.Stderr = stdout, stderr
	err = cmd.Start()
	run.confined.Started()
	if err != nil {
		return nil, &rpc.SkillError{Message: notStarted, Err: err}
	}
	err = cmd.Wait()
	// What the program left running in its group goes with it.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	stderr.close()
	if failure := run.confined.Failure(); failure != nil && ctx.Err() == nil {
		return nil, &rpc.SkillError{Message: notStarted, Err: failure}
	}
	out, err := p.outcome(ctx, cmd.ProcessState, stdout.buf.Bytes(), err)
	return out, withHint(err, stderr.refused, run.confined.Allowed())
}

// A prepared program is ready to start.
type prepared struct {
	cmd      *exec.Cmd
	confined *sandbox.Run // nil for a program that is not confined
	release  func()       // when the program has ended
}

// prepare returns the program of a call.
func (p *Process) prepare(ctx context.Context, inv *rpc.Invocation) (*prepared, error) {
	ofCall, err := callEnvironment(inv)
	if err != nil {
		return nil, err
	}
	command, err := p.Builds.program(ctx, p)
	if err != nil {
		return nil, err
	}
	run := &prepared{release: func() {}}
	if p.Sandbox != nil {
		if run.confined, err = p.Sandbox.Begin(inv.Capability); err != nil {
			return nil, &rpc.SkillError{Message: notStarted, Err: err}
		}
		run.release = run.confined.Close
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = p.Dir
	cmd.Stdin = bytes.NewReader(inv.Payload)
	cmd.Env = append(p.environment(os.Environ(), run.confined.Home()), ofCall...)
	if p.Calls != nil {
		token, release := p.Calls.Register(ctx)
		cmd.Env = append(cmd.Env, "AGENTD_CALL="+token)
		run.release = func() { release(); run.confined.Close() }
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
	cmd.WaitDelay = p.KillGrace
	if cmd.WaitDelay <= 0 {
		cmd.WaitDelay = DefaultKillGrace
	}
	if err := run.confined.Confine(cmd); err != nil {
		run.release()
		return nil, &rpc.SkillError{Message: notStarted, Err: err}
	}
	run.cmd = cmd
	return run, nil
}

func (p *Process) maxOutput() int {
	if p.MaxOutputBytes <= 0 {
		return DefaultMaxOutputBytes
	}
	return p.MaxOutputBytes
}

// environment returns the variables that a program may see. It copies a fixed
// few of agentd's own and those that the configuration names, because
// agentd's environment holds secrets. home, unless it is "", is the only folder
// that the program may write: it takes the place of the user's.
func (p *Process) environment(own []string, home string) []string {
	passed := append([]string{"PATH", "HOME", "TMPDIR", "USER", "LANG"}, p.InheritEnv...)
	var env []string
	if home != "" {
		env = []string{"HOME=" + home, "TMPDIR=" + home}
		passed = append([]string{"PATH", "USER", "LANG"}, p.InheritEnv...)
	}
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

// outcome turns the end of the program into a response or a typed error.
func (p *Process) outcome(ctx context.Context, state *os.ProcessState, stdout []byte, err error) (json.RawMessage, error) {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errTooMuchOutput):
		return nil, &rpc.SkillError{
			Code:    rpc.CodeBadSkillOutput,
			Message: fmt.Sprintf("the skill wrote more than %d bytes and was stopped", p.maxOutput()),
		}
	case cause != nil:
		return nil, fmt.Errorf("skill: stopped: %w", cause)
	}
	if err == nil || errors.Is(err, exec.ErrWaitDelay) && state.Success() {
		return answer(stdout)
	}
	if state == nil || state.Success() {
		return nil, fmt.Errorf("skill: %w", err)
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return nil, &rpc.SkillError{Message: fmt.Sprintf("the skill was stopped by a signal (%s)", status.Signal())}
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

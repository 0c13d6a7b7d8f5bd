package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentd/agentd/internal/procmark"
)

// A Sandbox starts the programs of a skill confined. The process that uses it must call
// [Main] where [IsHelper] says so. It is safe for concurrent use.
type Sandbox struct {
	// Policy is that of every call, but for its mark and its temporary folder.
	Policy Policy
	// ByCapability are the policies of the capabilities that have their own.
	ByCapability map[string]Policy
	// Marks gives each call its mark. Required.
	Marks *procmark.Source
	// Threads starts the programs. Nil has the helper start them, which takes longer.
	Threads *Threads
	// Helper is the program whose [Main] is the helper; "" is this program.
	Helper string
	// Folders makes the temporary folder of each call. Nil makes none.
	Folders *Folders
	// Starts bounds how many programs start at a time. Nil does not.
	Starts *Starts
}

// A Run is one program that is confined. Close ends it. The methods of a nil Run, of a program
// that is not confined, do nothing.
type Run struct {
	sandbox     *Sandbox
	policy      Policy   // with the call's mark
	folder      string   // temporary; or ""
	onThread    bool     // the program is started by a thread
	read, write *os.File // of the helper's report
	turn        func()   // ends that of Turn; nil before it
	failure     error    // what the helper has reported
}

// Begin returns a run of a call, with its mark and its temporary folder. A nil Sandbox
// begins a nil run.
func (s *Sandbox) Begin(capability string) (*Run, error) {
	if s == nil {
		return nil, nil
	}
	policy, ok := s.ByCapability[capability]
	if !ok {
		policy = s.Policy
	}
	policy.Mark = s.Marks.Next()
	r := &Run{sandbox: s, policy: policy}
	if s.Folders != nil && !policy.Off {
		var err error
		if r.folder, err = s.Folders.Make(policy.User); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Confine makes a command that is ready to start one of a confined program, with the same
// Dir, SysProcAttr and environment. Env must be complete: what is added later does not reach
// the program. Start must start it. ctx is that of the command.
func (r *Run) Confine(ctx context.Context, cmd *exec.Cmd) (err error) {
	if r == nil || cmd.Err != nil || !supported {
		return nil // Start returns the error
	}
	if !r.policy.Off {
		r.complete(&r.policy, cmd)
	}
	if len(cmd.ExtraFiles) > 0 {
		return errors.New("sandbox: a confined program inherits no files")
	}
	if r.onThread = r.sandbox.Threads.serve(ctx, &r.policy, cmd); r.onThread {
		return nil
	}
	if err := command(cmd, &r.policy, r.sandbox.Helper); err != nil {
		return err
	}
	if r.read, r.write, err = os.Pipe(); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	cmd.ExtraFiles = []*os.File{r.write}
	return nil
}

// complete adds to a policy what depends on the program: where it is installed, and the
// temporary folder.
func (r *Run) complete(p *Policy, cmd *exec.Cmd) {
	program := cmd.Path
	if !filepath.IsAbs(program) {
		program = filepath.Join(cmd.Dir, program)
	}
	search := filepath.SplitList(variable(cmd.Env, "PATH"))
	p.Programs = slices.Clone(p.Programs)
	if p.Execute {
		p.Programs = append(p.Programs, installation(program, search)...)
	} else {
		p.Read = append(slices.Clone(p.Read), installation(program, nil)...)
		p.Programs = append(p.Programs, optional(interpreters(program, search)...)...)
	}
	if r.folder != "" {
		p.Write = append(slices.Clone(p.Write), Path{Name: r.folder, Required: true})
	}
}

// variable returns the last value of a name in an environment.
func variable(env []string, name string) (value string) {
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			value = v
		}
	}
	return value
}

// Home returns the temporary folder of the call, or "".
func (r *Run) Home() string {
	if r == nil {
		return ""
	}
	return r.folder
}

// User returns whom the program runs as, or nil.
func (r *Run) User() *User {
	if r == nil {
		return nil
	}
	return r.policy.User
}

// Allowed returns what the program runs under; nil for one that is not confined.
func (r *Run) Allowed() *Policy {
	if r == nil || r.policy.Off {
		return nil
	}
	return &r.policy
}

// Mark returns what the program's processes carry.
func (r *Run) Mark() procmark.Mark {
	if r == nil {
		return procmark.None
	}
	return r.policy.Mark
}

// Turn waits until the command may start; see [Starts]. Started or Close ends the turn, and
// so does the end of ctx.
func (r *Run) Turn(ctx context.Context) (err error) {
	if r == nil || r.write == nil && !r.onThread { // it is not confined
		return nil
	}
	r.turn, err = r.sandbox.Starts.turn(ctx)
	return err
}

// Start starts a command that Confine has made. ctx is that of the command. A program that
// has not been started has not run; the error may be an [Error].
func (r *Run) Start(ctx context.Context, cmd *exec.Cmd) error {
	if r != nil && r.onThread {
		return r.sandbox.Threads.start(ctx, &r.policy, cmd)
	}
	return cmd.Start()
}

// Started must be called when the command has started, or has failed to. It returns when the
// helper has become the program, or has ended.
func (r *Run) Started() {
	if r == nil {
		return
	}
	if r.write != nil {
		_ = r.write.Close() // it has never been written here
		r.write = nil
		r.failure = readFailure(r.read) // until execve, or the end, closes the other end
	}
	if r.turn != nil {
		r.turn()
	}
}

// Failure returns the [Error] of a program that has never run, or nil. It must be called
// after Started.
func (r *Run) Failure() error {
	if r == nil {
		return nil
	}
	return r.failure
}

// Close removes the temporary folder. The program and all that it has started must have
// ended.
func (r *Run) Close() {
	if r == nil {
		return
	}
	r.Started()
	if r.read != nil {
		_ = r.read.Close() // it was only read
	}
	if r.folder != "" {
		r.sandbox.Folders.Remove(r.folder)
	}
}

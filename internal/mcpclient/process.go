package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/agentd/agentd/internal/descendants"
	"github.com/agentd/agentd/skill/sandbox"
)

// A process is one run of a server's program, with the connection to it.
type process struct {
	*lineConn
	cmd      *exec.Cmd
	grace    time.Duration
	kill     context.CancelFunc // ends the group at once
	confined *sandbox.Run
	family   *descendants.Call
	stderr   *stderrLog
	errors   *os.File

	ending sync.Once
	gone   chan struct{} // closed when nothing of it is left

	mu         sync.Mutex
	misbehaved error
	exited     error
}

// startProcess starts the program. ctx bounds the start, and not the run.
func startProcess(ctx context.Context, o *Options, log *slog.Logger) (_ *process, err error) {
	life, kill := context.WithCancel(context.Background())
	p := &process{grace: o.Command.Grace, kill: kill, gone: make(chan struct{}), stderr: newStderrLog(log)}
	if p.grace <= 0 {
		p.grace = 2 * time.Second
	}
	var ours, theirs [3]*os.File
	defer func() {
		closeAll(theirs[:]) // the program has its own by now
		if err != nil {
			kill()
			closeAll(ours[:])
			_, _ = p.family.End() // nothing has been started
			p.confined.Close()
		}
	}()
	for i := range ours {
		if ours[i], theirs[i], err = os.Pipe(); err != nil {
			return nil, err
		}
	}
	ours[0], theirs[0] = theirs[0], ours[0] // of standard input, the program has the other end
	p.lineConn, p.errors = newLineConn(ours[1], ours[0], o.Limits.MessageBytes, log), ours[2]
	p.ended, p.lineConn.close = p.readEnded, p.end
	if p.confined, err = o.Command.Sandbox.Begin(""); err != nil {
		return nil, err
	}
	env, err := o.Command.environment(p.confined)
	if err != nil {
		return nil, err
	}
	p.cmd = exec.CommandContext(life, o.Command.Args[0], o.Command.Args[1:]...) //nolint:contextcheck // it outlives the start
	p.cmd.Dir, p.cmd.Env = o.Command.Dir, env
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = theirs[0], theirs[1], theirs[2]
	return p, p.start(ctx, life, o)
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // a nil file only says that it is one
	}
}

// start starts the command, as package skill does with that of a call.
func (p *process) start(ctx, life context.Context, o *Options) error {
	stop := context.AfterFunc(ctx, p.kill)
	defer stop()
	p.family = o.Command.Descendants.Begin("mcp:"+o.Name, p.confined.Mark())
	if err := p.confined.Confine(life, p.cmd); err != nil {
		return err
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Cancel = func() error {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		return p.cmd.Process.Kill() // which may have joined another group
	}
	if err := p.confined.Turn(ctx); err != nil {
		return err
	}
	if err := p.confined.Start(life, p.cmd); err != nil {
		p.confined.Started()
		return fmt.Errorf("the program could not be started: %w", err)
	}
	p.family.Started(p.cmd.Process.Pid)
	p.confined.Started()
	go p.wait()
	return nil
}

// wait waits for the program, and ends what it has left.
func (p *process) wait() {
	defer close(p.gone)
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		p.stderr.copy(p.errors) // until the last writer has gone, or the deadline below
	}()
	err := p.cmd.Wait()
	_, _ = p.family.End()                                 // what could not be ended goes with a later call
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // of those that carry no mark
	// Whatever keeps an output open now cannot be found. What it has written is read.
	deadline := time.Now().Add(p.grace)
	_ = p.errors.SetReadDeadline(deadline)
	_ = p.read.SetReadDeadline(deadline)
	<-logged
	exited := p.exit(err)
	p.mu.Lock()
	p.exited = exited
	p.mu.Unlock()
	p.kill()
	_ = p.errors.Close()
	p.confined.Close()
}

// An exitError is the end of a program.
type exitError struct{ text, said string }

func (e *exitError) Error() string {
	if e.said == "" {
		return e.text
	}
	return e.text + "; it wrote: " + e.said
}

// exit is the end of the program, with the last that it had to say.
func (p *process) exit(err error) error {
	if failure := p.confined.Failure(); failure != nil {
		return fmt.Errorf("the program could not be started: %w", failure)
	}
	e := &exitError{text: "its program ended", said: shown(p.stderr.lastLine())}
	if p.cmd.ProcessState != nil {
		e.text += " (" + p.cmd.ProcessState.String() + ")"
	} else if err != nil {
		e.text += " (" + err.Error() + ")"
	}
	return e
}

// readEnded notes why the connection could not be read any further.
func (p *process) readEnded(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if errors.As(why, new(misbehaved)) {
		p.misbehaved = why
	}
}

// cause is why the connection has ended, once everything has: what the server did wrong,
// or how its program ended.
func (p *process) cause() error {
	<-p.gone
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.misbehaved != nil {
		return p.misbehaved
	}
	return p.exited
}

// end begins the end of the program, and does not wait for it: the library calls it with
// its lock held.
func (p *process) end() error {
	p.ending.Do(func() {
		_ = p.write.Close() // by which the protocol asks the server to end
		go p.stop()
	})
	return nil
}

func (p *process) stop() {
	enough := time.NewTimer(p.grace)
	defer enough.Stop()
	select {
	case <-p.gone:
	case <-enough.C:
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM)
		enough.Reset(p.grace)
		select {
		case <-p.gone:
		case <-enough.C:
			p.kill()
			<-p.gone
		}
	}
	_ = p.read.Close()
}

// close ends the program, and returns when nothing is left of it.
func (p *process) close() {
	_ = p.end() // it never fails
	<-p.gone
}

// environment returns the variables that the program sees: the few of this process that
// programs need, and those that the configuration names.
func (c *Command) environment(confined *sandbox.Run) ([]string, error) {
	passed, env := []string{"PATH", "LANG"}, []string{}
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
	}
	for _, name := range passed {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	if c.Env == nil {
		return env, nil
	}
	named, err := c.Env()
	if err != nil {
		return nil, err
	}
	for _, kv := range named {
		if name, _, ok := strings.Cut(kv, "="); !ok || name == "" || strings.ContainsRune(kv, 0) {
			return nil, errors.New("a variable of the environment is not written as NAME=value")
		}
	}
	return append(env, named...), nil
}

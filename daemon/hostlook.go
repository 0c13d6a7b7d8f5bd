package daemon

import (
	"context"
	"sync"

	"github.com/agentd/agentd/skill/sandbox"
)

// A hostLook is what an agent finds out of its host before it confines programs of skills:
// how a confined program can be started, and what is private there. Either takes about as
// long as opening the audit log, so a start begins both before that.
type hostLook struct {
	threads func() (*sandbox.Threads, error)
	private privateFiles
	running sync.WaitGroup
}

// privateFiles lists the files of the system that no skill may read, and the folders that it
// has not seen all of. It looks once, however often it is called.
type privateFiles func() (private, unseen []string)

func lookForPrivateFiles() privateFiles {
	return sync.OnceValues(func() (private, unseen []string) { return sandbox.Private("/etc", mostSystemFiles) })
}

// lookAtHost begins a look where the agent has a skill that will be confined, and returns
// what waits for its end. It is for the start, and ends with ctx.
func (d *Daemon) lookAtHost(ctx context.Context) (wait func()) {
	if !d.cfg.Confines || len(d.processSkills(d.Member())) == 0 {
		return func() {}
	}
	look := &hostLook{
		threads: sync.OnceValues(func() (*sandbox.Threads, error) { return sandbox.OpenThreads(ctx) }),
		private: lookForPrivateFiles(),
	}
	look.running.Go(func() { _, _ = look.threads() })
	look.running.Go(func() { look.private() })
	d.early.Store(look)
	return func() {
		d.early.Store(nil) // a reload looks again
		look.running.Wait()
	}
}

// openThreads opens what starts confined programs.
func (d *Daemon) openThreads(ctx context.Context) (*sandbox.Threads, error) {
	if early := d.early.Load(); early != nil {
		return early.threads()
	}
	return sandbox.OpenThreads(ctx)
}

// privateFiles returns the files of the system that no skill may read, for one load.
func (d *Daemon) privateFiles() privateFiles {
	if early := d.early.Load(); early != nil {
		return early.private
	}
	return lookForPrivateFiles()
}

package descendants

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentd/agentd/internal/ownprocess"
	"github.com/agentd/agentd/internal/procmark"
)

const (
	// endTimeout bounds how long the end of a call waits for its descendants to be gone.
	// A process that the kernel cannot end now, as one that waits for a disk, is ended
	// with a later call.
	endTimeout = 2 * time.Second
	// reapInterval is how often the processes are waited for that a running call's
	// program has started, has left behind, and that have ended.
	reapInterval = 10 * time.Second
)

// A Family is the account of the calls whose programs this process runs. A process that adopts
// its descendants has one, for all of its agents: what it does not know there is nobody's. It is
// safe for concurrent use.
type Family struct {
	adopts bool          // orphaned descendants become children of this process
	own    procmark.Mark // of this process

	// What follows is guarded by mu, and so is what a Call keeps.
	mu       sync.Mutex
	running  int                     // calls
	marks    map[procmark.Mark]*Call // those of them that have a mark
	programs map[int]*Call           // by the process that os/exec waits for
	unmarked bool                    // there was a call without a mark
	sources  map[*procmark.Source]struct{}

	sweeping sync.Mutex // held while processes are ended and waited for
}

// NewFamily returns the account of a process. With adopt, which is for a process that
// consists of agentd alone, it adopts its orphaned descendants: then they are found
// faster, and those without a mark as well. The error says that it cannot adopt them; the
// family is usable nevertheless.
func NewFamily(adopt bool) (*Family, error) {
	f := &Family{marks: map[procmark.Mark]*Call{}, programs: map[int]*Call{}, sources: map[*procmark.Source]struct{}{}}
	// A mark that cannot be read is none: nothing is ended then that has none either.
	f.own, _ = procmark.Of(os.Getpid())
	if !adopt {
		return f, nil
	}
	err := ownprocess.Adopt()
	f.adopts = err == nil
	return f, err
}

// Member returns the part of the account that is one agent's.
func (f *Family) Member() *Member {
	m := &Member{family: f, marks: procmark.NewSource()}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sources[m.marks] = struct{}{}
	return m
}

// A Member begins and ends the calls of one agent.
type Member struct {
	family *Family
	marks  *procmark.Source
	file   string // names the source for the next run; "" before Succeed
	ended  atomic.Int64
}

// Marks makes the marks of the agent's calls.
func (m *Member) Marks() *procmark.Source { return m.marks }

// Ended counts the processes that were ended because they outlived their call.
func (m *Member) Ended() int64 { return m.ended.Load() }

// Succeed ends what an earlier run of the agent has left, which must have ended, and
// keeps a note in file for the next run. It returns how many processes it has ended.
func (m *Member) Succeed(file string) (ended int, err error) {
	note, err := os.ReadFile(file)
	if err == nil {
		// What is no note is replaced: a crash can leave half of one.
		if earlier, err := procmark.ParseSource(strings.TrimSpace(string(note))); err == nil {
			ended, err = m.family.endAll(earlier)
			if err != nil {
				return ended, err
			}
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return 0, fmt.Errorf("descendants: %w", err)
	}
	if err := os.WriteFile(file, []byte(m.marks.String()+"\n"), 0o600); err != nil {
		return ended, fmt.Errorf("descendants: %w", err)
	}
	m.file = file
	return ended, nil
}

// Close ends whatever carries a mark of the agent, once its calls have ended, and
// removes the note.
func (m *Member) Close() (ended int, err error) {
	f := m.family
	f.mu.Lock()
	delete(f.sources, m.marks)
	f.mu.Unlock()
	if ended, err = f.endAll(m.marks); err != nil || m.file == "" {
		return ended, err
	}
	if err := os.Remove(m.file); err != nil {
		return ended, fmt.Errorf("descendants: %w", err)
	}
	return ended, nil
}

// CallOf returns the name of the running call that has a mark, or "".
func (m *Member) CallOf(mark procmark.Mark) string {
	m.family.mu.Lock()
	defer m.family.mu.Unlock()
	if c := m.family.marks[mark]; c != nil {
		return c.name
	}
	return ""
}

// A Call is one whose program runs. Its methods do nothing if it is nil.
type Call struct {
	member  *Member
	name    string
	mark    procmark.Mark
	program int         // the process that os/exec waits for; 0 before it is known
	reap    *time.Timer // nil in a process that adopts nobody
	ended   bool
}

// Begin notes a call before its program starts. mark is the one that its processes
// carry, or [procmark.None]. A nil member begins a nil call.
func (m *Member) Begin(name string, mark procmark.Mark) *Call {
	if m == nil {
		return nil
	}
	f := m.family
	c := &Call{member: m, name: name, mark: mark}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running++
	if mark == procmark.None {
		f.unmarked = true
	} else {
		f.marks[mark] = c
	}
	if f.adopts {
		c.reap = time.AfterFunc(reapInterval, c.reapAgain)
	}
	return c
}

// reapAgain waits for what the program has left and has ended, for as long as it runs.
func (c *Call) reapAgain() {
	c.member.family.reapAdopted()
	c.member.family.mu.Lock()
	defer c.member.family.mu.Unlock()
	if !c.ended {
		c.reap.Reset(reapInterval)
	}
}

// Started notes the process that os/exec waits for, so that nobody else does.
func (c *Call) Started(pid int) {
	if c == nil {
		return
	}
	c.member.family.mu.Lock()
	defer c.member.family.mu.Unlock()
	c.program = pid
	c.member.family.programs[pid] = c
}

// End ends what the call's program has left, when it has been waited for or was not
// started, and with it whatever else belongs to no running call. It returns how many
// processes it has ended. The error says that some may be left. Ending a call again does
// nothing.
func (c *Call) End() (ended int, err error) {
	if c == nil {
		return 0, nil
	}
	f := c.member.family
	f.mu.Lock()
	if c.ended {
		f.mu.Unlock()
		return 0, nil
	}
	c.ended = true
	f.running--
	delete(f.marks, c.mark)
	// The process id may be that of a later call's program by now.
	if f.programs[c.program] == c {
		delete(f.programs, c.program)
	}
	if c.reap != nil {
		c.reap.Stop()
	}
	f.mu.Unlock()
	ended, err = f.endStrays(c.mark)
	c.member.ended.Add(int64(ended))
	return ended, err
}

// A claim says whose a child of this process is.
type claim int

const (
	nobodys   claim = iota // it belongs to no running call
	aCalls                 // it belongs to a running call, which has left it
	aProgram               // os/exec waits for it, or may do so
	aStranger              // it may be anybody's
)

// claimed says whose a child is. Its mark must have been read before: a call is noted
// before it has processes, so a mark that is not found here belongs to no running call.
func (f *Family) claimed(pid int, m procmark.Mark) claim {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.programs[pid] != nil {
		return aProgram
	}
	if m == f.own {
		// The first process of a container adopts strangers.
		if f.running == 0 && (f.unmarked || os.Getpid() == 1) {
			return nobodys
		}
		return aStranger
	}
	switch c := f.marks[m]; {
	case c == nil:
		return nobodys
	case c.program == 0:
		return aProgram
	}
	return aCalls
}

// isProgram reports whether os/exec waits for a process.
func (f *Family) isProgram(pid int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.programs[pid] != nil
}

// abandoned reports whether a mark is that of a call of the family that has ended.
func (f *Family) abandoned(m procmark.Mark) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.marks[m] != nil {
		return false
	}
	for s := range f.sources {
		if s.Made(m) {
			return true
		}
	}
	return false
}

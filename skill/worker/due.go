package worker

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/agentd/agentd/skill/internal/wire"
)

const (
	// memoryInterval is how often the memory of a worker is looked at.
	memoryInterval = time.Second
	// idle is after how long an instance looks around that has nothing to wait for.
	idle = time.Hour
)

// sooner returns the earlier of two times, of which zero is never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// next is when checkDue has something to do.
func (in *instance) next() time.Time {
	next := sooner(in.due, in.heard.Add(idle))
	if in.phase == serving {
		cfg := &in.pool.cfg
		if !in.pinged && len(in.calls) == 0 {
			next = sooner(next, in.heard.Add(cfg.PingInterval))
		}
		if cfg.MaxAge > 0 && !in.replaced {
			next = sooner(next, in.born.Add(cfg.MaxAge))
		}
		if in.mayRest && len(in.calls) == 0 && !in.replaced {
			next = sooner(next, in.busy.Add(cfg.IdleTimeout))
		}
		if cfg.MaxMemoryBytes > 0 && !in.replaced {
			next = sooner(next, in.memoryDue)
		}
	}
	if in.waiting > 0 && in.phase < stopping {
		for _, c := range in.calls {
			next = sooner(next, c.grace)
		}
	}
	return next
}

// checkDue does what has come due.
func (in *instance) checkDue(now time.Time) {
	due := func(t time.Time) bool { return !t.IsZero() && !now.Before(t) }
	if in.waiting > 0 && in.phase < stopping {
		for _, c := range in.calls {
			if due(c.grace) {
				in.fail(fmt.Errorf("it has not ended a cancelled call within %s", in.pool.grace()))
				return
			}
		}
	}
	if due(in.due) {
		in.overdue()
	}
	if in.phase == serving {
		in.checkServing(now)
	}
	if due(in.heard.Add(idle)) {
		in.heard = now
	}
}

// overdue is what follows when the process has not done in time what it should.
func (in *instance) overdue() {
	in.due = time.Time{}
	switch {
	case in.phase == starting:
		in.fail(fmt.Errorf("it has not answered initialize within %s", in.pool.cfg.StartTimeout))
	case in.phase < stopping:
		in.fail(fmt.Errorf("it has not answered a ping within %s", in.pool.cfg.PingTimeout))
	case in.fault != nil: // and SIGTERM has not helped
		in.program.Signal(syscall.SIGKILL)
	case in.asked:
		in.fail(fmt.Errorf("it has not ended within %s of being asked to", in.pool.grace()))
	default:
		in.fail(errors.New("it has closed its standard input or output, and runs on"))
	}
}

// checkServing pings an idle worker, and looks at its age and memory.
func (in *instance) checkServing(now time.Time) {
	cfg := &in.pool.cfg
	// One that serves a call may be busy, and is not asked.
	if len(in.calls) == 0 && !in.pinged && now.Sub(in.heard) >= cfg.PingInterval {
		in.lastID++
		in.ping, in.pinged, in.due = in.lastID, true, now.Add(cfg.PingTimeout)
		in.send(func(b []byte) []byte { return appendRequest(b, in.ping, wire.Ping, struct{}{}) })
	}
	if in.replaced {
		return
	}
	if in.mayRest && len(in.calls) == 0 && now.Sub(in.busy) >= cfg.IdleTimeout {
		in.rest()
		return
	}
	if cfg.MaxAge > 0 && now.Sub(in.born) >= cfg.MaxAge {
		in.recycle(fmt.Errorf("it is older than %s", cfg.MaxAge))
	}
	if cfg.MaxMemoryBytes > 0 && !now.Before(in.memoryDue) {
		in.memoryDue = now.Add(memoryInterval)
		if used := residentBytes(in.program.Pid()); used > cfg.MaxMemoryBytes {
			in.recycle(fmt.Errorf("it uses %d bytes of memory, and may use %d", used, cfg.MaxMemoryBytes))
		}
	}
}

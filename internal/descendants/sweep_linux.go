package descendants

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/agentd/agentd/internal/procmark"
	"github.com/agentd/agentd/internal/proctree"
)

// endStrays ends what belongs to no running call. In a process that adopts its
// descendants a look at its children shows whether there is anything; else it takes one
// at every process of the machine, and a mark to know them by.
func (f *Family) endStrays(mark procmark.Mark) (ended int, err error) {
	if f.adopts {
		found := false
		for range f.adopted() {
			found = true
			break
		}
		if !found {
			return 0, nil
		}
	} else if mark == procmark.None {
		return 0, nil
	}
	return f.sweep(f.strays())
}

// endAll ends whatever carries a mark of a source.
func (f *Family) endAll(s *procmark.Source) (ended int, err error) {
	return f.sweep(marked(s.Made))
}

// strays yields what belongs to no running call: children that were adopted, their
// descendants whatever marks those have, and what carries the mark of a call that has
// ended wherever it is. In a process that adopts nobody a child with another mark is that of
// another family, of agents that the program has started by themselves.
func (f *Family) strays() iter.Seq[proctree.Process] {
	if !f.adopts {
		return marked(f.abandoned)
	}
	return func(yield func(proctree.Process) bool) {
		for p := range f.adopted() {
			for q := range andDescendants(p) {
				if !yield(q) {
					return
				}
			}
		}
		marked(f.abandoned)(yield)
	}
}

// adopted yields the children of this process that belong to no running call. One may
// be missed while others end: the next call that ends finds it, and the last one does
// not miss it.
func (f *Family) adopted() iter.Seq[proctree.Process] {
	return func(yield func(proctree.Process) bool) {
		for p, m := range f.unclaimed() {
			if f.claimed(p.PID, m) == nobodys && !f.keep(p, m) && !yield(p) {
				return
			}
		}
	}
}

// keep reports whether a child without a mark is to be left alone. Those of this
// process's own group are what some other part of the program has started. The first
// process of a container adopts strangers: it only waits for them.
func (f *Family) keep(p proctree.Process, m procmark.Mark) bool {
	return m == f.own && (p.Group == syscall.Getpgrp() || os.Getpid() == 1 && !p.Zombie)
}

// unclaimed yields the children of this process that os/exec does not wait for, as far as
// is known, with their marks.
func (f *Family) unclaimed() iter.Seq2[proctree.Process, procmark.Mark] {
	return func(yield func(proctree.Process, procmark.Mark) bool) {
		for _, pid := range children() {
			if f.isProgram(pid) {
				continue
			}
			// What is gone by now concerns nobody.
			p, err := proctree.Read(pid)
			if err != nil {
				continue
			}
			m, err := procmark.Of(pid)
			if err == nil && !yield(p, m) {
				return
			}
		}
	}
}

// children lists the children of this process that it has adopted, and some others.
func children() []int {
	self := os.Getpid()
	pids, err := proctree.Adopted(self)
	if !errors.Is(err, proctree.ErrUnsupported) {
		return pids
	}
	all, _ := proctree.All() // none can be found without /proc
	return slices.DeleteFunc(all, func(pid int) bool {
		p, err := proctree.Read(pid)
		return err != nil || p.Parent != self
	})
}

// andDescendants yields a process, its children and so on. Each is yielded before its
// children are looked for, so that whoever stops it has it start no more of them.
func andDescendants(p proctree.Process) iter.Seq[proctree.Process] {
	return func(yield func(proctree.Process) bool) {
		next := []proctree.Process{p}
		for len(next) > 0 {
			p, next = next[len(next)-1], next[:len(next)-1]
			if !yield(p) {
				return
			}
			pids, _ := proctree.Children(p.PID) // without the list, marks alone show them
			for _, pid := range pids {
				if child, err := proctree.Read(pid); err == nil && child.Parent == p.PID {
					next = append(next, child)
				}
			}
		}
	}
}

// marked yields every process of the machine with a mark that match accepts.
func marked(match func(procmark.Mark) bool) iter.Seq[proctree.Process] {
	return func(yield func(proctree.Process) bool) {
		all, _ := proctree.All() // none can be found without /proc
		for _, pid := range all {
			p, err := proctree.Read(pid)
			if err != nil {
				continue
			}
			m, err := procmark.Of(pid)
			if err == nil && match(m) && !yield(p) {
				return
			}
		}
	}
}

// sweep ends the processes that find yields until it yields none, and returns how many
// there were that had not ended by themselves.
func (f *Family) sweep(find iter.Seq[proctree.Process]) (ended int, err error) {
	// One at a time: a process id that two waited for could be another's in between.
	f.sweeping.Lock()
	defer f.sweeping.Unlock()
	s := sweep{held: map[int]*held{}}
	defer s.release()
	deadline := time.Now().Add(endTimeout)
	for pause := time.Millisecond; ; {
		left, fresh := s.look(find)
		if left == 0 {
			return s.ended, nil
		}
		late := time.Now().After(deadline)
		if fresh > 0 && !late {
			continue // until all that are left have been stopped
		}
		if err := s.kill(); err != nil {
			return s.ended, err
		}
		if late {
			return s.ended, fmt.Errorf("descendants: %d processes of calls that have ended still run", left)
		}
		time.Sleep(pause)
		pause = min(2*pause, 16*time.Millisecond)
	}
}

// A sweep holds the processes that are being ended, so that a signal reaches them and no
// other process with the same id.
type sweep struct {
	held  map[int]*held
	ended int
}

type held struct {
	process *os.Process
	started uint64
	killed  bool
}

// look stops every process that find yields and waits for those that have ended. It
// returns how many are left, and how many of them it sees for the first time.
func (s *sweep) look(find iter.Seq[proctree.Process]) (left, fresh int) {
	for p := range find {
		switch {
		case !p.Zombie:
			left++
			if s.stop(p) {
				fresh++
			}
		case p.Parent == os.Getpid():
			// Never any child but this one: os/exec waits for its own.
			_, _ = syscall.Wait4(p.PID, nil, syscall.WNOHANG, nil) // without it, the next look sees it again
		}
	}
	return left, fresh
}

// stop stops a process, and reports whether it had not been seen before.
func (s *sweep) stop(p proctree.Process) (fresh bool) {
	if h := s.held[p.PID]; h != nil {
		if h.started == p.Started {
			return false
		}
		_ = h.process.Release() // another process has the id
	}
	process, err := os.FindProcess(p.PID)
	if err != nil {
		return false
	}
	// Whoever had the process id before the handle was taken and has it now has had it all
	// the time: a signal through the handle reaches that process or nobody.
	if now, err := proctree.Read(p.PID); err != nil || now.Started != p.Started {
		_ = process.Release()
		return false
	}
	s.held[p.PID] = &held{process: process, started: p.Started}
	_ = process.Signal(syscall.SIGSTOP) // what cannot be stopped cannot be killed, and kill says so
	return true
}

// kill kills what has been stopped.
func (s *sweep) kill() error {
	var errs []error
	for pid, h := range s.held {
		if h.killed {
			continue
		}
		h.killed = true
		switch err := h.process.Kill(); {
		case err == nil:
			s.ended++
		case !errors.Is(err, os.ErrProcessDone):
			errs = append(errs, fmt.Errorf("descendants: process %d of a call that has ended: %w", pid, err))
		}
	}
	return errors.Join(errs...)
}

// release lets go of what was held.
func (s *sweep) release() {
	for _, h := range s.held {
		_ = h.process.Release()
	}
}

// reapAdopted waits for children that running calls have left and that have ended.
func (f *Family) reapAdopted() {
	f.sweeping.Lock()
	defer f.sweeping.Unlock()
	for p, m := range f.unclaimed() {
		if p.Zombie && f.claimed(p.PID, m) == aCalls {
			_, _ = syscall.Wait4(p.PID, nil, syscall.WNOHANG, nil) // as in look
		}
	}
}

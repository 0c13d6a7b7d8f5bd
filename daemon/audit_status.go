package daemon

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon/control"
)

// An auditWatch keeps what the regular look at the audit log has found, and since when.
type auditWatch struct {
	mu            sync.Mutex
	records       int64                // guarded by mu, as are all below
	signed        int64                // the newest record under a checkpoint
	unsignedSince time.Time            // zero while a checkpoint covers all
	witnesses     map[string]time.Time // from when on each has not co-signed; zero where it has
	errors        map[string]string    // why not
	looked        time.Time            // the last look
	erasing       bool                 // an interrupted erasure was being completed
}

// erasureEnded takes whether an interrupted erasure is being completed, and reports whether
// that has ended.
func (w *auditWatch) erasureEnded(erasing bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	ended := w.erasing && !erasing
	w.erasing = erasing
	return ended
}

// note takes what a look at the log has found. It returns the witnesses that have not co-signed
// for witnessGrace by now, and had not for less at the look before.
func (w *auditWatch) note(s *auditchain.Status, now time.Time) (overdue []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case s.Signed >= s.Records:
		w.unsignedSince = time.Time{}
	case w.unsignedSince.IsZero() || s.Signed != w.signed: // those after a newer checkpoint are newer, too
		w.unsignedSince = now
	}
	w.records, w.signed = s.Records, s.Signed
	witnesses, errs := make(map[string]time.Time, len(s.Witnesses)), map[string]string{}
	for name, err := range s.Witnesses {
		if err == nil {
			witnesses[name] = time.Time{}
			continue
		}
		since := w.witnesses[name]
		if since.IsZero() {
			since = now
		}
		if due := since.Add(witnessGrace); due.After(w.looked) && !due.After(now) {
			overdue = append(overdue, name)
		}
		witnesses[name], errs[name] = since, err.Error()
	}
	w.witnesses, w.errors, w.looked = witnesses, errs, now
	slices.Sort(overdue)
	return overdue
}

// auditStatus is how the audit log is: for its records and witnesses, at most auditInterval ago.
func (d *Daemon) auditStatus() *control.AuditStatus {
	s := &control.AuditStatus{Refusing: d.audit.health.Err() != nil}
	if d.access != nil {
		s.Backlog, s.Lost = d.access.state()
	}
	w := &d.auditSeen
	w.mu.Lock()
	defer w.mu.Unlock()
	s.Records, s.Unsigned, s.UnsignedSince = w.records, max(w.records-w.signed, 0), w.unsignedSince
	for name, since := range w.witnesses {
		s.Witnesses = append(s.Witnesses, control.WitnessStatus{Witness: name, UnsignedSince: since, Error: w.errors[name]})
	}
	slices.SortFunc(s.Witnesses, func(a, b control.WitnessStatus) int { return strings.Compare(a.Witness, b.Witness) })
	return s
}

// state returns how many records wait, and how many were dropped since the start.
func (a *accessLog) state() (waiting int, lost int64) {
	a.mu.Lock()
	waiting = len(a.waiting)
	a.mu.Unlock()
	return waiting, a.lost.Load()
}

package control

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/internal/procmark"
	"github.com/agentd/agentd/internal/truncate"
)

// codeNotOperator is a fault code of this API: the process that makes a request is not
// an operator's.
const codeNotOperator = "not-an-operator"

// Operators says who may use the API.
type Operators struct {
	// Alone says that the process consists of agentd alone, so that all of its descendants
	// are skills.
	Alone bool
	// CallOf returns the name of the running call whose skill has a mark, or "". It may be
	// nil.
	CallOf func(procmark.Mark) string
	// Refused records the refusal of a process. It is called for some refusals, and
	// learns the number of the others. It may be nil.
	Refused func(context.Context, Intruder)
	// Logger gets a line whenever Refused is called. Required.
	Logger *slog.Logger
}

// An Intruder is a process that is not an operator's and has made a request.
type Intruder struct {
	// Actor is the process, as far as it is known.
	Actor auditchain.Actor
	// Reason is why it is not taken for an operator's.
	Reason string
	// Request is the method and the path of what it asked for.
	Request string
	// CorrelationID is that of the call whose skill it belongs to, or "".
	CorrelationID string
	// Unrecorded counts the refusals since the last one that was recorded.
	Unrecorded int64
}

// Only passes on the requests of operators' processes and refuses all others. The kernel
// says which process has connected: it must run as this user or root, must not carry the
// mark of a skill, and, where Alone is set, must not descend from this process. What
// cannot be found out speaks against it.
func (o Operators) Only(h http.Handler) http.Handler {
	own, err := procmark.Of(os.Getpid())
	if err != nil {
		own = procmark.None // then no mark is like it
	}
	refusals := &refusals{Operators: o, next: time.Now()}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := peerFrom(r.Context())
		reason := p.fault(own, o.Alone)
		if reason == "" {
			h.ServeHTTP(w, r)
			return
		}
		refusals.note(r, p, reason)
		w.Header().Set("Connection", "close")
		writeFault(w, http.StatusForbidden, codeNotOperator, fmt.Sprintf("the process that makes this request is not taken for an operator's: %s. "+
			"A skill makes its calls by $AGENTD_URL; an operator runs the command from a process that no agent has started", reason))
	})
}

// Refusals are recorded one by one, then once in an interval: a skill must not be able to
// fill the log.
const (
	refusalBurst    = 8
	refusalInterval = 10 * time.Second
)

// maxRecordedPath bounds the path of a refused request in a record.
const maxRecordedPath = 128

// refusals bounds how many refusals are recorded.
type refusals struct {
	Operators

	mu         sync.Mutex
	next       time.Time // when another one may be recorded, as if each took an interval
	unrecorded int64
}

// note logs and records a refusal, or counts it.
func (f *refusals) note(r *http.Request, p *peer, reason string) {
	unrecorded, ok := f.take(time.Now())
	if !ok {
		return
	}
	intruder := Intruder{Actor: p.actor(), Reason: reason, Request: r.Method + " " + truncate.String(r.URL.Path, maxRecordedPath), Unrecorded: unrecorded}
	if f.CallOf != nil && p.mark != procmark.None {
		intruder.CorrelationID = f.CallOf(p.mark)
	}
	f.Logger.Warn("refused a process that is not an operator's at the control socket", "reason", reason, "request", intruder.Request,
		"pid", p.pid, "executable", p.executable, "user", intruder.Actor.User, "correlationId", intruder.CorrelationID, "unrecorded", unrecorded)
	if f.Refused != nil {
		// The record is written although the client disconnects.
		f.Refused(context.WithoutCancel(r.Context()), intruder)
	}
}

// take reports whether a refusal at a time is to be recorded, and how many before it were
// not.
func (f *refusals) take(now time.Time) (unrecorded int64, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Before(f.next.Add(-(refusalBurst - 1) * refusalInterval)) {
		f.unrecorded++
		return 0, false
	}
	if f.next.Before(now) {
		f.next = now
	}
	f.next = f.next.Add(refusalInterval)
	unrecorded, f.unrecorded = f.unrecorded, 0
	return unrecorded, true
}

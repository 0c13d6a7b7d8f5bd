package chain

import (
	"time"

	"github.com/agentd/agentd/auditchain/internal/record"
)

// clockStep is how far the clock must fall behind the newest record for the log
// to record it. Clock synchronisation causes smaller steps every day.
const clockStep = time.Second

// A clockBody is the body of the lifecycle record about a clock that was set
// back. Both times are in Unix milliseconds.
type clockBody struct {
	Event  string `json:"event"` // always "clock-stepped-back"
	Clock  int64  `json:"clock"`
	Newest int64  `json:"newest"`
}

// now returns the time for the next record: the clock's, or that of the newest
// record if the clock is behind it. Times therefore never decrease along the
// log, and a binary search by time is possible.
func (w *Writer) now(h *Head) int64 { return max(h.Time, w.options.Now().UnixMilli()) }

// recordClockStep appends a lifecycle record if the clock was set back. The
// records that follow repeat the newest time until the clock has caught up.
func (w *Writer) recordClockStep(next *Head) error {
	now := w.options.Now().UnixMilli()
	behind := next.Seq > 0 && now < next.Time
	stepped := behind && !w.clockBehind && next.Time-now >= clockStep.Milliseconds()
	if !behind {
		w.clockBehind = false
	}
	if !stepped {
		return nil
	}
	w.clockBehind = true
	return w.InsertOwn(next, record.KindLifecycle, clockBody{Event: "clock-stepped-back", Clock: now, Newest: next.Time})
}

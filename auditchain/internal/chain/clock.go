package chain

import (
	"time"

	"github.com/agentd/agentd/auditchain/internal/record"
)

// The times of records never decrease along the log, so that a search by time can be a
// binary one. One wrong reading, in the year 2099 for example, would therefore stop the
// log's time until then. Two things keep it from that: a clock that jumps ahead is not
// followed before it has stayed there for a while, and a record whose time is not the
// clock's has the clock's reading in its body, as the member clock.

const (
	// clockStep is how far the clock must fall behind the newest record, or jump ahead
	// of the time that has passed, for the log to record it. Clock synchronisation
	// causes smaller steps every day.
	clockStep = time.Second
	// clockSettle is how long a clock must stay ahead to be followed.
	clockSettle = 10 * time.Second
)

// A clockBody is the body of the lifecycle record about a clock that was set. All times
// are in Unix milliseconds.
type clockBody struct {
	// Event is clock-stepped-back or clock-stepped-forward.
	Event string `json:"event"`
	// Clock is the clock's reading. Newest is the time of the record before, and after
	// a step forward the time that Clock should have been.
	Clock  int64 `json:"clock"`
	Newest int64 `json:"newest"`
}

// A clock is the state of the comparison of the clock with the time that has passed.
type clock struct {
	// wall is the newest reading that was followed, in Unix milliseconds, and elapsed
	// the time that had passed by then.
	wall    int64
	elapsed time.Duration
	// ahead is true while the clock is ahead of wall and the time since, which it has
	// been since the time aheadSince. recorded is true once the log says so.
	ahead, recorded bool
	aheadSince      time.Duration
}

// readClock returns the clock's reading, and the time to follow: the reading, unless it
// has jumped ahead just now.
func (w *Writer) readClock() (followed, reading int64) {
	reading = w.options.Now().UnixMilli()
	if w.options.Elapsed == nil {
		return reading, reading
	}
	c, elapsed := &w.clock, w.options.Elapsed()
	expected := c.wall + (elapsed - c.elapsed).Milliseconds()
	jumped := c.wall > 0 && reading-expected >= clockStep.Milliseconds()
	if jumped && !c.ahead {
		c.ahead, c.aheadSince = true, elapsed
	}
	if jumped && elapsed-c.aheadSince < clockSettle {
		return expected, reading
	}
	*c = clock{wall: reading, elapsed: elapsed}
	return reading, reading
}

// now returns the time for the next record, or that of the newest record if the clock is
// behind it, and the clock's reading.
func (w *Writer) now(h *Head) (time, reading int64) {
	followed, reading := w.readClock()
	return max(h.Time, followed), reading
}

// recordClockStep appends a lifecycle record if the clock was set. After a step back, the
// records that follow repeat the newest time until the clock has caught up.
func (w *Writer) recordClockStep(next *Head) error {
	followed, reading := w.readClock()
	if w.clock.ahead && !w.clock.recorded {
		w.clock.recorded = true
		return w.InsertOwn(next, record.KindLifecycle, clockBody{Event: "clock-stepped-forward", Clock: reading, Newest: followed})
	}
	behind := next.Seq > 0 && reading < next.Time
	stepped := behind && !w.clockBehind && next.Time-reading >= clockStep.Milliseconds()
	if !behind {
		w.clockBehind = false
	}
	if !stepped {
		return nil
	}
	w.clockBehind = true
	return w.InsertOwn(next, record.KindLifecycle, clockBody{Event: "clock-stepped-back", Clock: reading, Newest: next.Time})
}

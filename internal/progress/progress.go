package progress

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/term"
)

const (
	// delay is how long work may take before there is a line: a command that is quick
	// shows none.
	delay = 700 * time.Millisecond
	// interval is the time between two lines.
	interval = 250 * time.Millisecond
	// window is about how far back the rate looks.
	window = 5 * time.Second
	// defaultWidth is that of a terminal which does not tell its width.
	defaultWidth = 80
)

// erase returns to the first column and clears the line (ECMA-48, EL).
const erase = "\r\x1b[K"

// A Line is the progress of one piece of work. A nil Line shows nothing, so that work which
// can be watched need not ask whether it is. Its methods are safe for concurrent use.
type Line struct {
	w     io.Writer
	width func() int
	what  string
	unit  string

	done, total atomic.Int64
	stop        chan struct{}
	stopped     chan struct{}
	once        sync.Once

	rate meter // of the goroutine that draws
}

// New begins a line about work such as "verifying reviewer", counted in a unit such as
// "records". It returns nil if w is not a terminal that can erase a line. The caller ends
// the line with [Line.End].
func New(w io.Writer, getenv func(string) string, what, unit string) *Line {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) || getenv("TERM") == "dumb" {
		return nil
	}
	return begin(w, what, unit, func() int {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			return width
		}
		return defaultWidth
	})
}

func begin(w io.Writer, what, unit string, width func() int) *Line {
	l := &Line{w: w, width: width, what: what, unit: unit, stop: make(chan struct{}), stopped: make(chan struct{})}
	go l.run()
	return l
}

// Set says how much is done, of how much; a total of 0 is unknown. It costs two stores, and
// may be called for every record.
func (l *Line) Set(done, total int64) {
	if l != nil {
		l.total.Store(total)
		l.done.Store(done)
	}
}

// Add says that n more are done.
func (l *Line) Add(n int64) {
	if l != nil {
		l.done.Add(n)
	}
}

// End takes the line off the terminal. What the caller writes afterwards begins in the
// first column. Ending again does nothing.
func (l *Line) End() {
	if l == nil {
		return
	}
	l.once.Do(func() { close(l.stop) })
	<-l.stopped
}

// run draws the line until the work ends.
func (l *Line) run() {
	defer close(l.stopped)
	begun := time.Now()
	l.rate.add(begun, l.done.Load())
	wait, shown := time.NewTimer(delay), false
	defer wait.Stop()
	for {
		select {
		case <-l.stop:
			if shown {
				_, _ = io.WriteString(l.w, erase) // a terminal that is gone needs no line
			}
			return
		case now := <-wait.C:
			done, total := l.done.Load(), l.total.Load()
			l.rate.add(now, done)
			text := l.text(done, total, l.rate.perSecond(), now.Sub(begun))
			_, _ = io.WriteString(l.w, erase+clip(text, l.width()-1))
			shown = true
			wait.Reset(interval)
		}
	}
}

// text returns the line, such as
//
//	verifying reviewer: 420,000 of 1,000,000 records (42 %), 190,000/s, 3 s left
func (l *Line) text(done, total int64, rate float64, passed time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", l.what, Count(done))
	if total > 0 {
		fmt.Fprintf(&b, " of %s", Count(total))
	}
	fmt.Fprintf(&b, " %s", l.unit)
	if total > 0 {
		fmt.Fprintf(&b, " (%d %%)", min(100, int64(float64(done)/float64(total)*100)))
	}
	if rate >= 1 {
		fmt.Fprintf(&b, ", %s/s", Count(int64(rate)))
	}
	if left := total - done; rate > 0 && left > 0 {
		fmt.Fprintf(&b, ", %s left", Duration(time.Duration(float64(left)/rate*float64(time.Second))))
	} else {
		fmt.Fprintf(&b, ", %s", Duration(passed))
	}
	return b.String()
}

// clip cuts a text to a width, since a line that wraps cannot be erased.
func clip(text string, width int) string {
	if runes := []rune(text); len(runes) > width {
		return string(runes[:max(0, width)])
	}
	return text
}

// Count returns a number with separators between the thousands.
func Count(n int64) string {
	text := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, text = "-", text[1:]
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return sign + text
}

// Duration returns a time to whole seconds, minutes or hours: "45 s", "3 min 20 s".
func Duration(d time.Duration) string {
	switch seconds := int64(d.Round(time.Second) / time.Second); {
	case seconds < 60:
		return fmt.Sprintf("%d s", seconds)
	case seconds < 3600:
		return fmt.Sprintf("%d min %d s", seconds/60, seconds%60)
	default:
		return fmt.Sprintf("%d h %d min", seconds/3600, seconds%3600/60)
	}
}

// A meter measures a rate over about the last window, so that the remaining time follows
// work that becomes slower.
type meter struct {
	samples []sample // oldest first
}

type sample struct {
	at   time.Time
	done int64
}

func (m *meter) add(at time.Time, done int64) {
	for len(m.samples) > 2 && at.Sub(m.samples[1].at) >= window {
		m.samples = m.samples[1:]
	}
	m.samples = append(m.samples, sample{at, done})
}

func (m *meter) perSecond() float64 {
	first, last := m.samples[0], m.samples[len(m.samples)-1]
	passed := last.at.Sub(first.at).Seconds()
	if passed <= 0 {
		return 0
	}
	return max(0, float64(last.done-first.done)/passed)
}

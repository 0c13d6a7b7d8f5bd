package skill

import (
	"bytes"
	"context"
	"log/slog"
	"strings"

	"github.com/agentd/agentd/rpc"
)

// A cappedBuffer holds standard output up to a bound. Past the bound it calls
// back and discards the rest, so that the program does not block on a full
// pipe before it is stopped. It does not embed its buffer: io.Copy would use
// the buffer's ReadFrom and bypass Write.
type cappedBuffer struct {
	buf      bytes.Buffer
	most     int
	overflow func()
	over     bool
}

func (b *cappedBuffer) Write(p []byte) (int, error) {
	if b.over || b.buf.Len()+len(p) > b.most {
		if !b.over {
			b.over = true
			b.overflow()
		}
		return len(p), nil
	}
	return b.buf.Write(p)
}

// The bounds of what one call may write to the log. The lines are bounded as well
// because a record of the log is much longer than a short line.
const (
	maxLineBytes = 8 << 10
	maxLogLines  = 1000
	maxLogBytes  = 256 << 10
)

// escapedBytes is the length of a control character in a record, such as \u0000.
const escapedBytes = 6

// A lineLogger writes standard error to the log, one record a line, within the bounds.
// A line that is too long is cut. What is left out is counted, and the count logged at the end.
type lineLogger struct {
	log  *slog.Logger
	of   string // what the bounds hold for: "of one call"
	line []byte // without its end, which has not come yet
	cut  int    // bytes of it that are left out
	some bool   // it has begun, although it may be empty

	refused string // the last line that reads as if the system had refused something

	lines, bytes    int // written so far
	lost, lostBytes int // lines that were not written, and all bytes that were not
}

func newLineLogger(log *slog.Logger, inv *rpc.Invocation) *lineLogger {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &lineLogger{of: "of one call", log: log.With("peer", inv.From, "capability", inv.Capability, "correlationId", inv.CorrelationID, "traceId", inv.TraceID())}
}

func (l *lineLogger) Write(p []byte) (int, error) {
	rest := p
	for len(rest) > 0 {
		text, after, ended := bytes.Cut(rest, []byte{'\n'})
		l.add(text)
		if ended {
			l.end()
		}
		rest = after
	}
	return len(p), nil
}

// add continues the line.
func (l *lineLogger) add(text []byte) {
	room := max(0, maxLineBytes-len(l.line))
	if l.full() {
		room = 0
	}
	kept := min(room, len(text))
	l.line = append(l.line, text[:kept]...)
	l.cut += len(text) - kept
	l.some = l.some || len(text) > 0
}

// full reports whether the bounds are reached.
func (l *lineLogger) full() bool { return l.lines >= maxLogLines || l.bytes >= maxLogBytes }

// end writes the line. An empty one is left out, and is no loss.
func (l *lineLogger) end() {
	switch text := strings.ToValidUTF8(string(bytes.TrimSuffix(l.line, []byte{'\r'})), "\uFFFD"); {
	case !l.some:
	case l.full():
		l.lost++
		l.lostBytes += len(l.line) + l.cut
	case len(text) > 0:
		attrs := []slog.Attr{slog.String("stderr", text)}
		if l.cut > 0 {
			attrs = append(attrs, slog.Int("omittedBytes", l.cut))
			l.lostBytes += l.cut
		}
		if isRefusal(text) {
			l.refused = text
		}
		l.lines++
		l.bytes += cost(text)
		l.log.LogAttrs(context.Background(), slog.LevelInfo, "skill", attrs...)
	}
	l.line, l.cut, l.some = l.line[:0], 0, false
}

// cost is about what a line takes in the log.
func cost(text string) int {
	n := len(text)
	for _, c := range []byte(text) {
		if c < ' ' {
			n += escapedBytes - 1
		}
	}
	return n
}

// close writes a last line that has no end, and says what was left out.
func (l *lineLogger) close() {
	l.end()
	l.tally()
}

// tally says what was left out.
func (l *lineLogger) tally() {
	if l.lost > 0 || l.lostBytes > 0 {
		l.log.LogAttrs(context.Background(), slog.LevelWarn, "the skill wrote more to standard error than the log takes "+l.of,
			slog.Int("lines", l.lines), slog.Int("omittedLines", l.lost), slog.Int("omittedBytes", l.lostBytes))
	}
}

package skill

import (
	"bytes"
	"context"
	"log/slog"

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

const (
	maxLineBytes   = 8 << 10
	maxStderrBytes = 1 << 20
)

// A lineLogger writes standard error to the log, one record a line. It bounds
// what one call may write, so that a program cannot fill the disk with its
// log.
type lineLogger struct {
	log  *slog.Logger
	line []byte
	left int
}

func newLineLogger(log *slog.Logger, inv *rpc.Invocation) *lineLogger {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &lineLogger{
		log:  log.With("capability", inv.Capability, "correlationId", inv.CorrelationID),
		left: maxStderrBytes,
	}
}

func (l *lineLogger) Write(p []byte) (int, error) {
	for _, c := range p {
		if c == '\n' || len(l.line) == maxLineBytes {
			l.flush()
		}
		if c != '\n' {
			l.line = append(l.line, c)
		}
	}
	return len(p), nil
}

// flush writes the line that has been collected so far, even if it has no end
// yet.
func (l *lineLogger) flush() {
	if len(l.line) > 0 && l.left > 0 {
		if l.left -= len(l.line); l.left <= 0 {
			l.log.Warn("skill writes too much to standard error; the rest of this call's is dropped")
		} else {
			l.log.LogAttrs(context.Background(), slog.LevelInfo, "skill", slog.String("stderr", string(l.line)))
		}
	}
	l.line = l.line[:0]
}

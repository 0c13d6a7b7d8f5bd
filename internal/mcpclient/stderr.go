package mcpclient

import (
	"bufio"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/agentd/agentd/internal/truncate"
)

// The bounds of what a program may write to the log in a minute.
const (
	maxLogLine  = 4 << 10
	maxLogLines = 100
)

// maxQuote is how much of what a server says stands in an error.
const maxQuote = 300

// shown shortens what a server has said for an error or the log.
func shown(text string) string {
	return truncate.String(strings.ToValidUTF8(strings.TrimSpace(text), "\uFFFD"), maxQuote)
}

// A stderrLog writes the lines of a program's standard error to the log, so many a minute.
// What is left out is counted.
type stderrLog struct {
	log *slog.Logger
	now func() time.Time

	minute time.Time // when the present one began
	lines  int       // written in it
	lost   int       // left out

	mu   sync.Mutex
	last string
}

func newStderrLog(log *slog.Logger) *stderrLog { return &stderrLog{log: log, now: time.Now} }

// copy reads to the end. Of a line that is too long the beginning is kept.
func (l *stderrLog) copy(r io.Reader) {
	in := bufio.NewReaderSize(r, maxLogLine)
	for {
		line, err := in.ReadSlice('\n')
		text := strings.ToValidUTF8(strings.TrimRight(string(line), "\r\n"), "\uFFFD")
		for err == bufio.ErrBufferFull { //nolint:errorlint // as documented
			_, err = in.ReadSlice('\n')
		}
		if text != "" {
			l.add(text)
		}
		if err != nil {
			break
		}
	}
	l.report()
}

func (l *stderrLog) add(text string) {
	l.mu.Lock()
	l.last = text
	l.mu.Unlock()
	if now := l.now(); now.Sub(l.minute) >= time.Minute {
		l.report()
		l.minute, l.lines = now, 0
	}
	if l.lines >= maxLogLines {
		l.lost++
		return
	}
	l.lines++
	l.log.Info("an MCP server wrote to standard error", "stderr", text)
}

// report says what was left out.
func (l *stderrLog) report() {
	if l.lost > 0 {
		l.log.Warn("an MCP server wrote more to standard error than the log takes", "omittedLines", l.lost)
		l.lost = 0
	}
}

func (l *stderrLog) lastLine() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

package logtest

import (
	"log/slog"
	"strings"
	"sync"
)

// Lines are those of a log. They may be read while others write them. The zero value is an
// empty log.
type Lines struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements [io.Writer].
func (l *Lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns everything that was logged.
func (l *Lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Count returns how often a text is in the log.
func (l *Lines) Count(text string) int { return strings.Count(l.String(), text) }

// Logger writes to the lines, as text.
func (l *Lines) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

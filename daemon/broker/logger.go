package broker

import (
	"fmt"
	"log/slog"
)

// A logger gives a nats-server's log lines to slog: what is only notable at
// level debug, since whoever started the broker knows that it runs. It implements
// server.Logger.
type logger struct {
	log   *slog.Logger
	fatal chan string // holds the first fatal line
}

// newLogger logs to log; nil is nowhere.
func newLogger(log *slog.Logger) *logger {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &logger{log: log, fatal: make(chan string, 1)}
}

func (l *logger) Noticef(format string, v ...any) { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l *logger) Warnf(format string, v ...any)   { l.log.Warn(fmt.Sprintf(format, v...)) }
func (l *logger) Errorf(format string, v ...any)  { l.log.Error(fmt.Sprintf(format, v...)) }
func (l *logger) Debugf(format string, v ...any)  { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l *logger) Tracef(format string, v ...any)  { l.log.Debug(fmt.Sprintf(format, v...)) }

// Fatalf ends the process in nats-server itself. A library does not: it says so
// to whoever waits for the start.
func (l *logger) Fatalf(format string, v ...any) {
	line := fmt.Sprintf(format, v...)
	l.log.Error(line)
	select {
	case l.fatal <- line:
	default:
	}
}

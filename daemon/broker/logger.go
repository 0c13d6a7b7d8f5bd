package broker

import (
	"fmt"
	"log/slog"
)

// A logger passes the log lines of nats-server to slog. Its notices become debug
// messages: they describe a normal start and stop. It implements server.Logger.
type logger struct {
	log   *slog.Logger
	fatal chan string // buffers the first fatal line
}

// newLogger returns a logger that writes to log, or discards everything for nil.
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

// Fatalf would end the process in the nats-server program. A library must not: it
// passes the line to awaitReady, which fails the start with it.
func (l *logger) Fatalf(format string, v ...any) {
	line := fmt.Sprintf(format, v...)
	l.log.Error(line)
	select {
	case l.fatal <- line:
	default:
	}
}

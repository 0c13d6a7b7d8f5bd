package durable

import (
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentd/agentd/transport/nats"
)

// Options configures a [Queue] or a [Mailbox].
type Options struct {
	// Conn is the connection. Required.
	Conn *nats.Conn
	// Agent is the id of the agent whose calls are kept. Required.
	Agent string
	// Replicas is how many servers of a cluster keep each stream, from 1 to 5; 0 is 1.
	Replicas int
	// AckWait is how long the broker waits for a sign of life of whoever serves a
	// request, before it delivers it again; 0 is 30 s.
	AckWait time.Duration
	// MaxDeliver is how many attempts a request gets; 0 is 5.
	MaxDeliver int
	// ResultTTL is how long answers are kept, at least as long as a call may
	// last; 0 is 24 h.
	ResultTTL time.Duration
	// DeadTTL is how long dead letters are kept; 0 is 30 days.
	DeadTTL time.Duration
	// MaxBytes bounds the requests that wait for this agent; more are refused. 0 is 256 MiB.
	MaxBytes int64
	// FirstDelay is the wait before a second attempt, which doubles with each one;
	// 0 is 1 s.
	FirstDelay time.Duration
	// Logger hears of what the broker refuses. Default: discarded.
	Logger *slog.Logger
}

const (
	// keepRequests is how long a request may wait: no call lasts longer.
	keepRequests = 24 * time.Hour
	// keepNotes is how long it is known what an agent has called.
	keepNotes = 48 * time.Hour
	// dedupeWindow is how long the same request is stored once.
	dedupeWindow = 5 * time.Minute
	// maxDelay bounds the wait between attempts.
	maxDelay = 5 * time.Minute
	// maxUnderway bounds the requests that are being served or wait for their next
	// attempt: those of one capability that fails must not hold up the others.
	maxUnderway = 20_000
	// maxDead bounds the dead letters: the oldest make way.
	maxDead = 100_000
)

func (o Options) withDefaults() Options {
	set(&o.Replicas, 1)
	set(&o.AckWait, 30*time.Second)
	set(&o.MaxDeliver, 5)
	set(&o.ResultTTL, 24*time.Hour)
	set(&o.DeadTTL, 30*24*time.Hour)
	set(&o.MaxBytes, 256<<20)
	set(&o.FirstDelay, time.Second)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func set[T comparable](to *T, value T) {
	var zero T
	if *to == zero {
		*to = value
	}
}

// delay is the wait before the attempt after this one.
func (o *Options) delay(attempt int) time.Duration {
	d := o.FirstDelay
	for range attempt - 1 {
		if d *= 2; d >= maxDelay {
			return maxDelay
		}
	}
	return d
}

// stream is the configuration that all of an agent's streams share.
func (o *Options) stream(name, subject, what string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: name, Subjects: []string{subject}, Description: "agentd: " + what + " of agent://" + o.Agent,
		Storage: jetstream.FileStorage, Replicas: o.Replicas, AllowDirect: true,
	}
}

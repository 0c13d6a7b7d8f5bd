package durable

import (
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/transport/nats"
	"github.com/agentd/agentd/transport/nats/natsauth"
)

// Options configures [Calls] or a [Mailbox]. Zero fields have defaults.
type Options struct {
	// Conn is the connection. Required.
	Conn *nats.Conn
	// Agent is the id of the agent whose calls are kept. Required.
	Agent string
	// Fleet is the name of the agent's fleet. A stream of another fleet is not used. ""
	// is no fleet.
	Fleet string
	// NameOf is what names an agent's streams and buckets. Default: its id.
	NameOf func(envelope.Address) string
	// Replicas is how many servers of a cluster keep each stream, from 1 to 5; 0 is 1.
	Replicas int
	// AckWait is how long the broker waits for a sign of life from the replica that
	// serves a request before it delivers the request again; 0 is 30 s.
	AckWait time.Duration
	// MaxDeliver is how many attempts a request gets; 0 is 5.
	MaxDeliver int
	// ResultTTL is how long answers are kept. It must not be shorter than a call may
	// last; 0 is 24 h.
	ResultTTL time.Duration
	// DeadTTL is how long dead letters are kept; 0 is 30 days.
	DeadTTL time.Duration
	// MaxBytes bounds the requests that wait for this agent; more are refused, so that
	// callers notice. 0 is 256 MiB.
	MaxBytes int64
	// FirstDelay is the delay before the second attempt; it doubles with each further
	// one. 0 is 1 s.
	FirstDelay time.Duration
	// Logger gets what the broker refuses. Default: discarded.
	Logger *slog.Logger
	// Trouble is called when no requests can be taken although there is a connection, with
	// the cause, again while that lasts, and with nil when it is over. Default: the logger
	// gets it.
	Trouble func(error)
}

const (
	// keepRequests is how long a request may wait. No call lasts longer.
	keepRequests = 24 * time.Hour
	// keepNotes is how long the notes of calls are kept: a day longer than a call may
	// last, for whoever asks late.
	keepNotes = 48 * time.Hour
	// dedupeWindow is how long the stream drops a message whose id it has seen. It
	// must be longer than a publish is repeated.
	dedupeWindow = 5 * time.Minute
	// maxDelay bounds the delay between attempts.
	maxDelay = 5 * time.Minute
	// maxUnderway bounds the requests that are being served or wait for their next
	// attempt. It is large because one failing capability must not hold up the others.
	maxUnderway = 20_000
)

func (o Options) withDefaults() Options {
	set(&o.Replicas, 1)
	set(&o.AckWait, 30*time.Second)
	set(&o.MaxDeliver, 5)
	set(&o.ResultTTL, 24*time.Hour)
	set(&o.DeadTTL, 30*24*time.Hour)
	set(&o.MaxBytes, 256<<20)
	set(&o.FirstDelay, time.Second)
	if o.NameOf == nil {
		o.NameOf = envelope.Address.ID
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Trouble == nil {
		o.Trouble = func(err error) {
			if err != nil {
				o.Logger.Warn("the queue of requests cannot be opened", "agent", o.Agent, "error", err)
			}
		}
	}
	return o
}

func set[T comparable](to *T, value T) {
	var zero T
	if *to == zero {
		*to = value
	}
}

// delay is the delay before the attempt after this one.
func (o *Options) delay(attempt int) time.Duration {
	d := o.FirstDelay
	for range attempt - 1 {
		if d *= 2; d >= maxDelay {
			return maxDelay
		}
	}
	return d
}

// name is what names the agent's own streams and buckets.
func (o *Options) name() string { return o.NameOf(envelope.AddressOf(o.Agent)) }

// notes is the configuration of the bucket of an agent's notes about its calls.
func (o *Options) notes() jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket: natsauth.CallsBucket(o.name()), Description: "agentd: the asynchronous calls of agent://" + o.Agent,
		TTL: keepNotes, Replicas: o.Replicas,
	}
}

// streams are the configurations of an agent's streams: of the requests to it, whose
// topic is topic, of its answers and of its dead letters.
func (o *Options) streams(topic string) []jetstream.StreamConfig {
	requests := o.stream(natsauth.RequestsStream(o.name()), natsauth.RequestsSubject(topic), "requests")
	requests.Retention, requests.MaxAge, requests.Duplicates = jetstream.WorkQueuePolicy, keepRequests, dedupeWindow
	requests.MaxBytes, requests.Discard = o.MaxBytes, jetstream.DiscardNew
	results := o.stream(natsauth.ResultsStream(o.name()), "agentd.results."+natsauth.ServiceName(o.name())+".>", "answers")
	results.MaxAge, results.MaxMsgsPerSubject = o.ResultTTL, 1
	results.RePublish = &jetstream.RePublish{Source: results.Subjects[0], Destination: "agentd.answered." + natsauth.ServiceName(o.name()) + ".>"}
	dead := o.stream(natsauth.DeadStream(o.name()), natsauth.DeadSubject(o.name()), "dead letters")
	dead.MaxAge, dead.MaxMsgs = o.DeadTTL, maxDead
	return []jetstream.StreamConfig{requests, results, dead}
}

// consumer is the configuration of the consumer that an agent's replicas share.
func (o *Options) consumer() jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable: natsauth.ConsumerName, AckPolicy: jetstream.AckExplicitPolicy, AckWait: o.AckWait, MaxAckPending: maxUnderway,
		MaxDeliver: -1, // delivery.go counts; the broker would drop requests without a dead letter
	}
}

// stream returns what the configurations of all of an agent's streams share.
func (o *Options) stream(name, subject, what string) jetstream.StreamConfig {
	var metadata map[string]string
	if o.Fleet != "" {
		metadata = map[string]string{fleetMetadata: o.Fleet}
	}
	return jetstream.StreamConfig{
		Metadata: metadata,
		Name:     name, Subjects: []string{subject}, Description: "agentd: " + what + " of agent://" + o.Agent,
		Storage: jetstream.FileStorage, Replicas: o.Replicas, AllowDirect: true,
	}
}

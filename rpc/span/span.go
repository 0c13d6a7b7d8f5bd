package span

import (
	"time"

	"github.com/agentd/agentd/rpc/internal/trace"
)

// A Tracer decides which traces are sampled, and takes the spans of those. It is safe for
// concurrent use.
type Tracer interface {
	// Begin returns the trace context of new work below parent, a W3C traceparent. Where
	// parent is empty or malformed, a trace begins. A context that is not sampled stands
	// for no span, and may be parent itself.
	Begin(parent string) string
	// End takes a span that has ended. It returns at once, whatever becomes of the span,
	// which the caller must not change any more.
	End(s *Span)
}

// A Limiter is a [Tracer] that bounds how many traces it records because somebody else asks
// for them: otherwise a peer that has every call recorded decides what all this costs.
type Limiter interface {
	// Admit reports whether one more trace of a peer is recorded. Peer is "" for all who
	// have not proven their names.
	Admit(peer string) bool
}

// Admitted returns the trace context of work that continues a trace of a peer: own, or where
// the tracer does not admit it, parent as one that is not sampled. A trace that has begun
// here is always admitted.
func Admitted(t Tracer, peer, parent, own string) string {
	limiter, ok := t.(Limiter)
	if !ok || !Recorded(t, own) || !trace.Sampled(parent) || limiter.Admit(peer) {
		return own
	}
	return trace.WithSampled(parent, false)
}

// Continue is t.Begin. Without a tracer, the work has a trace context all the same: it is
// in records and in what others trace.
func Continue(t Tracer, parent string) string {
	if t == nil {
		return trace.Child(parent)
	}
	return t.Begin(parent)
}

// Recorded reports whether work with this trace context is to end with a span.
func Recorded(t Tracer, traceparent string) bool { return t != nil && trace.Sampled(traceparent) }

// Child is the trace context of a span below parent, with parent's flags. It begins a trace
// that is sampled or not where parent is empty or malformed.
func Child(parent string, sampled bool) string {
	if trace.Valid(parent) {
		return trace.Child(parent)
	}
	return trace.New(sampled)
}

// Begin begins a trace that is sampled if [Rank] places it below the bound.
func Begin(bound uint64) string { return trace.NewBelow(bound) }

// Rank places the trace of a valid traceparent among all, from 0 to below 2^63, so that
// everybody who samples a share of them takes the same ones.
func Rank(traceparent string) uint64 { return trace.Rank(traceparent) }

// Valid reports whether s is a W3C traceparent.
func Valid(s string) bool { return trace.Valid(s) }

// Sampled reports whether a traceparent says that its trace is recorded.
func Sampled(traceparent string) bool { return trace.Sampled(traceparent) }

// WithSampled returns a valid traceparent with the flag set or cleared.
func WithSampled(traceparent string, sampled bool) string {
	return trace.WithSampled(traceparent, sampled)
}

// IDs are the ids of a valid traceparent as hex digits, and "" for another.
func IDs(traceparent string) (traceID, spanID string) {
	if !trace.Valid(traceparent) {
		return "", ""
	}
	return traceparent[3:35], traceparent[36:52]
}

// State returns a W3C tracestate as it may be passed on: "" for one that is longer than
// everybody must take, or has characters that no header takes. Vendors cannot be left out of
// it one by one, as their order means something.
func State(tracestate string) string {
	const most = 512
	if len(tracestate) > most {
		return ""
	}
	for i := range len(tracestate) {
		if c := tracestate[i]; c < ' ' || c > '~' {
			return ""
		}
	}
	return tracestate
}

// A Kind is a span's part in what two sides do together. The numbers are those of OTLP.
type Kind uint8

// The kinds.
const (
	Internal Kind = iota + 1
	Server
	Client
	Producer
	Consumer
)

// A Span is one piece of work that has ended.
type Span struct {
	// Parent is the traceparent of what it is a part of; "" or a malformed one for the
	// root of a trace.
	Parent string
	// Traceparent is the span's own, and State the vendors' part of it.
	Traceparent, State string
	// Name says which kind of work it is: few names, none of which strangers choose.
	Name string
	// Kind is its part.
	Kind Kind
	// Account is in whose part of a [Tracer]'s queue it waits: the capability whose skill has made
	// it, or the peer that is called. It is never a name that a stranger chooses, and not sent.
	Account string
	// Start and End are when it began and ended.
	Start, End time.Time
	// Failure is the code of its error; "" is success.
	Failure    string
	Attributes []Attribute
	Events     []Event
}

// Add adds an attribute, unless it is empty.
func (s *Span) Add(key, text string) {
	if text != "" {
		s.Attributes = append(s.Attributes, Attribute{Key: key, Text: text})
	}
}

// AddNumber adds an attribute that is a number.
func (s *Span) AddNumber(key string, n int64) {
	s.Attributes = append(s.Attributes, Attribute{Key: key, Number: n, IsNumber: true})
}

// An Attribute is a text or a number.
type Attribute struct {
	Key      string
	Text     string
	Number   int64
	IsNumber bool
}

// An Event is something that happened during a span.
type Event struct {
	Name       string
	Time       time.Time
	Attributes []Attribute
}

package envelope

import (
	"strings"

	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/internal/truncate"
)

// A Fault is one way in which a message violates version 1.
type Fault struct {
	// Path is the key, or "<root>" for the message as a whole.
	Path string
	// Message is what the key must be. It contains no value of the message, which
	// may be secret.
	Message string
}

// An Error is everything that is wrong with one message. It is returned by
// [Decode] and [Envelope.Encode].
type Error struct {
	// Faults is not empty.
	Faults []Fault
	// NotJSON is whether the message could not be parsed at all. Faults then has
	// a single entry.
	NotJSON bool
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.NotJSON {
		b.WriteString("envelope is not valid JSON: ")
		b.WriteString(e.Faults[0].Message)
		return b.String()
	}
	b.WriteString("invalid agent-rpc envelope: ")
	for i, f := range e.Faults {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(f.Path)
		b.WriteString(": ")
		b.WriteString(f.Message)
	}
	return b.String()
}

// quoteForMessage quotes text that a sender chose, bounded, for an error message.
func quoteForMessage(s string) string {
	const most = 40
	return string(ijson.AppendQuoted(nil, truncate.String(s, most)))
}

package envelope

import "strings"

// A Fault is one way in which a message is not version 1.
type Fault struct {
	// Path is the key, or "<root>" for the message as a whole.
	Path string
	// Message says what the key must be. It holds no value of the message.
	Message string
}

// An Error is everything that is wrong with one message. It is returned by
// [Decode] and [Envelope.Encode].
type Error struct {
	// Faults is not empty.
	Faults []Fault
	// NotJSON reports that the message could not be read at all.
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

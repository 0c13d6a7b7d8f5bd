package envelope

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/agentd/agentd/internal/ijson"
)

// Version is the only wire version that this package reads and writes.
const Version = 1

// MaxDepth bounds how deeply the JSON of a message may nest.
const MaxDepth = 512

// A Kind is the purpose of a message.
type Kind string

// The kinds of version 1.
const (
	// Request asks the callee to run a capability.
	Request Kind = "request"
	// Response answers one Request.
	Response Kind = "response"
	// Event expects no answer: a fire-and-forget call, progress, a cancellation.
	Event Kind = "event"
)

// An Envelope is one message between two agents.
// The zero value of an optional field means that the key is absent.
type Envelope struct {
	// Kind is required.
	Kind Kind
	// MessageID is unique per message. Required; customarily a UUID.
	MessageID string
	// CorrelationID ties a Response to its Request. Required.
	CorrelationID string
	// CausedBy is the MessageID of the message that led to this one. Optional.
	CausedBy string
	// From is the claimed sender. Without a proof in Auth it is only a claim.
	From Address
	// To is the receiver.
	To Address
	// Capability is the name of the function to call. Required.
	Capability string
	// ReplyTo is where a Response goes: <transport>://<topic>.
	ReplyTo string
	// Deadline is when the caller stops waiting, in ms since the Unix epoch; 0 means
	// no deadline.
	Deadline int64
	// TenantID separates the tenants of a fleet. Optional.
	TenantID string
	// Headers are small strings that travel beside the payload, in sending order.
	Headers Headers
	// Payload is one JSON value, or nil. It is not copied.
	Payload json.RawMessage
	// Auth proves From. The zero value leaves the key out.
	Auth Auth

	before, after string // around Payload on the wire
}

// WrapPayload makes the payload on the wire before, Payload and after, one behind
// the other. A response wraps the skill's result in an object this way without
// copying a large one first. It is for payloads that have been validated, with
// [Envelope.EncodeChecked] and [Envelope.EncodeSigned]; Payload must not be nil.
func (e *Envelope) WrapPayload(before, after string) { e.before, e.after = before, after }

// maxPayloadDepth leaves room for the message around the payload: a payload that
// used all of [MaxDepth] would encode, and no peer could decode the message.
const maxPayloadDepth = MaxDepth - 1

// Check returns an [*Error] with everything in e that version 1 does not allow,
// or nil.
func (e *Envelope) Check() error {
	if err := e.checkFields(); err != nil {
		return err
	}
	if e.Payload == nil {
		return nil
	}
	if err := ijson.Check(e.Payload, maxPayloadDepth); err != nil {
		return &Error{Faults: []Fault{{Path: "payload", Message: err.Error()}}}
	}
	return nil
}

// checkFields is Check without the payload, which the hot path has validated
// against its schema already.
func (e *Envelope) checkFields() error {
	var faults faultList
	if !validKind(e.Kind) {
		faults.add("kind", "must be request, response or event")
	}
	e.checkStrings(&faults)
	e.checkAddresses(&faults)
	if e.Deadline < 0 {
		faults.add("deadline", badDeadline)
	}
	for _, h := range e.Headers {
		if !utf8.ValidString(h.Key) || !utf8.ValidString(h.Value) {
			faults.add("headers", "a header is not valid UTF-8")
		}
	}
	if msg := e.authFault(); msg != "" {
		faults.add("auth", msg)
	}
	return faults.err()
}

// authFault returns what is wrong with the proof, or "".
func (e *Envelope) authFault() string {
	if e.Auth.Kind == "" {
		return ""
	}
	return e.Auth.fault()
}

// checkAddresses checks the fields that have a grammar.
func (e *Envelope) checkAddresses(faults *faultList) {
	if !validAddress(e.From) {
		faults.add("from", badAddress)
	}
	if !validAddress(e.To) {
		faults.add("to", badAddress)
	}
	if e.ReplyTo != "" && !validReplyTo(e.ReplyTo) {
		faults.add("replyTo", badReplyTo)
	}
}

type faultList []Fault

// err returns the faults as an [*Error]. It returns an untyped nil without any: a
// nil *Error in an error interface would not compare equal to nil.
func (l faultList) err() error {
	if l == nil {
		return nil
	}
	return &Error{Faults: l}
}

func (l *faultList) add(path, message string) {
	*l = append(*l, Fault{Path: path, Message: message})
}

// checkStrings checks the fields that may contain any text.
func (e *Envelope) checkStrings(faults *faultList) {
	faults.checkText("messageId", e.MessageID, true)
	faults.checkText("correlationId", e.CorrelationID, true)
	faults.checkText("causedBy", e.CausedBy, false)
	faults.checkText("capability", e.Capability, true)
	faults.checkText("tenantId", e.TenantID, false)
}

func (l *faultList) checkText(name, value string, required bool) {
	switch {
	case value == "" && required:
		l.add(name, "must be a non-empty string")
	case !utf8.ValidString(value):
		l.add(name, "is not valid UTF-8")
	}
}

// validAddress is [ParseAddress] without building an error.
func validAddress(a Address) bool {
	id, ok := strings.CutPrefix(string(a), addressScheme)
	return ok && validID(id)
}

const (
	badAddress  = "must be agent://<id>, with an id of a-z 0-9 _ . - that starts with a letter or digit, without `..`, of at most 128 bytes"
	badReplyTo  = "must be <transport>://<topic>, with kafka, nats, sqs, amqp, mqtt or memory as the transport"
	badDeadline = "must be a positive integer, ms since the Unix epoch"
)

func validKind(k Kind) bool { return k == Request || k == Response || k == Event }

// validReplyTo rejects white space and control characters in addition to what
// the format rejects: no broker allows them in a topic, and a newline in a topic
// would forge a line of a log.
func validReplyTo(s string) bool {
	for _, kind := range [...]string{"nats://", "memory://", "kafka://", "sqs://", "amqp://", "mqtt://"} {
		if strings.HasPrefix(s, kind) {
			return len(s) > len(kind) && printable(s)
		}
	}
	return false
}

// printable reports whether s is valid UTF-8 without white space and control characters
// of ASCII. It looks at eight bytes at a time, in the way of package ijson.
func printable(s string) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	rest := s
	for ; len(rest) >= 8; rest = rest[8:] {
		w := uint64(rest[0]) | uint64(rest[1])<<8 | uint64(rest[2])<<16 | uint64(rest[3])<<24 |
			uint64(rest[4])<<32 | uint64(rest[5])<<40 | uint64(rest[6])<<48 | uint64(rest[7])<<56
		if ((w-ones*0x21)|(w^ones*0x7f-ones)|w)&highs != 0 {
			break // one of those, or a byte beyond ASCII
		}
	}
	ascii := true
	for i := range len(rest) {
		if rest[i] <= ' ' || rest[i] == 0x7f {
			return false
		}
		ascii = ascii && rest[i] < utf8.RuneSelf
	}
	return ascii || utf8.ValidString(s)
}

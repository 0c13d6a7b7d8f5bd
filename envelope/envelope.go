package envelope

import (
	"encoding/json"
	"strconv"
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
	if e.Auth.Kind != "" {
		if msg := e.Auth.fault(); msg != "" {
			faults.add("auth", msg)
		}
	}
	return faults.err()
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
	return ok && idFault(id) == ""
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
	kind, topic, ok := strings.Cut(s, "://")
	if !ok || topic == "" || !utf8.ValidString(topic) {
		return false
	}
	for i := range len(topic) {
		if topic[i] <= ' ' || topic[i] == 0x7f {
			return false
		}
	}
	switch kind {
	case "kafka", "nats", "sqs", "amqp", "mqtt", "memory":
		return true
	}
	return false
}

// Encode checks e and returns its JSON. The error is an [*Error].
func (e *Envelope) Encode() ([]byte, error) {
	if err := e.Check(); err != nil {
		return nil, err
	}
	return e.append(make([]byte, 0, e.sizeHint())), nil
}

// EncodeChecked is [Envelope.Encode] for a payload that has just been validated.
// It checks every other field and does not read the payload; one that is not
// valid JSON results in a message that no peer can decode.
func (e *Envelope) EncodeChecked() ([]byte, error) {
	if err := e.checkFields(); err != nil {
		return nil, err
	}
	return e.append(make([]byte, 0, e.sizeHint())), nil
}

// SigningForm returns the JSON of e without auth, with its keys in the fixed order
// that the encoder uses. It is what the hmac authentication of version 1 covers.
func (e *Envelope) SigningForm() []byte {
	return e.AppendSigningForm(make([]byte, 0, e.sizeHint()))
}

// AppendSigningForm appends [Envelope.SigningForm] to dst.
func (e *Envelope) AppendSigningForm(dst []byte) []byte { return append(e.appendSigned(dst), '}') }

// A Signer proves the sender of messages.
type Signer interface {
	// Sign returns the proof for a message to an agent. form is the signing form of
	// the message; it must not be retained.
	Sign(to Address, form []byte) (Auth, error)
}

// EncodeSigned is [Envelope.EncodeChecked] with the Auth that s returns in place
// of e's own. The message is encoded once: the signing form is the message up to
// its last brace, behind which the proof is appended. The error is an [*Error],
// or that of s.
func (e *Envelope) EncodeSigned(s Signer) ([]byte, error) {
	e.Auth = Auth{}
	if err := e.checkFields(); err != nil {
		return nil, err
	}
	const proof = 160 // an hmac with a key id of the usual length
	out := e.AppendSigningForm(make([]byte, 0, e.sizeHint()+proof))
	// Passing e.To itself to an interface would make e escape to the heap, with
	// its headers; the clone costs one small allocation instead.
	auth, err := s.Sign(Address(strings.Clone(string(e.To))), out)
	if err != nil {
		return nil, err
	}
	if auth.Kind == "" {
		return out, nil
	}
	if msg := auth.fault(); msg != "" {
		return nil, &Error{Faults: []Fault{{Path: "auth", Message: msg}}}
	}
	out = auth.append(append(out[:len(out)-1], `,"auth":`...))
	return append(out, '}'), nil
}

// sizeHint returns a capacity that the encoding rarely exceeds, so that appending
// does not copy. Only text with many escapes makes it grow.
func (e *Envelope) sizeHint() int {
	n := 256 + len(e.MessageID) + len(e.CorrelationID) + len(e.CausedBy) + len(e.From) + len(e.To) +
		len(e.Capability) + len(e.ReplyTo) + len(e.TenantID) + len(e.before) + len(e.Payload) + len(e.after)
	for _, h := range e.Headers {
		n += len(h.Key) + len(h.Value) + 6
	}
	if e.Auth.Kind != "" {
		n += 64 + len(e.Auth.KeyID) + len(e.Auth.Signature) + len(e.Auth.Token) + len(e.Auth.Scope)
	}
	return n
}

func (e *Envelope) append(dst []byte) []byte {
	dst = e.appendSigned(dst)
	if e.Auth.Kind != "" {
		dst = e.Auth.append(append(dst, `,"auth":`...))
	}
	return append(dst, '}')
}

// appendSigned appends the signing form without its closing brace, so that auth
// can follow. The order of the keys is part of version 1.
func (e *Envelope) appendSigned(dst []byte) []byte {
	dst = append(dst, `{"version":1,"kind":"`...)
	dst = append(append(dst, e.Kind...), '"')
	dst = appendMember(dst, "messageId", e.MessageID)
	dst = appendMember(dst, "correlationId", e.CorrelationID)
	dst = appendOptional(dst, "causedBy", e.CausedBy)
	dst = appendMember(dst, "from", string(e.From))
	dst = appendMember(dst, "to", string(e.To))
	dst = appendMember(dst, "capability", e.Capability)
	dst = appendOptional(dst, "replyTo", e.ReplyTo)
	if e.Deadline != 0 {
		dst = strconv.AppendInt(append(dst, `,"deadline":`...), e.Deadline, 10)
	}
	dst = appendOptional(dst, "tenantId", e.TenantID)
	if len(e.Headers) > 0 {
		dst = e.Headers.append(append(dst, `,"headers":`...))
	}
	if e.Payload != nil {
		dst = append(append(dst, `,"payload":`...), e.before...)
		dst = append(append(dst, e.Payload...), e.after...)
	}
	return dst
}

func appendOptional(dst []byte, key, value string) []byte {
	if value == "" {
		return dst
	}
	return appendMember(dst, key, value)
}

// appendMember appends ,"key":"value", for a key that needs no escaping.
func appendMember(dst []byte, key, value string) []byte {
	dst = append(append(append(dst, `,"`...), key...), `":`...)
	return ijson.AppendQuoted(dst, value)
}

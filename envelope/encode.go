package envelope

import (
	"encoding/hex"
	"strconv"
	"unicode/utf8"

	"github.com/agentd/agentd/internal/ijson"
)

// Encode checks e and returns its JSON. The error is an [*Error].
func (e *Envelope) Encode() ([]byte, error) {
	if err := e.Check(); err != nil {
		return nil, err
	}
	return e.appendAuth(e.appendSigned(make([]byte, 0, e.size()))), nil
}

// EncodeChecked is [Envelope.Encode] for a payload that has just been validated.
// It checks every other field and does not read the payload; one that is not
// valid JSON results in a message that no peer can decode.
func (e *Envelope) EncodeChecked() ([]byte, error) { return e.AppendChecked(nil) }

// AppendChecked is [Envelope.EncodeChecked], appended to dst.
func (e *Envelope) AppendChecked(dst []byte) ([]byte, error) {
	if msg := e.authFault(); msg != "" {
		return nil, e.checkFields()
	}
	f := form{text: withRoom(dst, e.size())}
	if f.append(e); !e.valid(&f) {
		return nil, e.checkFields()
	}
	return e.appendAuth(f.text), nil
}

// SigningForm returns the JSON of e without auth, with its keys in the fixed order
// that the encoder uses. It is what the hmac authentication of version 1 covers.
func (e *Envelope) SigningForm() []byte {
	return e.AppendSigningForm(make([]byte, 0, e.size()))
}

// AppendSigningForm appends [Envelope.SigningForm] to dst.
func (e *Envelope) AppendSigningForm(dst []byte) []byte { return append(e.appendSigned(dst), '}') }

// A Signer proves the sender of messages.
type Signer interface {
	// Seal returns the message whose signing form is form: with its proof as the last
	// member, or unchanged without one. It may append to form, see [WithAuth] and
	// [WithMAC]. to is the receiver, as form has it. It must retain neither.
	Seal(form, to []byte) ([]byte, error)
}

// WithAuth returns the message with a signing form and a proof. It uses the array of
// form. The error is an [*Error].
func WithAuth(form []byte, a *Auth) ([]byte, error) {
	if msg := a.fault(); msg != "" {
		return nil, &Error{Faults: []Fault{{Path: "auth", Message: msg}}}
	}
	return append(a.append(append(form[:len(form)-1], `,"auth":`...)), '}'), nil
}

// WithMAC is [WithAuth] for an [AuthHMAC] with a key id, which is not empty, and a MAC
// that is not in hex yet.
func WithMAC(form []byte, keyID string, mac []byte) []byte {
	out := append(form[:len(form)-1], `,"auth":{"kind":"hmac","keyId":`...)
	out = ijson.AppendQuoted(out, keyID)
	out = hex.AppendEncode(append(out, `,"signature":"`...), mac)
	return append(out, `"}}`...)
}

// EncodeSigned is [Envelope.EncodeChecked] with the proof of s in place of e's own. The
// message is encoded once: the signing form is the message up to its last brace, behind
// which the proof is appended. The error is an [*Error], or that of s.
func (e *Envelope) EncodeSigned(s Signer) ([]byte, error) { return e.AppendSigned(nil, s) }

// AppendSigned is [Envelope.EncodeSigned] in the array of buf, of which nothing is kept
// but the room: what a signer gets begins with the message.
func (e *Envelope) AppendSigned(buf []byte, s Signer) ([]byte, error) {
	e.Auth = Auth{}
	const proof = 144 // an hmac with a key id of the usual length
	f := form{text: withRoom(buf[:0], e.size()+proof)}
	if f.append(e); !e.valid(&f) {
		return nil, e.checkFields()
	}
	// The receiver as the form has it: to pass e.To itself to an interface would make e
	// escape to the heap, with its headers.
	message, err := s.Seal(append(f.text, '}'), f.text[f.to:f.to+len(e.To)])
	if err != nil {
		return nil, err
	}
	return message, nil
}

// withRoom returns dst with room for n more bytes. Where that takes another array, it
// has no more than these.
func withRoom(dst []byte, n int) []byte {
	if cap(dst)-len(dst) >= n {
		return dst
	}
	return append(make([]byte, 0, len(dst)+n), dst...)
}

// What a message takes besides the texts of its fields: the required members, and each
// of the others. Only text with escapes takes more.
const (
	sizeOfRequired = len(`{"version":1,"kind":"","messageId":"","correlationId":"","from":"","to":"","capability":""}`)
	sizeOfCausedBy = len(`,"causedBy":""`)
	sizeOfReplyTo  = len(`,"replyTo":""`)
	sizeOfDeadline = len(`,"deadline":9007199254740992`)
	sizeOfTenantID = len(`,"tenantId":""`)
	sizeOfHeaders  = len(`,"headers":{}`)
	sizeOfHeader   = len(`"":"",`)
	sizeOfPayload  = len(`,"payload":`)
	sizeOfAuth     = len(`,"auth":{"kind":"oauth2-client"}`)
	sizeOfMember   = len(`,"signature":""`) // of auth
)

// size returns the length of the encoding, or a little more, so that appending neither
// copies nor leaves much unused.
func (e *Envelope) size() int {
	n := sizeOfRequired + len(e.Kind) + len(e.MessageID) + len(e.CorrelationID) + len(e.From) + len(e.To) + len(e.Capability)
	if e.CausedBy != "" {
		n += sizeOfCausedBy + len(e.CausedBy)
	}
	if e.ReplyTo != "" {
		n += sizeOfReplyTo + len(e.ReplyTo)
	}
	if e.Deadline != 0 {
		n += sizeOfDeadline
	}
	if e.TenantID != "" {
		n += sizeOfTenantID + len(e.TenantID)
	}
	if len(e.Headers) > 0 {
		n += sizeOfHeaders
	}
	for i := range e.Headers {
		n += sizeOfHeader + len(e.Headers[i].Key) + len(e.Headers[i].Value)
	}
	if e.Payload != nil {
		n += sizeOfPayload + len(e.before) + len(e.Payload) + len(e.after)
	}
	switch e.Auth.Kind {
	case "":
	case AuthInternal:
		n += sizeOfAuth
	default:
		n += sizeOfAuth + 2*sizeOfMember + len(e.Auth.KeyID) + len(e.Auth.Signature) + len(e.Auth.Token) + len(e.Auth.Scope)
	}
	return n
}

// appendAuth appends what stands behind the signing form without its closing brace.
func (e *Envelope) appendAuth(dst []byte) []byte {
	if e.Auth.Kind != "" {
		dst = e.Auth.append(append(dst, `,"auth":`...))
	}
	return append(dst, '}')
}

// appendSigned appends the signing form without its closing brace, so that auth
// can follow.
func (e *Envelope) appendSigned(dst []byte) []byte {
	f := form{text: dst}
	f.append(e)
	return f.text
}

// valid reports whether version 1 allows the message that f is the signing form of. If
// not, [Envelope.checkFields] says why.
func (e *Envelope) valid(f *form) bool {
	return !f.invalid && validKind(e.Kind) && e.MessageID != "" && e.CorrelationID != "" && e.Capability != "" && e.Deadline >= 0 &&
		validAddress(e.From) && validAddress(e.To) && (e.ReplyTo == "" || validReplyTo(e.ReplyTo))
}

// A form is a signing form that is being written.
type form struct {
	text    []byte
	to      int  // where the receiver stands
	invalid bool // there was text that is not valid UTF-8
}

// append appends the signing form of e without its closing brace. The order of the keys
// is part of version 1.
func (f *form) append(e *Envelope) {
	f.text = append(f.text, `{"version":1,"kind":"`...)
	f.text = append(append(f.text, e.Kind...), '"')
	f.member(`,"messageId":`, e.MessageID)
	f.member(`,"correlationId":`, e.CorrelationID)
	if e.CausedBy != "" {
		f.member(`,"causedBy":`, e.CausedBy)
	}
	f.member(`,"from":`, string(e.From))
	f.to = len(f.text) + len(`,"to":"`)
	f.member(`,"to":`, string(e.To))
	f.member(`,"capability":`, e.Capability)
	if e.ReplyTo != "" {
		f.member(`,"replyTo":`, e.ReplyTo)
	}
	if e.Deadline != 0 {
		f.text = strconv.AppendInt(append(f.text, `,"deadline":`...), e.Deadline, 10)
	}
	if e.TenantID != "" {
		f.member(`,"tenantId":`, e.TenantID)
	}
	f.headers(e.Headers)
	if e.Payload != nil {
		f.text = append(append(f.text, `,"payload":`...), e.before...)
		f.text = append(append(f.text, e.Payload...), e.after...)
	}
}

// member appends a member, of which before is all up to its value.
func (f *form) member(before, value string) {
	f.text = append(f.text, before...)
	f.string(value)
}

func (f *form) headers(all Headers) {
	before := `,"headers":{`
	for i := range all {
		f.member(before, all[i].Key)
		f.member(`:`, all[i].Value)
		before = `,`
	}
	if len(all) > 0 {
		f.text = append(f.text, '}')
	}
}

// string appends a string. Most are plain, which one look at each byte shows.
func (f *form) string(s string) {
	text, plain := ijson.AppendPlain(f.text, s)
	if !plain {
		f.invalid = f.invalid || !utf8.ValidString(s)
		text = ijson.AppendQuoted(text, s)
	}
	f.text = text
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

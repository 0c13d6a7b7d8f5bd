package envelope

import (
	"bytes"
	"errors"
	"strings"

	"github.com/agentd/agentd/internal/ijson"
)

// Decode reads one message. It refuses what version 1 does not define: an
// unknown or repeated key, a value of the wrong kind, JSON that is not I-JSON.
// The error is an [*Error] that names every fault. The payload of the
// result aliases data; data must not change while the Envelope is in use.
func Decode(data []byte) (*Envelope, error) {
	d := decoder{data: data}
	if err := d.scan(); err != nil {
		return nil, &Error{NotJSON: true, Faults: []Fault{{Path: rootPath, Message: err.Error()}}}
	}
	if !d.notObject {
		d.checkRequired()
	}
	if len(d.faults) > 0 {
		return nil, &Error{Faults: d.faults}
	}
	return d.build()
}

const rootPath = "<root>"

// A field is one key that version 1 defines, in the order of the wire.
type field uint8

const (
	fieldMessageID field = iota
	fieldCorrelationID
	fieldCausedBy
	fieldFrom
	fieldTo
	fieldCapability
	fieldReplyTo
	fieldTenantID
	stringFields // the fields above hold strings
)

const (
	fieldVersion = stringFields + iota
	fieldKind
	fieldDeadline
	fieldHeaders
	fieldPayload
	fieldAuth
	fieldCount
	fieldUnknown
)

// A span is a string's content inside data, between its quotes.
type span struct {
	start, end int
	escaped    bool
}

// A decoder holds what one pass over the bytes found. Strings are cut out of
// one buffer at the end, so that a message costs few allocations.
type decoder struct {
	data    []byte
	strings [stringFields]span
	seen    [fieldCount]bool
	faults  []Fault

	notObject bool
	kind      Kind
	deadline  int64
	headers   []span // key, value, key, value …
	hbuf      [16]span
	payload   []byte
	auth      Auth
}

func (d *decoder) fault(path, message string) {
	const most = 16
	if len(d.faults) < most {
		d.faults = append(d.faults, Fault{Path: path, Message: message})
	}
}

// scan reads the whole message; its error means that the JSON itself is bad.
func (d *decoder) scan() error {
	i := ijson.SkipSpace(d.data, 0)
	if i < len(d.data) && d.data[i] != '{' {
		if err := ijson.Check(d.data, MaxDepth); err != nil {
			return err
		}
		d.notObject = true
		d.fault(rootPath, "must be an object")
		return nil
	}
	end, err := eachMember(d.data, i, d.member)
	if err != nil {
		return err
	}
	if end = ijson.SkipSpace(d.data, end); end != len(d.data) {
		return &ijson.SyntaxError{Offset: end, Msg: "data after the message"}
	}
	return nil
}

// eachMember calls fn with each member of the object at data[i]: the key's
// span and where its value starts. fn returns where the value ends.
func eachMember(data []byte, i int, fn func(key span, value int) (int, error)) (int, error) {
	if i >= len(data) {
		return i, &ijson.SyntaxError{Offset: i, Msg: "unexpected end of input"}
	}
	i = ijson.SkipSpace(data, i+1)
	if i < len(data) && data[i] == '}' {
		return i + 1, nil
	}
	for {
		if i >= len(data) || data[i] != '"' {
			return i, &ijson.SyntaxError{Offset: i, Msg: "expected a member name"}
		}
		end, escaped, err := ijson.ScanString(data, i)
		if err != nil {
			return i, err
		}
		key := span{start: i + 1, end: end - 1, escaped: escaped}
		i = ijson.SkipSpace(data, end)
		if i >= len(data) || data[i] != ':' {
			return i, &ijson.SyntaxError{Offset: i, Msg: "expected ':' after a member name"}
		}
		if i, err = fn(key, ijson.SkipSpace(data, i+1)); err != nil {
			return i, err
		}
		i = ijson.SkipSpace(data, i)
		switch {
		case i < len(data) && data[i] == ',':
			i = ijson.SkipSpace(data, i+1)
		case i < len(data) && data[i] == '}':
			return i + 1, nil
		default:
			return i, &ijson.SyntaxError{Offset: i, Msg: "expected ',' or '}' after a member"}
		}
	}
}

func (d *decoder) member(key span, i int) (int, error) {
	f := d.field(key)
	end, err := ijson.Skip(d.data, i, MaxDepth-1)
	if err != nil {
		return end, err
	}
	if f == fieldUnknown {
		d.fault(rootPath, "unknown key "+quoteForMessage(d.text(key)))
		return end, nil
	}
	if d.seen[f] {
		return end, &ijson.SyntaxError{Offset: key.start, Msg: "duplicate key"}
	}
	d.seen[f] = true
	value := d.data[i:end]
	switch {
	case f < stringFields:
		if value[0] != '"' || len(value) == 2 {
			d.fault(fieldName(f), "must be a non-empty string")
			break
		}
		d.strings[f] = span{start: i + 1, end: end - 1, escaped: bytes.IndexByte(value, '\\') >= 0}
	case f == fieldVersion:
		if string(value) != "1" {
			d.fault("version", "must be 1")
		}
	case f == fieldKind:
		d.readKind(value)
	case f == fieldDeadline:
		d.readDeadline(value)
	case f == fieldHeaders:
		return end, d.readHeaders(i)
	case f == fieldPayload:
		d.payload = value
	case f == fieldAuth:
		return end, d.readAuth(i)
	}
	return end, nil
}

func (d *decoder) readKind(value []byte) {
	switch string(value) {
	case `"request"`:
		d.kind = Request
	case `"response"`:
		d.kind = Response
	case `"event"`:
		d.kind = Event
	default:
		d.fault("kind", "must be request, response or event")
	}
}

// readDeadline accepts integers that a double holds exactly: every peer reads
// the same instant.
func (d *decoder) readDeadline(value []byte) {
	const maxExact = 1 << 53
	n := int64(0)
	for _, c := range value {
		if c < '0' || c > '9' || n > maxExact {
			d.fault("deadline", badDeadline)
			return
		}
		n = n*10 + int64(c-'0')
	}
	if n == 0 || n > maxExact {
		d.fault("deadline", badDeadline)
		return
	}
	d.deadline = n
}

func (d *decoder) readHeaders(i int) error {
	if d.data[i] != '{' {
		d.fault("headers", "must be an object of strings")
		return nil
	}
	d.headers = d.hbuf[:0]
	_, err := eachMember(d.data, i, func(key span, v int) (int, error) {
		if d.data[v] != '"' {
			d.fault("headers", "the value of "+quoteForMessage(d.text(key))+" must be a string")
			return ijson.Skip(d.data, v, MaxDepth)
		}
		end, escaped, err := ijson.ScanString(d.data, v)
		d.headers = append(d.headers, key, span{start: v + 1, end: end - 1, escaped: escaped})
		return end, err
	})
	return err
}

// readAuth passes over keys that it does not know, as version 1 says.
func (d *decoder) readAuth(i int) error {
	if d.data[i] != '{' {
		d.fault("auth", "must be an object")
		return nil
	}
	_, err := eachMember(d.data, i, d.authMember)
	if err != nil {
		return err
	}
	if msg := d.auth.fault(); msg != "" {
		d.fault("auth", msg)
	}
	return nil
}

func (d *decoder) authMember(key span, v int) (int, error) {
	end, err := ijson.Skip(d.data, v, MaxDepth)
	if err != nil || d.data[v] != '"' {
		return end, err
	}
	value := span{start: v + 1, end: end - 1, escaped: true}
	switch string(d.raw(key)) {
	case "kind":
		if string(d.data[value.start:value.end]) == string(AuthInternal) {
			d.auth.Kind = AuthInternal // the usual one, without a copy
		} else {
			d.auth.Kind = AuthKind(d.text(value))
		}
	case "keyId":
		d.auth.KeyID = d.text(value)
	case "signature":
		d.auth.Signature = d.text(value)
	case "token":
		d.auth.Token = d.text(value)
	case "scope":
		d.auth.Scope = d.text(value)
	}
	return end, nil
}

func (d *decoder) checkRequired() {
	for _, f := range [...]field{fieldVersion, fieldKind, fieldMessageID, fieldCorrelationID, fieldFrom, fieldTo, fieldCapability} {
		if !d.seen[f] {
			d.fault(fieldName(f), "is missing")
		}
	}
}

// build cuts every string out of one allocation.
func (d *decoder) build() (*Envelope, error) {
	size := 0
	for _, s := range d.strings {
		size += s.end - s.start
	}
	for _, s := range d.headers {
		size += s.end - s.start
	}
	var b strings.Builder
	b.Grow(size)
	cut := func(s span) string {
		from := b.Len()
		if s.escaped {
			b.Write(ijson.AppendUnquoted(nil, d.data[s.start:s.end]))
		} else {
			b.Write(d.data[s.start:s.end])
		}
		return b.String()[from:]
	}
	e := &Envelope{
		Kind: d.kind, Deadline: d.deadline, Payload: d.payload, Auth: d.auth,
		MessageID: cut(d.strings[fieldMessageID]), CorrelationID: cut(d.strings[fieldCorrelationID]),
		CausedBy: cut(d.strings[fieldCausedBy]), Capability: cut(d.strings[fieldCapability]),
		From: Address(cut(d.strings[fieldFrom])), To: Address(cut(d.strings[fieldTo])),
		ReplyTo: cut(d.strings[fieldReplyTo]), TenantID: cut(d.strings[fieldTenantID]),
	}
	if len(d.headers) > 0 {
		e.Headers = make(Headers, 0, len(d.headers)/2)
		for i := 0; i < len(d.headers); i += 2 {
			e.Headers = append(e.Headers, Header{Key: cut(d.headers[i]), Value: cut(d.headers[i+1])})
		}
	}
	if err := e.checkFields(); err != nil {
		return nil, err
	}
	return e, nil
}

func (d *decoder) text(s span) string { return string(d.raw(s)) }

// raw is a string's content; it is a copy only where it holds escapes.
func (d *decoder) raw(s span) []byte {
	if s.escaped {
		return ijson.AppendUnquoted(nil, d.data[s.start:s.end])
	}
	return d.data[s.start:s.end]
}

// field finds the key without allocating.
func (d *decoder) field(key span) field {
	switch string(d.raw(key)) {
	case "version":
		return fieldVersion
	case "kind":
		return fieldKind
	case "messageId":
		return fieldMessageID
	case "correlationId":
		return fieldCorrelationID
	case "causedBy":
		return fieldCausedBy
	case "from":
		return fieldFrom
	case "to":
		return fieldTo
	case "capability":
		return fieldCapability
	case "replyTo":
		return fieldReplyTo
	case "deadline":
		return fieldDeadline
	case "tenantId":
		return fieldTenantID
	case "headers":
		return fieldHeaders
	case "payload":
		return fieldPayload
	case "auth":
		return fieldAuth
	}
	return fieldUnknown
}

// fieldName is the key of a string field or a required one, for messages.
func fieldName(f field) string {
	switch f {
	case fieldVersion:
		return "version"
	case fieldKind:
		return "kind"
	case fieldMessageID:
		return "messageId"
	case fieldCorrelationID:
		return "correlationId"
	case fieldCausedBy:
		return "causedBy"
	case fieldFrom:
		return "from"
	case fieldTo:
		return "to"
	case fieldCapability:
		return "capability"
	case fieldReplyTo:
		return "replyTo"
	case fieldTenantID:
		return "tenantId"
	}
	return rootPath
}

// quoteForMessage bounds what a sender can put into an error message.
func quoteForMessage(s string) string {
	const most = 40
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return string(appendQuoted(nil, s))
}

// IsNotJSON reports whether err says that a message was not JSON at all.
func IsNotJSON(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.NotJSON
}

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
	headers   headerSpans
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
	m := members{data: d.data, i: i}
	for m.next() {
		m.i, m.err = d.member(m.key, m.value)
	}
	if m.err != nil {
		return m.err
	}
	if end := ijson.SkipSpace(d.data, m.i); end != len(d.data) {
		return &ijson.SyntaxError{Offset: end, Msg: "data after the message"}
	}
	return nil
}

// members walks the object that begins at data[i]. After next has returned true,
// whoever calls it sets i to where the value ends, or err.
type members struct {
	data  []byte
	i     int
	begun bool
	key   span // the member's name
	value int  // where its value begins
	err   error
}

// next finds the next member. At the end of the object, or at an error, it is false.
func (m *members) next() bool {
	if m.err != nil || !m.separator() {
		return false
	}
	if m.i >= len(m.data) || m.data[m.i] != '"' {
		return m.fail("expected a member name")
	}
	end, escaped, err := ijson.ScanString(m.data, m.i)
	if err != nil {
		m.err = err
		return false
	}
	m.key = span{start: m.i + 1, end: end - 1, escaped: escaped}
	m.i = ijson.SkipSpace(m.data, end)
	if m.i >= len(m.data) || m.data[m.i] != ':' {
		return m.fail("expected ':' after a member name")
	}
	m.value = ijson.SkipSpace(m.data, m.i+1)
	return true
}

// separator moves to where the next member's name must be; it is false after the last one.
func (m *members) separator() bool {
	if m.i >= len(m.data) {
		return m.fail("unexpected end of input")
	}
	if !m.begun {
		m.begun = true
		m.i = ijson.SkipSpace(m.data, m.i+1) // past the brace
		if m.i < len(m.data) && m.data[m.i] == '}' {
			m.i++
			return false
		}
		return true
	}
	m.i = ijson.SkipSpace(m.data, m.i)
	switch {
	case m.i < len(m.data) && m.data[m.i] == ',':
		m.i = ijson.SkipSpace(m.data, m.i+1)
		return true
	case m.i < len(m.data) && m.data[m.i] == '}':
		m.i++
		return false
	}
	return m.fail("expected ',' or '}' after a member")
}

func (m *members) fail(msg string) bool {
	m.err = &ijson.SyntaxError{Offset: m.i, Msg: msg}
	return false
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
	m := members{data: d.data, i: i}
	for m.next() {
		if d.data[m.value] != '"' {
			d.fault("headers", "the value of "+quoteForMessage(d.text(m.key))+" must be a string")
			m.i, m.err = ijson.Skip(d.data, m.value, MaxDepth)
			continue
		}
		var escaped bool
		m.i, escaped, m.err = ijson.ScanString(d.data, m.value)
		d.headers.add(m.key, span{start: m.value + 1, end: m.i - 1, escaped: escaped})
	}
	return m.err
}

// readAuth passes over keys that it does not know, as version 1 says.
func (d *decoder) readAuth(i int) error {
	if d.data[i] != '{' {
		d.fault("auth", "must be an object")
		return nil
	}
	m := members{data: d.data, i: i}
	for m.next() {
		if m.i, m.err = ijson.Skip(d.data, m.value, MaxDepth); m.err == nil && d.data[m.value] == '"' {
			d.authMember(m.key, span{start: m.value + 1, end: m.i - 1, escaped: true})
		}
	}
	if msg := d.auth.fault(); m.err == nil && msg != "" {
		d.fault("auth", msg)
	}
	return m.err
}

func (d *decoder) authMember(key, value span) {
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
}

// A headerSpans holds the spans of keys and values; most messages have few
// enough for no allocation.
type headerSpans struct {
	first [8][2]span
	count int
	more  [][2]span
}

func (h *headerSpans) add(key, value span) {
	if h.count < len(h.first) {
		h.first[h.count] = [2]span{key, value}
	} else {
		h.more = append(h.more, [2]span{key, value})
	}
	h.count++
}

func (h *headerSpans) at(i int) [2]span {
	if i < len(h.first) {
		return h.first[i]
	}
	return h.more[i-len(h.first)]
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
	var text builder
	size := 0
	for _, s := range d.strings {
		size += s.end - s.start
	}
	for i := range d.headers.count {
		kv := d.headers.at(i)
		size += kv[0].end - kv[0].start + kv[1].end - kv[1].start
	}
	text.Grow(size)
	e := &Envelope{
		Kind: d.kind, Deadline: d.deadline, Payload: d.payload, Auth: d.auth,
		MessageID:     text.cut(d.data, d.strings[fieldMessageID]),
		CorrelationID: text.cut(d.data, d.strings[fieldCorrelationID]),
		CausedBy:      text.cut(d.data, d.strings[fieldCausedBy]),
		Capability:    text.cut(d.data, d.strings[fieldCapability]),
		From:          Address(text.cut(d.data, d.strings[fieldFrom])),
		To:            Address(text.cut(d.data, d.strings[fieldTo])),
		ReplyTo:       text.cut(d.data, d.strings[fieldReplyTo]),
		TenantID:      text.cut(d.data, d.strings[fieldTenantID]),
	}
	if d.headers.count > 0 {
		e.Headers = make(Headers, d.headers.count)
		for i := range e.Headers {
			kv := d.headers.at(i)
			e.Headers[i] = Header{Key: text.cut(d.data, kv[0]), Value: text.cut(d.data, kv[1])}
		}
	}
	if err := e.checkFields(); err != nil {
		return nil, err
	}
	return e, nil
}

// A builder holds the text of many strings in one allocation. It must have been
// grown to all of it before the first cut.
type builder struct{ strings.Builder }

// cut copies a span and returns the copy.
func (b *builder) cut(data []byte, s span) string {
	from := b.Len()
	if s.escaped {
		b.Write(ijson.AppendUnquoted(nil, data[s.start:s.end]))
	} else {
		b.Write(data[s.start:s.end])
	}
	return b.String()[from:]
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

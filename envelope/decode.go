package envelope

import (
	"errors"

	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/internal/truncate"
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
	if f == fieldHeaders && !d.seen[f] && i < len(d.data) && d.data[i] == '{' {
		d.seen[f] = true
		return d.readHeaders(i)
	}
	end, escaped, err := d.skip(i)
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
		d.strings[f] = span{start: i + 1, end: end - 1, escaped: escaped}
	case f == fieldVersion:
		if string(value) != "1" {
			d.fault("version", "must be 1")
		}
	case f == fieldKind:
		d.readKind(value)
	case f == fieldDeadline:
		d.readDeadline(value)
	case f == fieldHeaders:
		d.fault("headers", "must be an object of strings")
	case f == fieldPayload:
		d.payload = value
	case f == fieldAuth && string(value) == `{"kind":"internal"}`:
		d.auth.Kind = AuthInternal // the usual one
	case f == fieldAuth:
		return end, d.readAuth(i)
	}
	return end, nil
}

// skip passes over a value. Strings and integers, which most values are, need no
// scratch space. escaped is about strings.
func (d *decoder) skip(i int) (end int, escaped bool, err error) {
	if i < len(d.data) {
		switch c := d.data[i]; {
		case c == '"':
			return ijson.ScanString(d.data, i)
		case '0' <= c && c <= '9':
			end, _, err = ijson.ScanNumber(d.data, i)
			return end, false, err
		}
	}
	end, err = ijson.Skip(d.data, i, MaxDepth-1)
	return end, false, err
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

// readHeaders reads the object at i, and returns where it ends.
func (d *decoder) readHeaders(i int) (int, error) {
	m := members{data: d.data, i: i}
	plain := true // every member is a string
	for m.next() {
		if m.value >= len(d.data) || d.data[m.value] != '"' {
			d.fault("headers", "the value of "+quoteForMessage(d.text(m.key))+" must be a string")
			m.i, m.err = ijson.Skip(d.data, m.value, MaxDepth-2)
			plain = false
			continue
		}
		var escaped bool
		m.i, escaped, m.err = ijson.ScanString(d.data, m.value)
		d.headers.add(m.key, span{start: m.value + 1, end: m.i - 1, escaped: escaped})
	}
	if m.err == nil && (!plain || !d.headers.distinct(d.data)) {
		return ijson.Skip(d.data, i, MaxDepth-1) // compares all names
	}
	return m.i, m.err
}

// readAuth passes over keys that it does not know, as version 1 says.
func (d *decoder) readAuth(i int) error {
	if d.data[i] != '{' {
		d.fault("auth", "must be an object")
		return nil
	}
	m := members{data: d.data, i: i}
	for m.next() {
		var escaped bool
		if m.i, escaped, m.err = d.skip(m.value); m.err == nil && d.data[m.value] == '"' {
			d.authMember(m.key, span{start: m.value + 1, end: m.i - 1, escaped: escaped})
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
		d.auth.Kind = AuthKind(d.text(value))
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

func (h *headerSpans) at(i int) *[2]span {
	if i < len(h.first) {
		return &h.first[i]
	}
	return &h.more[i-len(h.first)]
}

// distinct reports that no two keys are the same. It is false where telling would
// take more than comparing a few as they stand.
func (h *headerSpans) distinct(data []byte) bool {
	if h.count > len(h.first) {
		return false
	}
	for i := range h.count {
		key := h.first[i][0]
		if key.escaped {
			return false
		}
		for _, other := range h.first[:i] {
			if string(data[key.start:key.end]) == string(data[other[0].start:other[0].end]) {
				return false
			}
		}
	}
	return true
}

func (d *decoder) checkRequired() {
	for _, f := range [...]field{fieldVersion, fieldKind, fieldMessageID, fieldCorrelationID, fieldFrom, fieldTo, fieldCapability} {
		if !d.seen[f] {
			d.fault(fieldName(f), "is missing")
		}
	}
}

// build makes the message of what was found.
func (d *decoder) build() (*Envelope, error) {
	text := d.gather()
	cut := func(s span) string { return text[s.start:s.end] }
	e := &Envelope{
		Kind: d.kind, Deadline: d.deadline, Payload: d.payload, Auth: d.auth,
		MessageID:     cut(d.strings[fieldMessageID]),
		CorrelationID: cut(d.strings[fieldCorrelationID]),
		CausedBy:      cut(d.strings[fieldCausedBy]),
		Capability:    cut(d.strings[fieldCapability]),
		From:          Address(cut(d.strings[fieldFrom])),
		To:            Address(cut(d.strings[fieldTo])),
		ReplyTo:       cut(d.strings[fieldReplyTo]),
		TenantID:      cut(d.strings[fieldTenantID]),
	}
	if d.headers.count > 0 {
		e.Headers = make(Headers, d.headers.count)
		for i := range e.Headers {
			h := d.headers.at(i)
			e.Headers[i] = Header{Key: cut(h[0]), Value: cut(h[1])}
		}
	}
	// The pass over the bytes has checked the rest.
	var faults faultList
	if e.checkAddresses(&faults); faults != nil {
		return nil, faults.err()
	}
	return e, nil
}

// gather copies all strings into one, and makes their spans those of the copy:
// a message costs one allocation for all of them.
func (d *decoder) gather() string {
	var usual [768]byte
	all := usual[:0]
	move := func(s *span) {
		from := len(all)
		if s.escaped {
			all = ijson.AppendUnquoted(all, d.data[s.start:s.end])
		} else {
			all = append(all, d.data[s.start:s.end]...)
		}
		*s = span{start: from, end: len(all)}
	}
	for i := range d.strings {
		move(&d.strings[i])
	}
	for i := range d.headers.count {
		h := d.headers.at(i)
		move(&h[0])
		move(&h[1])
	}
	return string(all)
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
	return string(ijson.AppendQuoted(nil, truncate.String(s, most)))
}

// IsNotJSON reports whether err says that a message was not JSON at all.
func IsNotJSON(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.NotJSON
}

package envelope

import "github.com/agentd/agentd/internal/ijson"

// Decode reads one message. It rejects anything that version 1 does not define:
// an unknown or repeated key, a value of the wrong type, JSON that is not I-JSON
// (RFC 7493). The error is an [*Error] that names every fault. The payload of
// the result aliases data, which must not change while the Envelope is in use.
func Decode(data []byte) (*Envelope, error) {
	m := &Message{}
	if err := m.Decode(data); err != nil {
		return nil, err
	}
	return &m.Envelope, nil
}

// decodeAny decodes a message of whatever spelling, and refuses one that is none.
func decodeAny(data []byte, m *Message) error {
	d := decoder{data: data}
	if err := d.scan(); err != nil {
		return &Error{NotJSON: true, Faults: []Fault{{Path: rootPath, Message: err.Error()}}}
	}
	if !d.notObject {
		d.checkRequired()
	}
	if len(d.faults) > 0 {
		return &Error{Faults: d.faults}
	}
	return d.build(m)
}

// rootPath is the path of faults of the message as a whole.
const rootPath = "<root>"

// A decoder holds what a single pass over the bytes has found. During the pass
// strings are only located; build copies all of them at once, so that decoding
// costs a fixed handful of allocations however many fields a message has.
type decoder struct {
	data    []byte
	at      int // where usual reads
	strings [stringFields]span
	proof   [proofFields]span // the strings of auth, where usual has read it
	seen    [fieldCount]bool
	faults  []Fault

	notObject bool
	kind      Kind
	deadline  int64
	headers   headerSpans
	payload   []byte
	auth      Auth
}

// fault notes a fault. The bound keeps a message of nothing but unknown keys
// from producing an error larger than itself.
func (d *decoder) fault(path, message string) {
	const most = 16
	if len(d.faults) < most {
		d.faults = append(d.faults, Fault{Path: path, Message: message})
	}
}

// scan reads the whole message. An error means that the JSON itself is
// malformed; anything else that is wrong becomes a fault, so that one reply can
// report all of them.
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

// member reads the value at i into the field that key names, and returns where
// the value ends. A repeated key is malformed JSON rather than a fault: I-JSON
// leaves open which of the two values counts (RFC 7493, section 2.3), and two
// peers that disagree could be made to act on different messages.
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
		d.auth.Kind = AuthInternal // spelled the way every encoder of ours does
	case f == fieldAuth:
		return end, d.readAuth(i)
	}
	return end, nil
}

// skip returns where the value at i ends, and for a string whether it contains
// escapes. Strings and integers, which most values are, take a path that needs
// no scratch space from the scanner's pool.
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

// readDeadline accepts integers up to 2^53, the largest that a double holds
// exactly: a peer in JavaScript must read the same instant. The bound is checked
// before each multiplication, so that a long run of digits cannot overflow into
// a deadline that looks valid.
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

// readHeaders reads the object at i and returns where it ends. Comparing a few
// keys byte by byte shows nearly always that they are distinct. Only where it
// does not (many keys, escapes, equal bytes) does a second pass through the
// scanner, which unescapes and hashes names, decide whether a key is repeated.
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
		return ijson.Skip(d.data, i, MaxDepth-1)
	}
	return m.i, m.err
}

// readAuth reads the object at i. Unlike the message itself, auth may contain
// keys that this version does not know: version 1 lets providers add members.
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

func (d *decoder) checkRequired() {
	for _, f := range [...]field{fieldVersion, fieldKind, fieldMessageID, fieldCorrelationID, fieldFrom, fieldTo, fieldCapability} {
		if !d.seen[f] {
			d.fault(fieldName(f), "is missing")
		}
	}
}

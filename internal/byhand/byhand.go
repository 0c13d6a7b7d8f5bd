package byhand

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agentd/agentd/envelope"
)

// ErrRefused is the only error of the codec.
var ErrRefused = errors.New("no envelope")

// Encode checks and writes a message whose payload has been validated.
func Encode(e *envelope.Envelope) ([]byte, error) {
	size := 256 + len(e.MessageID) + len(e.CorrelationID) + len(e.CausedBy) + len(e.From) + len(e.To) + len(e.Capability) +
		len(e.ReplyTo) + len(e.TenantID) + len(e.Payload)
	for _, h := range e.Headers {
		size += len(h.Key) + len(h.Value) + 6
	}
	w := handWriter{out: make([]byte, 0, size), ok: true}
	w.raw(`{"version":1,"kind":"`)
	w.raw(string(e.Kind))
	w.ok = w.ok && (e.Kind == envelope.Request || e.Kind == envelope.Response || e.Kind == envelope.Event)
	w.member(`","messageId":"`, e.MessageID, true)
	w.member(`","correlationId":"`, e.CorrelationID, true)
	w.member(`","causedBy":"`, e.CausedBy, false)
	w.member(`","from":"`, string(e.From), handAddress(string(e.From)))
	w.member(`","to":"`, string(e.To), handAddress(string(e.To)))
	w.member(`","capability":"`, e.Capability, true)
	w.member(`","replyTo":"`, e.ReplyTo, false)
	w.ok = w.ok && handAddress(string(e.From)) && handAddress(string(e.To)) && (e.ReplyTo == "" || handTopic(e.ReplyTo))
	w.raw(`"`)
	if e.Deadline > 0 {
		w.out = strconv.AppendInt(append(w.out, `,"deadline":`...), e.Deadline, 10)
	}
	if e.TenantID != "" {
		w.member(`,"tenantId":"`, e.TenantID, false)
		w.raw(`"`)
	}
	if len(e.Headers) > 0 {
		before := `,"headers":{"`
		for _, h := range e.Headers {
			w.raw(before)
			w.text(h.Key)
			w.raw(`":"`)
			w.text(h.Value)
			before = `","`
		}
		w.raw(`"}`)
	}
	w.raw(`,"payload":`)
	w.out = append(w.out, e.Payload...)
	if e.Auth.Kind == envelope.AuthInternal {
		w.raw(`,"auth":{"kind":"internal"}`)
	}
	w.raw("}")
	if !w.ok || e.Auth.Kind != "" && e.Auth.Kind != envelope.AuthInternal {
		return nil, ErrRefused
	}
	return w.out, nil
}

// A handWriter appends a message.
type handWriter struct {
	out []byte
	ok  bool
}

func (w *handWriter) raw(s string) { w.out = append(w.out, s...) }

func (w *handWriter) member(before, s string, required bool) {
	if s == "" {
		w.ok = w.ok && !required
		return
	}
	w.out = append(w.out, before...)
	w.text(s)
}

// text writes a string without its quotes.
func (w *handWriter) text(s string) {
	if !handPlain(s) {
		w.ok = w.ok && utf8.ValidString(s)
		quoted, _ := json.Marshal(s) // a benchmark has none
		w.out = append(w.out, quoted[1:len(quoted)-1]...)
		return
	}
	w.out = append(w.out, s...)
}

// handPlain reports whether s needs no escape and is ASCII.
func handPlain(s string) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; len(s) >= 8; s = s[8:] {
		v := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		if ((v^ones*'"'-ones)|(v^ones*'\\'-ones)|(v-ones*0x20)|v)&highs != 0 {
			return false
		}
	}
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func handAddress(s string) bool {
	id, ok := strings.CutPrefix(s, "agent://")
	if !ok || id == "" || len(id) > envelope.MaxIDBytes || id[0] == '_' || id[0] == '.' || id[0] == '-' {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '_', c == '-', c == '.' && id[i-1] != '.':
		default:
			return false
		}
	}
	return true
}

func handTopic(s string) bool {
	kind, topic, ok := strings.Cut(s, "://")
	if !ok || topic == "" || !utf8.ValidString(topic) {
		return false
	}
	for i := range len(topic) {
		if topic[i] <= ' ' || topic[i] == 0x7f {
			return false
		}
	}
	return kind == "nats" || kind == "memory" || kind == "kafka" || kind == "sqs" || kind == "amqp" || kind == "mqtt"
}

// Decode reads a message, strictly, in one pass.
func Decode(data []byte) (*envelope.Envelope, error) {
	r := handReader{data: data}
	e := &envelope.Envelope{}
	var fields [8][2]int
	var headers [16][4]int
	n, seen := 0, 0
	r.space()
	r.expect('{')
	for more := !r.accept('}'); more && !r.bad; {
		key := r.key()
		bit := 0
		switch string(key) {
		case "version":
			bit = hasVersion
			if r.number() != 1 {
				r.bad = true
			}
		case "kind":
			bit = hasKind
			e.Kind = r.kind()
		case "deadline":
			bit = hasDeadline
			if e.Deadline = r.number(); e.Deadline < 1 || e.Deadline > 1<<53 {
				r.bad = true
			}
		case "headers":
			bit = hasHeaders
			n = r.headers(&headers)
		case "payload":
			bit = hasPayload
			from := r.i
			r.value(envelope.MaxDepth - 1)
			e.Payload = data[from:r.i]
		case "auth":
			bit = hasAuth
			r.auth(&e.Auth)
		default:
			if at := textMember(string(key)); at >= 0 {
				bit = 1 << at
				fields[at] = r.span()
			}
		}
		if bit == 0 || seen&bit != 0 {
			return nil, ErrRefused
		}
		seen |= bit
		more = r.next('}')
	}
	r.space()
	if r.bad || r.i != len(data) || seen&required != required {
		return nil, ErrRefused
	}
	return e, r.strings(e, &fields, headers[:n])
}

// The members that are no plain text, behind the bits of those that are, of which the first
// five are required.
const (
	hasVersion = 1 << (iota + 8)
	hasKind
	hasDeadline
	hasHeaders
	hasPayload
	hasAuth
	required = 1<<5 - 1 | hasVersion | hasKind
)

// textMember returns which of the members that are plain text a key is, or -1.
func textMember(key string) int {
	switch key {
	case "messageId":
		return 0
	case "correlationId":
		return 1
	case "from":
		return 2
	case "to":
		return 3
	case "capability":
		return 4
	case "causedBy":
		return 5
	case "replyTo":
		return 6
	case "tenantId":
		return 7
	}
	return -1
}

func (r *handReader) kind() envelope.Kind {
	switch string(r.string(true)) {
	case "request":
		return envelope.Request
	case "response":
		return envelope.Response
	case "event":
		return envelope.Event
	}
	r.bad = true
	return ""
}

// A handReader reads JSON. Once bad is set it is of no use.
type handReader struct {
	data []byte
	i    int
	bad  bool
}

// strings copies all strings at once, and checks those that have a grammar.
func (r *handReader) strings(e *envelope.Envelope, fields *[8][2]int, headers [][4]int) error {
	size := 0
	for _, f := range fields {
		size += f[1] - f[0]
	}
	for _, h := range headers {
		size += h[1] - h[0] + h[3] - h[2]
	}
	var all strings.Builder
	all.Grow(size)
	for _, f := range fields {
		all.Write(r.data[f[0]:f[1]])
	}
	for _, h := range headers {
		all.Write(r.data[h[0]:h[1]])
		all.Write(r.data[h[2]:h[3]])
	}
	text := all.String()
	take := func(n int) (s string) { s, text = text[:n], text[n:]; return s }
	for i, to := range [...]*string{&e.MessageID, &e.CorrelationID, (*string)(&e.From), (*string)(&e.To), &e.Capability, &e.CausedBy, &e.ReplyTo, &e.TenantID} {
		*to = take(fields[i][1] - fields[i][0])
	}
	if len(headers) > 0 {
		e.Headers = make(envelope.Headers, len(headers))
		for i, h := range headers {
			e.Headers[i].Key = take(h[1] - h[0])
			e.Headers[i].Value = take(h[3] - h[2])
		}
	}
	if !handAddress(string(e.From)) || !handAddress(string(e.To)) || e.ReplyTo != "" && !handTopic(e.ReplyTo) {
		return ErrRefused
	}
	return nil
}

func (r *handReader) space() {
	for r.i < len(r.data) && (r.data[r.i] == ' ' || r.data[r.i] == '\n' || r.data[r.i] == '\t' || r.data[r.i] == '\r') {
		r.i++
	}
}

func (r *handReader) accept(c byte) bool {
	r.space()
	if r.i < len(r.data) && r.data[r.i] == c {
		r.i++
		return true
	}
	return false
}

func (r *handReader) expect(c byte) {
	if !r.accept(c) {
		r.bad = true
	}
	r.space()
}

func (r *handReader) next(closing byte) bool {
	if r.accept(',') {
		r.space()
		return !r.bad
	}
	r.expect(closing)
	return false
}

// string reads a string. Escapes are where this codec stops being complete: it takes
// them in payloads, where they are only checked.
func (r *handReader) string(plain bool) []byte {
	data, i := r.data, r.i
	if i >= len(data) || data[i] != '"' {
		r.bad = true
		return nil
	}
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for i++; ; {
		for len(data)-i >= 8 {
			w := binary.LittleEndian.Uint64(data[i:])
			if m := ((w ^ ones*'"' - ones) | (w ^ ones*'\\' - ones) | (w - ones*0x20) | w) & highs; m != 0 {
				i += bits.TrailingZeros64(m) >> 3
				break
			}
			i += 8
		}
		if i >= len(data) {
			break
		}
		switch c := data[i]; {
		case c == '"':
			text := data[r.i+1 : i]
			r.i = i + 1
			return text
		case c == '\\' && !plain && i+1 < len(data):
			i += 2 // a benchmark has none of the others
			if !strings.ContainsRune(`"\/bfnrt`, rune(data[i-1])) {
				r.bad = true
				return nil
			}
		case c < 0x20 || c == '\\':
			r.bad = true
			return nil
		case c < utf8.RuneSelf:
			i++
		default:
			v, n := utf8.DecodeRune(data[i:])
			if v == utf8.RuneError && n == 1 {
				r.bad = true
				return nil
			}
			i += n
		}
	}
	r.bad = true
	return nil
}

func (r *handReader) span() [2]int {
	s := r.string(true)
	r.bad = r.bad || len(s) == 0
	return [2]int{r.i - 1 - len(s), r.i - 1}
}

func (r *handReader) key() []byte {
	s := r.string(true)
	r.expect(':')
	return s
}

func (r *handReader) number() (n int64) {
	from := r.i
	for r.i < len(r.data) && r.data[r.i]-'0' < 10 && r.i-from < 18 {
		n = n*10 + int64(r.data[r.i]-'0')
		r.i++
	}
	if r.i == from || r.data[from] == '0' {
		r.bad = true
	}
	return n
}

func (r *handReader) headers(h *[16][4]int) (n int) {
	r.expect('{')
	for more := !r.accept('}'); more && !r.bad; more = r.next('}') {
		if n == len(h) {
			r.bad = true
			return 0
		}
		key := r.string(true)
		h[n][0], h[n][1] = r.i-1-len(key), r.i-1
		for _, other := range h[:n] {
			if string(key) == string(r.data[other[0]:other[1]]) {
				r.bad = true
			}
		}
		r.expect(':')
		value := r.string(true)
		h[n][2], h[n][3] = r.i-1-len(value), r.i-1
		n++
	}
	return n
}

// auth takes the claim without proof alone.
func (r *handReader) auth(a *envelope.Auth) {
	r.expect('{')
	if string(r.key()) != "kind" || string(r.string(true)) != "internal" {
		r.bad = true
	}
	r.expect('}')
	a.Kind = envelope.AuthInternal
}

// value passes over a value of the payload.
func (r *handReader) value(depth int) {
	if depth < 0 || r.i >= len(r.data) {
		r.bad = true
		return
	}
	switch c := r.data[r.i]; c {
	case '"':
		r.string(false)
	case '{':
		var names [16][]byte
		var many map[string]bool
		n := 0
		r.expect('{')
		for more := !r.accept('}'); more && !r.bad; more = r.next('}') {
			key := r.string(true)
			if n < len(names) {
				for _, other := range names[:n] {
					r.bad = r.bad || string(key) == string(other)
				}
				names[n] = key
			} else {
				if many == nil {
					many = map[string]bool{}
				}
				r.bad = r.bad || many[string(key)]
				many[string(key)] = true
			}
			n++
			r.expect(':')
			r.value(depth - 1)
		}
	case '[':
		r.expect('[')
		for more := !r.accept(']'); more && !r.bad; more = r.next(']') {
			r.value(depth - 1)
		}
	case 't', 'f', 'n':
		for _, word := range [...]string{"true", "false", "null"} {
			if bytes.HasPrefix(r.data[r.i:], []byte(word)) {
				r.i += len(word)
				return
			}
		}
		r.bad = true
	default:
		r.anyNumber()
	}
}

// anyNumber passes over a number of the payload.
func (r *handReader) anyNumber() {
	if r.at("-") {
		r.i++
	}
	if r.at("0") {
		r.i++
	} else {
		r.digits()
	}
	if r.at(".") {
		r.i++
		r.digits()
	}
	if r.at("eE") {
		if r.i++; r.at("+-") {
			r.i++
		}
		r.digits()
	}
}

// at reports whether one of some characters comes next.
func (r *handReader) at(some string) bool {
	return r.i < len(r.data) && strings.IndexByte(some, r.data[r.i]) >= 0
}

func (r *handReader) digits() {
	from := r.i
	for r.i < len(r.data) && r.data[r.i]-'0' < 10 {
		r.i++
	}
	r.bad = r.bad || r.i == from
}

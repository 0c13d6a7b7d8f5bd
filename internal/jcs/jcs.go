package jcs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"
)

// MaxDepth is the deepest nesting of arrays and objects that [Append] accepts.
const MaxDepth = 512

// A SyntaxError says where the input stops being acceptable JSON. It never
// repeats any of the input, which may be confidential.
type SyntaxError struct {
	// Offset is the index of the offending byte in the input.
	Offset int
	// Msg is the rule that the input breaks, in words.
	Msg string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("invalid JSON at byte %d: %s", e.Offset, e.Msg)
}

// Append appends the canonical form of src to dst. The source is exactly one
// JSON value, with whitespace around it or not. The error is a [*SyntaxError],
// and dst then comes back as it was.
//
// Append is safe for concurrent use; dst and src must not overlap.
func Append(dst, src []byte) ([]byte, error) {
	w := writer{src: src, out: dst, members: make([]member, 0, 12)}
	if err := w.document(); err != nil {
		return dst, err
	}
	return w.out, nil
}

// Marshal is the canonical form of what [json.Marshal] makes of v.
// It fails where json.Marshal fails, or with a [*SyntaxError] where a
// [json.Marshaler] returned what is not I-JSON.
func Marshal(v any) ([]byte, error) {
	src, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return Append(make([]byte, 0, len(src)), src)
}

// writer copies src to out in one pass. Members are written in source order
// and put into place when their object ends.
type writer struct {
	src   []byte
	pos   int
	out   []byte
	depth int
	// members is a stack shared by all open objects.
	members []member
	// names backs the member names that src holds in escaped form, and is
	// scratch space for strings.
	names []byte
}

// member locates one object member: its unescaped name, and its canonical
// text (comma, name, colon, value) in writer.out.
type member struct {
	name               []byte
	textStart, textEnd int
	offset             int // of the name, in src
}

func (w *writer) fail(msg string) error { return w.failAt(w.pos, msg) }

func (w *writer) failAt(offset int, msg string) error {
	return &SyntaxError{Offset: offset, Msg: msg}
}

func (w *writer) document() error {
	if err := w.value(); err != nil {
		return err
	}
	if w.space(); w.pos < len(w.src) {
		return w.fail("more text after the value")
	}
	return nil
}

func (w *writer) space() {
	for w.pos < len(w.src) {
		switch w.src[w.pos] {
		case ' ', '\t', '\r', '\n':
			w.pos++
		default:
			return
		}
	}
}

// peek skips whitespace and returns the next byte, or 0 at the end. A literal
// NUL is no JSON token either, so the two need no telling apart.
func (w *writer) peek() byte {
	w.space()
	if w.pos == len(w.src) {
		return 0
	}
	return w.src[w.pos]
}

func (w *writer) value() error {
	switch c := w.peek(); {
	case c == '{':
		return w.object()
	case c == '[':
		return w.array()
	case c == '"':
		return w.string()
	case c == '-' || isDigit(c):
		return w.number()
	case c == 't':
		return w.literal("true")
	case c == 'f':
		return w.literal("false")
	case c == 'n':
		return w.literal("null")
	case w.pos == len(w.src):
		return w.fail("unexpected end")
	default:
		return w.fail("not the start of a value")
	}
}

// enter steps over an opening bracket.
func (w *writer) enter() error {
	if w.depth++; w.depth > MaxDepth {
		return w.fail(fmt.Sprintf("nested deeper than %d", MaxDepth))
	}
	w.pos++
	return nil
}

// leave steps over a closing bracket.
func (w *writer) leave() {
	w.pos++
	w.depth--
}

func (w *writer) literal(text string) error {
	if !bytes.HasPrefix(w.src[w.pos:], []byte(text)) {
		return w.fail("misspelt literal")
	}
	w.pos += len(text)
	w.out = append(w.out, text...)
	return nil
}

func (w *writer) array() error {
	if err := w.enter(); err != nil {
		return err
	}
	w.out = append(w.out, '[')
	for more := w.peek() != ']'; more; {
		if err := w.value(); err != nil {
			return err
		}
		switch w.peek() {
		case ',':
			w.pos++
			w.out = append(w.out, ',')
		case ']':
			more = false
		default:
			return w.fail("expected , or ] in an array")
		}
	}
	w.leave()
	w.out = append(w.out, ']')
	return nil
}

func (w *writer) object() error {
	if err := w.enter(); err != nil {
		return err
	}
	first, names, start := len(w.members), len(w.names), len(w.out)
	for more := w.peek() != '}'; more; {
		if err := w.member(); err != nil {
			return err
		}
		switch w.peek() {
		case ',':
			w.pos++
		case '}':
			more = false
		default:
			return w.fail("expected , or } in an object")
		}
	}
	w.leave()
	err := w.arrange(start, w.members[first:])
	w.members, w.names = w.members[:first], w.names[:names]
	return err
}

// member reads one member and appends `,"name":value`.
func (w *writer) member() error {
	if w.peek() != '"' {
		return w.fail("expected a member name")
	}
	m := member{textStart: len(w.out), offset: w.pos}
	w.out = append(w.out, ',')
	if end, ok := plainString(w.src, w.pos); ok {
		m.name = w.src[w.pos+1 : end-1]
		w.out = append(w.out, w.src[w.pos:end]...)
		w.pos = end
	} else {
		start := len(w.names)
		var err error
		if w.names, err = w.unquote(w.names); err != nil {
			return err
		}
		m.name = w.names[start:]
		w.out = appendString(w.out, m.name)
	}
	if w.peek() != ':' {
		return w.fail("expected : after a member name")
	}
	w.pos++
	w.out = append(w.out, ':')
	// The slot is taken before the value, whose own members go above it.
	slot := len(w.members)
	w.members = append(w.members, m)
	if err := w.value(); err != nil {
		return err
	}
	w.members[slot].textEnd = len(w.out)
	return nil
}

// arrange brings the members of the object that begins at out[start] into
// order. Each member's text starts with a comma; the first one becomes the
// opening brace.
func (w *writer) arrange(start int, members []member) error {
	if len(members) == 0 {
		w.out = append(w.out, '{', '}')
		return nil
	}
	compare := func(a, b member) int { return compareUTF16(a.name, b.name) }
	if !slices.IsSortedFunc(members, compare) {
		slices.SortStableFunc(members, compare)
		end := len(w.out)
		for _, m := range members {
			w.out = append(w.out, w.out[m.textStart:m.textEnd]...)
		}
		copy(w.out[start:], w.out[end:])
		w.out = w.out[:end]
	}
	for i := 1; i < len(members); i++ {
		if compare(members[i-1], members[i]) == 0 {
			return w.failAt(members[i].offset, "duplicate member name")
		}
	}
	w.out[start] = '{'
	w.out = append(w.out, '}')
	return nil
}

// compareUTF16 orders valid UTF-8 strings by their UTF-16 code units (RFC 8785
// section 3.2.3). That is the order of the bytes, except that characters
// beyond U+FFFF (lead byte F0 and up), being surrogate pairs, come before
// U+E000 to U+FFFF (lead bytes EE and EF).
func compareUTF16(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		x, y := a[i], b[i]
		if x == y {
			continue
		}
		if x >= 0xEE && y >= 0xEE && (x >= 0xF0) != (y >= 0xF0) {
			x, y = y, x
		}
		return int(x) - int(y)
	}
	return len(a) - len(b)
}

func (w *writer) string() error {
	// The text is usually in canonical form already: copied in one go.
	if end, ok := plainString(w.src, w.pos); ok {
		w.out = append(w.out, w.src[w.pos:end]...)
		w.pos = end
		return nil
	}
	start := len(w.names)
	var err error
	if w.names, err = w.unquote(w.names); err != nil {
		return err
	}
	w.out = appendString(w.out, w.names[start:])
	w.names = w.names[:start]
	return nil
}

// plainString reports the end of a string that holds printable ASCII only and
// no escape.
func plainString(src []byte, start int) (end int, ok bool) {
	for i := start + 1; i < len(src); i++ {
		switch c := src[i]; {
		case c == '"':
			return i + 1, true
		case c < 0x20 || c >= utf8.RuneSelf || c == '\\':
			return 0, false
		}
	}
	return 0, false
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

package jcs

import (
	"encoding/json"
	"slices"

	"github.com/agentd/agentd/internal/ijson"
)

// MaxDepth is the deepest nesting of arrays and objects that [Append] accepts.
const MaxDepth = ijson.DefaultMaxDepth

// Append appends the canonical form of src to dst. The source is exactly one
// JSON value, with white space around it or not. The error is an
// [*ijson.SyntaxError], and dst then comes back as it was.
//
// Append is safe for concurrent use; dst and src must not overlap.
func Append(dst, src []byte) ([]byte, error) {
	var a Appender
	return a.Append(dst, src)
}

// An Appender does what [Append] does, again and again in the same memory. The zero value is
// ready. It serves one goroutine.
type Appender struct {
	w   writer
	top []Member
}

// Append is the function [Append].
func (a *Appender) Append(dst, src []byte) ([]byte, error) {
	a.top = a.top[:0]
	if len(src) > 0 && a.usualEnd(src, 0, usualDepth) == len(src) {
		return append(dst, src...), nil
	}
	a.top = a.top[:0]
	return a.rewrite(dst, src)
}

// A Member is a member of an object, by offsets in the object's text: of its quoted name, and
// of its value and what follows.
type Member struct{ Name, Value, End int }

// Members returns the members of the object that was appended last, if they are known: there
// is none if it was brought into canonical form, and had it not already. They are valid until
// the next Append.
func (a *Appender) Members() []Member { return a.top }

// rewrite is Append for any form of src.
func (a *Appender) rewrite(dst, src []byte) ([]byte, error) {
	w := &a.w
	w.src, w.out, w.members, w.names = src, dst, w.members[:0], w.names[:0]
	if w.members == nil {
		w.members = make([]member, 0, 12)
	}
	defer func() { w.src, w.out = nil, nil }() // which are the caller's
	end, err := w.value(ijson.SkipSpace(src, 0), MaxDepth)
	if err == nil {
		err = ijson.End(src, end)
	}
	if err != nil {
		return dst, err
	}
	return w.out, nil
}

// Marshal is the canonical form of what [json.Marshal] makes of v.
// It fails where json.Marshal fails, or with an [*ijson.SyntaxError] where a
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
//
// Its methods read the value at an offset of src where no white space stands,
// and return the offset after it, as the functions of package ijson do. depth
// is the number of containers that may still open.
type writer struct {
	src []byte
	out []byte
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

func (w *writer) value(i, depth int) (end int, err error) {
	var c byte
	if i < len(w.src) {
		c = w.src[i]
	}
	switch c {
	case '{':
		return w.object(i, depth-1)
	case '[':
		return w.array(i, depth-1)
	case '"':
		return w.string(i)
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return w.number(i)
	}
	if end, err = ijson.ScanLiteral(w.src, i); err == nil {
		w.out = append(w.out, w.src[i:end]...)
	}
	return end, err
}

func (w *writer) string(i int) (end int, err error) {
	end, escaped, err := ijson.ScanString(w.src, i)
	switch {
	case err != nil:
	case escaped:
		start := len(w.names)
		w.names = ijson.AppendUnquoted(w.names, w.src[i+1:end-1])
		w.out = ijson.AppendQuoted(w.out, string(w.names[start:]))
		w.names = w.names[:start]
	default: // already canonical: only what must be escaped ever is
		w.out = append(w.out, w.src[i:end]...)
	}
	return end, err
}

func (w *writer) array(i, depth int) (end int, err error) {
	if depth < 0 {
		return 0, ijson.TooDeep(i)
	}
	w.out = append(w.out, '[')
	i, empty := ijson.Enter(w.src, i)
	for more := !empty; more; {
		if end, err = w.value(i, depth); err != nil {
			return 0, err
		}
		if i, more, err = ijson.Next(w.src, end, ']'); err != nil {
			return 0, err
		}
		if more {
			w.out = append(w.out, ',')
		}
	}
	w.out = append(w.out, ']')
	return i, nil
}

func (w *writer) object(i, depth int) (end int, err error) {
	if depth < 0 {
		return 0, ijson.TooDeep(i)
	}
	first, names, start := len(w.members), len(w.names), len(w.out)
	i, empty := ijson.Enter(w.src, i)
	for more := !empty; more; {
		if end, err = w.member(i, depth); err != nil {
			return 0, err
		}
		if i, more, err = ijson.Next(w.src, end, '}'); err != nil {
			return 0, err
		}
	}
	err = w.arrange(start, w.members[first:])
	w.members, w.names = w.members[:first], w.names[:names]
	return i, err
}

// member reads one member and appends `,"name":value`.
func (w *writer) member(i, depth int) (end int, err error) {
	nameEnd, escaped, value, err := ijson.ScanName(w.src, i)
	if err != nil {
		return 0, err
	}
	m := member{name: w.src[i+1 : nameEnd-1], textStart: len(w.out), offset: i}
	w.out = append(w.out, ',')
	if escaped {
		start := len(w.names)
		w.names = ijson.AppendUnquoted(w.names, m.name)
		m.name = w.names[start:]
		w.out = ijson.AppendQuoted(w.out, string(m.name))
	} else {
		w.out = append(w.out, w.src[i:nameEnd]...)
	}
	w.out = append(w.out, ':')
	// The member takes its place on the stack before its value is read, whose
	// own members go above it. Until then its textEnd is not known.
	slot := len(w.members)
	w.members = append(w.members, m)
	if end, err = w.value(value, depth); err != nil {
		return 0, err
	}
	w.members[slot].textEnd = len(w.out)
	return end, nil
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
		// A stable sort keeps repeated names in source order, so that the error
		// below points to the repetition and not to the first of them.
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
			return ijson.Duplicate(members[i].offset)
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

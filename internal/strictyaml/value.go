package strictyaml

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentd/agentd/internal/spelling"
)

// A Value is one value of a file, or the absence of one. Its accessors record
// a fault when the value is of another type, and return the zero value then;
// on an absent value they return the zero value and record nothing.
type Value struct {
	file    *File
	node    *node
	pointer string
	// line and column are where faults about the value point: its key if it is
	// a member of a mapping, itself otherwise.
	line, column int
	key          *Key // nil unless the file is traced
}

// Kind returns the value's type, or [Absent] if it is not in the file.
func (v Value) Kind() Kind {
	if v.node == nil {
		return Absent
	}
	return v.node.kind
}

// Present reports whether the value is in the file (null is).
func (v Value) Present() bool { return v.node != nil }

// Position returns the place of the value: that of its key if it has one.
func (v Value) Position() Position {
	return Position{File: v.file.name, Line: v.line, Column: v.column, Pointer: v.pointer}
}

// Fault records a fault at the value. hint may be empty.
func (v Value) Fault(message, hint string) {
	v.file.faults.add(v.Position(), message, hint)
}

// own returns the position of the value itself, after its key.
func (v Value) own() Position {
	p := v.Position()
	if v.node != nil {
		p.Line, p.Column = v.node.line, v.node.column
	}
	return p
}

// is reports whether the value is of kind k, and records a fault if it is
// present and of another kind.
func (v Value) is(k Kind) bool {
	v.key.read(k)
	if v.node == nil {
		return false
	}
	if v.node.kind == k {
		return true
	}
	hint := "" // a version such as 1.10 is the usual victim of this
	if k == String && (v.node.kind == Number || v.node.kind == Bool) {
		hint = "quote the value"
	}
	v.file.faults.add(v.own(), fmt.Sprintf("expected %s but got %s", k, v.node.kind), hint)
	return false
}

// String returns the content of a string, which may be empty.
func (v Value) String() string {
	v.key.readString(false)
	if !v.is(String) {
		return ""
	}
	return v.node.text
}

// Text returns the content of a string that must not be empty.
func (v Value) Text() string {
	v.key.readString(true)
	if !v.is(String) {
		return ""
	}
	if v.node.text == "" {
		v.file.faults.add(v.own(), "the string must not be empty", "")
	}
	return v.node.text
}

// Bool returns a boolean.
func (v Value) Bool() bool { return v.is(Bool) && v.node.text == "true" }

// Enum returns a string of a closed set.
func (v Value) Enum(allowed ...string) string {
	v.key.readEnum(allowed)
	if !v.is(String) {
		return ""
	}
	if !slices.Contains(allowed, v.node.text) {
		v.file.faults.add(v.own(), fmt.Sprintf("expected one of %s", strings.Join(allowed, ", ")), spelling.DidYouMean(v.node.text, allowed))
		return ""
	}
	return v.node.text
}

// Int returns a whole number from low to high. 60000.0 and 6e4 are whole.
func (v Value) Int(low, high int64) int64 {
	v.key.readNumber(float64(low), float64(high), true)
	if !v.is(Number) {
		return 0
	}
	n, ok := wholeNumber(v.node.text)
	switch {
	case !ok:
		v.file.faults.add(v.own(), "expected a whole number", "")
		return 0
	case n < low || n > high:
		v.file.faults.add(v.own(), fmt.Sprintf("expected a whole number %s", bounds(low, high)), "")
		return 0
	}
	return n
}

// bounds describes a range.
func bounds(low, high int64) string {
	if high == math.MaxInt64 {
		return fmt.Sprintf("of %d or more", low)
	}
	return fmt.Sprintf("from %d to %d", low, high)
}

// wholeNumber reads a JSON number without a fractional part, however it is
// written. Beyond 2^53 it accepts plain digits only, because a float64 is not
// exact there.
func wholeNumber(token string) (n int64, ok bool) {
	if n, err := strconv.ParseInt(token, 10, 64); err == nil {
		return n, true
	}
	// 6e4 and 60000.0 do not parse as integers but are whole.
	f, err := strconv.ParseFloat(token, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// Float returns a number from low to high.
func (v Value) Float(low, high float64) float64 {
	v.key.readNumber(low, high, false)
	if !v.is(Number) {
		return 0
	}
	f, err := strconv.ParseFloat(v.node.text, 64)
	// The error is for a number out of the range of float64.
	if err != nil || f < low || f > high {
		v.file.faults.add(v.own(), fmt.Sprintf("expected a number from %v to %v", low, high), "")
		return 0
	}
	return f
}

// Millis returns a duration written as a whole number of milliseconds, at least 1.
// limit is the longest that is allowed.
func (v Value) Millis(limit time.Duration) time.Duration {
	return time.Duration(v.Int(1, limit.Milliseconds())) * time.Millisecond
}

// List returns the items of a list.
func (v Value) List() []Value {
	if !v.is(List) {
		return nil
	}
	out := make([]Value, len(v.node.items))
	for i, n := range v.node.items {
		out[i] = Value{file: v.file, node: n, pointer: join(v.pointer, strconv.Itoa(i)), line: n.line, column: n.column, key: v.key.item()}
	}
	return out
}

// Texts returns a list of strings, none of them empty.
func (v Value) Texts() []string {
	items := v.List()
	if items == nil {
		return nil
	}
	out := make([]string, 0, len(items))
	for _, item := range items {
		out = append(out, item.Text())
	}
	return out
}

// AtLeastOne records a fault if the value is an empty list.
func (v Value) AtLeastOne(what string) Value {
	if v.key != nil {
		v.key.AtLeastOne = true
	}
	if v.node != nil && v.node.kind == List && len(v.node.items) == 0 {
		v.file.faults.add(v.own(), "expected at least one "+what, "")
	}
	return v
}

// An Entry is one member of a mapping with names of the user's choice.
type Entry struct {
	Name  string
	Value Value
}

// Entries returns the members of a mapping, in declared order.
func (v Value) Entries() []Entry {
	if !v.is(Map) {
		return nil
	}
	out := make([]Entry, len(v.node.items))
	for i := range v.node.items {
		out[i] = Entry{Name: v.node.keys[i].name, Value: v.memberAt(i)}
		out[i].Value.key = v.key.entry()
	}
	return out
}

// StringMap returns a mapping from names to strings, which may be empty.
func (v Value) StringMap() map[string]string {
	entries := v.Entries()
	if entries == nil {
		return nil
	}
	out := make(map[string]string, len(entries))
	for _, e := range entries {
		out[e.Name] = e.Value.String()
	}
	return out
}

// memberAt returns the i-th member of a mapping. Faults about it point to its
// key, because its value may begin lines below.
func (v Value) memberAt(i int) Value {
	k := v.node.keys[i]
	return Value{file: v.file, node: v.node.items[i], pointer: join(v.pointer, k.name), line: k.line, column: k.column}
}

// Locate returns the place that a JSON pointer relative to the value leads to,
// or that of the deepest value on the way if the rest does not exist.
// The result's Pointer is the whole pointer, from the root of the file. [Places] answer the same.
func (v Value) Locate(pointer string) Position {
	at := v
	// Each token follows a slash; a slash inside a token is written ~1.
	for rest, more := strings.CutPrefix(pointer, "/"); more && at.node != nil; {
		var token string
		token, rest, more = strings.Cut(rest, "/")
		next := at.child(unescape(token))
		if next.node == nil {
			break
		}
		at = next
	}
	p := at.Position()
	p.Pointer = v.pointer + pointer
	return p
}

// child returns the value one pointer token below v, or an absent one.
func (v Value) child(name string) Value {
	switch v.node.kind {
	case Map:
		for i, k := range v.node.keys {
			if k.name == name {
				return v.memberAt(i)
			}
		}
	case List:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(v.node.items) {
			n := v.node.items[i]
			return Value{file: v.file, node: n, pointer: join(v.pointer, name), line: n.line, column: n.column}
		}
	}
	return Value{}
}

// FaultBelow records a fault at the place that a pointer relative to the value
// leads to, see [Value.Locate].
func (v Value) FaultBelow(pointer, message, hint string) {
	if v.file.faults.full() {
		v.file.faults.omitted++ // without looking for the place
		return
	}
	v.file.faults.add(v.Locate(pointer), message, hint)
}

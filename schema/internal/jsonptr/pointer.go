package jsonptr

import (
	"strconv"
	"strings"
)

// Escape writes a member name as a segment of a pointer.
func Escape(name string) string {
	if !strings.ContainsAny(name, "~/") {
		return name
	}
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// Unescape is the inverse of Escape. ~1 goes first, so that ~01 becomes ~1, as RFC 6901
// asks in section 4. A schema can have references by the ten thousand, hardly any of which
// has escapes: these cost nothing.
func Unescape(segment string) string {
	return strings.ReplaceAll(strings.ReplaceAll(segment, "~1", "/"), "~0", "~")
}

// Child extends a pointer by a member name.
func Child(pointer, name string) string { return pointer + "/" + Escape(name) }

// Element extends a pointer by an index.
func Element(pointer string, i int) string { return pointer + "/" + strconv.Itoa(i) }

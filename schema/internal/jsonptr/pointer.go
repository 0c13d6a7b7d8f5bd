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
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// Child extends a pointer by a member name.
func Child(pointer, name string) string { return pointer + "/" + Escape(name) }

// Element extends a pointer by an index.
func Element(pointer string, i int) string { return pointer + "/" + strconv.Itoa(i) }

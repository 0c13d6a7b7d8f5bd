package schema

import (
	"strconv"
	"strings"
)

// CompileError is what [Compile] returns for a schema that it refuses. It
// lists every fault in the order of the source, references that lead nowhere
// or in circles last.
type CompileError struct {
	Faults []Fault // never empty
}

// Fault is one reason to refuse a schema.
type Fault struct {
	// Pointer is where the fault stands, as an RFC 6901 pointer into the
	// schema: the keyword's value, or its name where that is the fault. ""
	// is the root.
	Pointer string
	// Message says what is wrong.
	Message string
	// Hint says what to do about it, and may be empty.
	Hint string
}

// Error lists the faults, one on a line.
func (e *CompileError) Error() string {
	var b strings.Builder
	b.WriteString("invalid schema: ")
	for i, f := range e.Faults {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(f.String())
	}
	return b.String()
}

// String returns `at /pointer: message (hint)`.
func (f Fault) String() string {
	at := "at the root: "
	if f.Pointer != "" {
		at = "at " + f.Pointer + ": "
	}
	if f.Hint == "" {
		return at + f.Message
	}
	return at + f.Message + " (" + f.Hint + ")"
}

// escapeSegment writes a member name as a segment of a pointer.
func escapeSegment(name string) string {
	if !strings.ContainsAny(name, "~/") {
		return name
	}
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// child extends a pointer by a member name.
func child(pointer, name string) string { return pointer + "/" + escapeSegment(name) }

// element extends a pointer by an index.
func element(pointer string, i int) string { return pointer + "/" + strconv.Itoa(i) }

// nearest returns the word closest to name, or "" when none is close.
func nearest(name string, words []string) string {
	best, least := "", 3
	if len(name) <= 4 {
		least = 2
	}
	for _, w := range words {
		if strings.EqualFold(w, name) {
			return w
		}
		if d := distance(name, w, least); d < least {
			best, least = w, d
		}
	}
	return best
}

// distance is the number of edits (insert, delete, replace, swap neighbours)
// from a to b, or limit when it is not below that.
func distance(a, b string, limit int) int {
	if abs(len(a)-len(b)) >= limit {
		return limit
	}
	before := make([]int, len(b)+1)
	last := make([]int, len(b)+1)
	row := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return min(last[len(b)], limit)
}

// abs returns the absolute value.
func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}

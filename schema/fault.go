package schema

import "strings"

// CompileError is what [Compile] returns for a schema that it refuses. It
// lists every fault in the order of the source, up to a thousand; references that lead
// nowhere or in circles come last, because they are resolved once everything is read.
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

package strictyaml

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxFaults bounds the faults that one file reports. The rest are only counted:
// a hostile file could otherwise make an error of any size.
const maxFaults = 200

// A Position is a place in a configuration file.
type Position struct {
	// File is the name the file was read under.
	File string `json:"file"`
	// Line and Column count from 1; Column counts code points. Both are 0 when
	// the fault concerns the file as a whole.
	Line   int `json:"line"`
	Column int `json:"column"`
	// Pointer is the JSON pointer of the value, "" for the root.
	Pointer string `json:"pointer"`
}

// Fault is a fault at this place.
func (p Position) Fault(message, hint string) Fault {
	return Fault{Position: p, Message: message, Hint: hint}
}

// A Fault is one thing wrong with a file.
type Fault struct {
	Position
	// Message is what is wrong. It never shows a value that could be a secret.
	Message string `json:"message"`
	// Hint is what to do about it; it may be empty.
	Hint string `json:"hint,omitempty"`
}

// String returns `file:line:column: /pointer: message (hint)`, without the parts
// that are empty.
func (f Fault) String() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", f.Line, f.Column)
	}
	b.WriteString(": ")
	if f.Pointer != "" {
		b.WriteString(f.Pointer)
		b.WriteString(": ")
	}
	b.WriteString(f.Message)
	if f.Hint != "" {
		fmt.Fprintf(&b, " (%s)", f.Hint)
	}
	return b.String()
}

// An Error is every fault of a load.
type Error struct {
	// Faults is never empty. Faults of one file stand together, by position.
	Faults []Fault
	// Omitted counts the faults that were not kept because there were too many.
	Omitted int
}

// Error returns one line per fault.
func (e *Error) Error() string {
	lines := make([]string, 0, len(e.Faults)+1)
	for _, f := range e.Faults {
		lines = append(lines, f.String())
	}
	if e.Omitted > 0 {
		lines = append(lines, fmt.Sprintf("and %d more faults", e.Omitted))
	}
	return strings.Join(lines, "\n")
}

// Join merges errors: the result holds the faults of every [*Error] among errs,
// file by file in the order in which files first appear. An error of another
// type is kept as it is, joined to the rest. Nil errors are skipped, and
// without any error Join returns nil.
func Join(errs ...error) error {
	var all Error
	var others []error
	for _, err := range errs {
		var e *Error
		switch {
		case err == nil:
		case errors.As(err, &e):
			all.Faults = append(all.Faults, e.Faults...)
			all.Omitted += e.Omitted
		default:
			others = append(others, err)
		}
	}
	if len(all.Faults) > 0 {
		sortFaults(all.Faults)
		others = append([]error{&all}, others...)
	}
	if len(others) == 1 {
		return others[0]
	}
	return errors.Join(others...)
}

// sortFaults orders faults by file (first seen first), then by position.
func sortFaults(faults []Fault) {
	// By first appearance, not by name: callers load files in an order that makes
	// sense to readers.
	rank := make(map[string]int)
	for _, f := range faults {
		if _, ok := rank[f.File]; !ok {
			rank[f.File] = len(rank)
		}
	}
	slices.SortStableFunc(faults, func(a, b Fault) int {
		return cmp.Or(
			cmp.Compare(rank[a.File], rank[b.File]),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column),
		)
	})
}

// faults collects the faults of one file.
type faults struct {
	list    []Fault
	omitted int
}

// full reports that another fault would only be counted.
func (f *faults) full() bool { return len(f.list) >= maxFaults }

// add keeps a fault, or only counts it once there are too many.
func (f *faults) add(p Position, message, hint string) {
	if f.full() {
		f.omitted++
		return
	}
	f.list = append(f.list, p.Fault(message, hint))
}

// err returns the faults so far, in the order of their places, or nil.
func (f *faults) err() error {
	if len(f.list) == 0 {
		return nil
	}
	// A copy: Err may be called while faults are still being found.
	list := slices.Clone(f.list)
	sortFaults(list)
	return &Error{Faults: list, Omitted: f.omitted}
}

package source

import (
	"fmt"
	"strings"
)

// A Writer collects a source file.
type Writer struct{ strings.Builder }

// Line writes one line, formatted as [fmt.Fprintf] does.
func (w *Writer) Line(format string, args ...any) {
	fmt.Fprintf(w, format+"\n", args...)
}

// Comment writes the lines of a description, each behind prefix.
func (w *Writer) Comment(prefix, doc string) {
	for _, line := range CommentLines(doc) {
		w.Line("%s", prefix+line)
	}
}

package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
)

// A Format is the value of the flag -o.
type Format string

// The formats.
const (
	// Table is text for people; it may change from version to version.
	Table Format = "table"
	// JSON is one indented value.
	JSON Format = "json"
	// JSONL is one value per line, for pipes.
	JSONL Format = "jsonl"
)

// Set implements the flag value interface of spf13/pflag.
func (f *Format) Set(s string) error {
	switch Format(s) {
	case Table, JSON, JSONL:
		*f = Format(s)
		return nil
	}
	return fmt.Errorf("must be table, json or jsonl")
}

func (f *Format) String() string { return string(*f) }

// Type implements the flag value interface: it names the type in help texts.
func (f *Format) Type() string { return "format" }

// WriteJSON writes v as JSON, indented unless f is JSONL. It does not escape text
// for HTML, but for terminals: what would be unprintable stands there as \uXXXX,
// which is the same text to a program.
func WriteJSON(w io.Writer, f Format, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if f != JSONL {
		enc.SetIndent("", "  ")
	}
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(printableJSON(b.Bytes()))
	return err
}

// WriteJSONBytes writes a JSON text like [WriteJSON]. It keeps the order of members
// and the spelling of numbers, which decoding the text would lose.
func WriteJSONBytes(w io.Writer, f Format, data []byte) error {
	var b bytes.Buffer
	var err error
	if f == JSONL {
		err = json.Compact(&b, data)
	} else {
		err = json.Indent(&b, bytes.TrimSpace(data), "", "  ")
	}
	if err != nil {
		return err
	}
	b.WriteByte('\n')
	_, err = w.Write(printableJSON(b.Bytes()))
	return err
}

// WriteTable writes rows in aligned columns under a header. It escapes control
// characters with [Printable]: a cell may hold text from another machine.
func WriteTable(w io.Writer, header []string, rows [][]string) error {
	var b bytes.Buffer
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{header}, rows...) {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = Printable(cell)
		}
		fmt.Fprintln(tw, strings.Join(cells, "\t"))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// Colors styles text for terminals. The zero value leaves text alone.
type Colors struct{ On bool }

// ColorsFor returns the styles for w by the conventions of no-color.org: colours
// are for terminals, unless NO_COLOR is set.
func ColorsFor(w io.Writer, getenv func(string) string) Colors {
	file, ok := w.(*os.File)
	if !ok || getenv("NO_COLOR") != "" || getenv("TERM") == "dumb" {
		return Colors{}
	}
	info, err := file.Stat()
	return Colors{On: err == nil && info.Mode()&os.ModeCharDevice != 0}
}

func (c Colors) style(code, s string) string {
	if !c.On {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// Bold styles headings.
func (c Colors) Bold(s string) string { return c.style("1", s) }

// Dim styles what a reader may skip.
func (c Colors) Dim(s string) string { return c.style("2", s) }

// Good styles success.
func (c Colors) Good(s string) string { return c.style("32", s) }

// Bad styles failure.
func (c Colors) Bad(s string) string { return c.style("31", s) }

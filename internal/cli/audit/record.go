package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
)

// A recordWriter writes records to standard output in the chosen format. It
// streams JSON, so that a query over a whole log needs no memory for it; a table
// has to wait for its last row before it knows the widths of its columns.
type recordWriter struct {
	env   *cli.Env
	out   *bufio.Writer
	rows  [][]string // of a table
	empty bool
}

func newRecordWriter(env *cli.Env) *recordWriter {
	return &recordWriter{env: env, out: bufio.NewWriter(env.Stdout), empty: true}
}

func (w *recordWriter) write(r *record) error {
	first := w.empty
	w.empty = false
	if w.env.Format == output.Table {
		w.rows = append(w.rows, r.row())
		return nil
	}
	data, err := r.json()
	if err != nil {
		return err
	}
	if w.env.Format == output.JSONL {
		return output.WriteJSONBytes(w.out, output.JSONL, data)
	}
	// The array is written element by element, in the same layout that
	// output.WriteJSON gives a whole one.
	separator := ",\n  "
	if first {
		separator = "[\n  "
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, data, "  ", "  "); err != nil {
		return err
	}
	if _, err := w.out.WriteString(separator); err != nil {
		return err
	}
	_, err = w.out.Write(indented.Bytes())
	return err
}

// close completes the output: it writes the table, or ends the JSON array.
func (w *recordWriter) close() error {
	switch {
	case w.env.Format == output.Table && w.empty:
		fmt.Fprintln(w.env.Stderr, "no audit records match the query.")
	case w.env.Format == output.Table:
		if err := output.WriteTable(w.out, recordHeader(), w.rows); err != nil {
			return err
		}
	case w.env.Format == output.JSON && w.empty:
		fmt.Fprintln(w.out, "[]")
	case w.env.Format == output.JSON:
		fmt.Fprintln(w.out, "\n]")
	}
	return w.out.Flush() // also returns the error of any earlier write
}

// json returns the record as its kind defines it, with the members agent, seq
// and hash in front. It splices the two objects: decoding and encoding the
// record would lose its order of members and the precision of its numbers.
func (r *record) json() ([]byte, error) {
	entry, err := json.Marshal(&r.Entry)
	if err != nil {
		return nil, err
	}
	front, err := json.Marshal(struct {
		Agent string `json:"agent"`
		Seq   int64  `json:"seq"`
		Hash  string `json:"hash"`
	}{r.agent, r.Seq, fmt.Sprintf("%x", r.Hash[:])})
	if err != nil {
		return nil, err
	}
	// Drop the closing brace of the first object and the opening brace of the
	// second. Neither object is ever empty.
	return append(append(front[:len(front)-1], ','), entry[1:]...), nil
}

func recordHeader() []string {
	return []string{"AGENT", "SEQ", "TIME", "KIND", "PEER", "CAPABILITY", "SIDE", "DETAIL"}
}

// row returns the cells below [recordHeader].
func (r *record) row() []string {
	return []string{
		r.agent, strconv.FormatInt(r.Seq, 10), r.Time.UTC().Format("2006-01-02T15:04:05.000Z"),
		string(r.Kind), r.Peer, r.Capability, string(r.Side), r.detail(),
	}
}

// detail summarises the record's body in one cell.
func (r *record) detail() string {
	if r.Erased() {
		return fmt.Sprintf("erased by record %d", r.ErasedBy)
	}
	return r.sentence()
}

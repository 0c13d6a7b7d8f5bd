package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/internal/output"
)

// A recordWriter writes records in the format that -o chose. JSON is written as
// it comes, however long; a table is aligned, and so kept until the end.
type recordWriter struct {
	app  *app
	out  *bufio.Writer
	rows [][]string // of a table
	some bool       // a record was written
}

func (a *app) recordWriter() *recordWriter {
	return &recordWriter{app: a, out: bufio.NewWriter(a.stdout)}
}

func (w *recordWriter) write(r *foundRecord) error {
	first := !w.some
	w.some = true
	if w.app.output == output.Table {
		w.rows = append(w.rows, recordRow(r))
		return nil
	}
	data, err := r.json()
	if err != nil {
		return err
	}
	if w.app.output == output.JSONL {
		return output.WriteJSONBytes(w.out, output.JSONL, data)
	}
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

// end writes what is still to be written.
func (w *recordWriter) end() error {
	switch {
	case w.app.output == output.Table && !w.some:
		fmt.Fprintln(w.app.stderr, "no audit records match the query.")
	case w.app.output == output.Table:
		if err := output.WriteTable(w.out, recordHeader(), w.rows); err != nil {
			return err
		}
	case w.app.output == output.JSON && w.some:
		fmt.Fprintln(w.out, "\n]")
	case w.app.output == output.JSON:
		fmt.Fprintln(w.out, "[]")
	}
	return w.out.Flush() // has the error of any write before
}

// json is the record in the shape of its kind, with agent, seq and hash in front.
func (r *foundRecord) json() ([]byte, error) {
	record, err := json.Marshal(&r.Entry)
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
	return append(append(front[:len(front)-1], ','), record[1:]...), nil
}

func recordHeader() []string {
	return []string{"AGENT", "SEQ", "TIME", "KIND", "PEER", "CAPABILITY", "SIDE", "DETAIL"}
}

func recordRows(found []foundRecord) [][]string {
	rows := make([][]string, len(found))
	for i := range found {
		rows[i] = recordRow(&found[i])
	}
	return rows
}

func recordRow(r *foundRecord) []string {
	return []string{
		r.agent, strconv.FormatInt(r.Seq, 10), r.Time.UTC().Format("2006-01-02T15:04:05.000Z"),
		string(r.Kind), r.Peer, r.Capability, string(r.Side), detail(&r.Entry),
	}
}

// detail is what a table shows of a record's body.
func detail(e *auditchain.Entry) string {
	if e.Erased() {
		return fmt.Sprintf("erased by record %d", e.ErasedBy)
	}
	if v, err := e.SchemaViolation(); err == nil {
		parts := make([]string, len(v.Violations))
		for i, violation := range v.Violations {
			parts[i] = strings.TrimSpace(violation.Path + " " + violation.Message)
		}
		return strings.Join(parts, "; ")
	}
	return string(e.Body)
}

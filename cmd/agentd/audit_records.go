package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/internal/output"
)

func (a *app) writeRecords(found []foundRecord) error {
	switch a.output {
	case output.JSONL:
		for i := range found {
			if err := a.writeRecordLine(&found[i]); err != nil {
				return err
			}
		}
		return nil
	case output.JSON:
		var all bytes.Buffer
		all.WriteByte('[')
		for i := range found {
			data, err := found[i].json()
			if err != nil {
				return err
			}
			if i > 0 {
				all.WriteByte(',')
			}
			all.Write(data)
		}
		all.WriteByte(']')
		return output.WriteJSONBytes(a.stdout, a.output, all.Bytes())
	}
	if len(found) == 0 {
		fmt.Fprintln(a.stderr, "no audit records match the query.")
		return nil
	}
	return output.WriteTable(a.stdout, recordHeader(), recordRows(found))
}

// writeRecordLine writes a record as one line of JSON.
func (a *app) writeRecordLine(r *foundRecord) error {
	data, err := r.json()
	if err != nil {
		return err
	}
	return output.WriteJSONBytes(a.stdout, output.JSONL, data)
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

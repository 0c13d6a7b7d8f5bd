package store

import (
	"path/filepath"
	"testing"

	"github.com/agentd/agentd/auditchain/internal/record"
)

// What rows say is not kept beyond their insert, neither in whole statements nor in single rows.
func TestInserterKeepsNoTexts(t *testing.T) {
	t.Parallel()
	w, err := OpenWriter(t.Context(), filepath.Join(t.TempDir(), "audit.db"), SQLite)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	if err := w.Create(t.Context(), Identity{Origin: "log.example/1", FirstKey: "key"}); err != nil {
		t.Fatal(err)
	}
	if err := w.Load(t.Context(), SchemaVersion); err != nil {
		t.Fatal(err)
	}
	rows := make([]Row, 2*rowsPerInsert+1)
	for i := range rows {
		p := &record.Prepared{}
		if err := p.Prepare(&record.Record{Kind: record.KindRPCCall, Body: []byte(`{"correlationId":"c-1","peerId":"agent://a"}`)}); err != nil {
			t.Fatal(err)
		}
		p.Header.Seq = int64(i + 1)
		rows[i] = Row{Prepared: p}
	}
	if err := w.Begin(); err != nil {
		t.Fatal(err)
	}
	if err := w.InsertRecords(rows...); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	for i, arg := range w.insert.args {
		if text, ok := arg.(string); ok {
			t.Errorf("argument %d is still %q", i, text)
		}
	}
	if w.insert.last != ([rowColumns]column{}) {
		t.Errorf("columns are still %v", w.insert.last)
	}
}

package store

import (
	"errors"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
)

// Packs that are unpacked beside the consumer come in their order, also between rows, with one
// that cannot be read and one that is larger than the log makes them; and a consumer may stop at
// any record.
func TestReadAhead(t *testing.T) {
	t.Parallel()
	w := emptyLog(t)
	if err := w.Begin(); err != nil {
		t.Fatal(err)
	}
	rows := packedRows(t, 9*maxPacked)
	rows[5*maxPacked].Packable = false
	if err := w.InsertRecords(rows...); err != nil {
		t.Fatal(err)
	}
	const large = maxPacked + 44
	big := packedRows(t, large)
	for i := range big {
		big[i].Header.Seq += int64(len(rows))
	}
	if err := w.packer.insert(big); err != nil {
		t.Fatal(err)
	}
	if err := w.Exec(`UPDATE packs SET bodies = '[]' WHERE first = ?`, 2*maxPacked+1); err != nil {
		t.Fatal(err)
	}
	rows = append(rows, big...)
	const from = 10
	last := int64(len(rows)) - 7
	for stop := int64(0); stop <= last; stop += 97 {
		next := int64(from)
		for r, err := range w.Records(t.Context(), from, last) {
			if unreadable, ok := errors.AsType[*PackError](err); ok && unreadable.First == next && next == 2*maxPacked+1 {
				next = unreadable.Last + 1
				continue
			}
			if err != nil || r.Seq != next || string(r.Body) != rows[next-1].Content.Body || tlog.Hash(r.Digest) != rows[next-1].Header.Digest {
				t.Fatalf("record %d: %+v, %v", next, r, err)
			}
			if next++; stop > 0 && next > stop {
				break
			}
		}
		if stop == 0 && next != last+1 {
			t.Errorf("%d records", next-1)
		}
	}
	if err := w.Rollback(); err != nil {
		t.Fatal(err)
	}
}

package verify

import (
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"hash/maphash"

	"github.com/agentd/agentd/auditchain/internal/store"
)

// Queries find the packs to read by the tables terms and filters, and an entry that is not
// there hides records, as in an index (see indexes.go). They are compared in the same way:
// the pass over the records sums up what the tables have to hold, and a scan of each what it
// holds. Where the sums differ, each pack is read once more together with its entries.

// A lookupCheck compares the tables terms and filters with the packs.
type lookupCheck struct {
	expected  entries
	collector store.LookupCollector
	scratch   []byte
}

// expect takes a record of a pack.
func (c *lookupCheck) expect(seed maphash.Seed, r *store.Record) {
	lookup := c.collector.Add(r)
	if lookup == nil {
		return
	}
	for i := range lookup.Terms {
		t := &lookup.Terms[i]
		c.addTerm(seed, &c.expected, t.Column, t.Value, t.Records, lookup.Pack)
	}
	c.scratch = c.expected.add(seed, c.scratch, lookup.Filter, lookup.Pack)
}

func (c *lookupCheck) addTerm(seed maphash.Seed, e *entries, field, value string, records, pack int64) {
	b := append(append(append(c.scratch[:0], field...), 0), value...)
	b = binary.BigEndian.AppendUint64(b, uint64(records)) //nolint:gosec // its bits, whatever the sign
	c.scratch = e.add(seed, nil, b, pack)
}

// finding returns how the tables differ from the packs up to the record last, "" if they do
// not.
func (c *lookupCheck) finding(ctx context.Context, db *store.DB, seed maphash.Seed, last int64) (string, error) {
	agree, err := c.agree(ctx, db, seed, last)
	if agree || err != nil {
		return "", db.Wrap("reading what finds packs", err)
	}
	pack, err := db.CheckLookups(ctx)
	if pack == 0 || err != nil {
		return "", err
	}
	return fmt.Sprintf("the tables terms and filters do not list what the pack of record %d says", pack), nil
}

// agree reports whether the sums over the tables are those over the packs, and SQLite finds
// rows where it looks for them.
func (c *lookupCheck) agree(ctx context.Context, db *store.DB, seed maphash.Seed, last int64) (bool, error) {
	if packs, err := db.HasPacks(ctx); err != nil || !packs {
		return err == nil, err
	}
	var terms, filters string
	err := db.QueryRowContext(ctx, `SELECT (SELECT quick_check FROM pragma_quick_check('terms')), (SELECT quick_check FROM pragma_quick_check('filters'))`).
		Scan(&terms, &filters)
	if err != nil || terms != "ok" || filters != "ok" {
		return false, err
	}
	var found entries
	err = eachRow(ctx, db, `SELECT field, value, records, pack FROM terms WHERE pack <= ?`, last, func(rows *sql.Rows) error {
		var field, value string
		var records, pack int64
		err := rows.Scan(&field, &value, &records, &pack)
		c.addTerm(seed, &found, field, value, records, pack)
		return err
	})
	if err == nil {
		err = eachRow(ctx, db, `SELECT bits, pack FROM filters WHERE pack <= ?`, last, func(rows *sql.Rows) error {
			var bits sql.RawBytes
			var pack int64
			err := rows.Scan(&bits, &pack)
			c.scratch = found.add(seed, c.scratch, bits, pack)
			return err
		})
	}
	return found == c.expected, err
}

// eachRow calls use for each row of a query.
func eachRow(ctx context.Context, db *store.DB, query string, last int64, use func(*sql.Rows) error) error {
	rows, err := db.QueryPacked(ctx, query, last)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := use(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

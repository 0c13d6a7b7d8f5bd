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
	// unknown is the last pack whose terms have no positions. So have those before it: a version
	// wrote them that had none. Who removes positions hides nothing, since a query then reads the
	// pack.
	unknown   int64
	expected  entries
	collector store.LookupCollector
	term      []byte
	scratch   []byte
}

// begin looks for the packs whose terms have no positions, unless the tables may not be there.
func (c *lookupCheck) begin(ctx context.Context, db *store.DB, schemaAltered bool) error {
	if schemaAltered {
		return nil
	}
	err := db.ScanPacked(ctx, `SELECT coalesce(max(pack), 0) FROM terms WHERE positions IS NULL`, nil, []any{&c.unknown})
	return db.Wrap("reading what finds packs", err)
}

// expect takes a record of a pack.
func (c *lookupCheck) expect(seed maphash.Seed, r *store.Record) {
	lookup := c.collector.Add(r)
	if lookup == nil {
		return
	}
	for i := range lookup.Terms {
		if lookup.Pack <= c.unknown {
			lookup.Terms[i].Positions = nil
		}
		c.addTerm(seed, &c.expected, &lookup.Terms[i], lookup.Pack)
	}
	c.scratch = c.expected.add(seed, c.scratch, lookup.Filter, lookup.Pack)
}

// addTerm adds a term. The length of the value keeps one term from having the bytes of another.
func (c *lookupCheck) addTerm(seed maphash.Seed, e *entries, t *store.Term, pack int64) {
	b := append(append(c.term[:0], t.Column...), 0)
	b = append(binary.AppendUvarint(b, uint64(len(t.Value))), t.Value...)
	b = binary.BigEndian.AppendUint64(b, uint64(t.Records)) //nolint:gosec // its bits, whatever the sign
	if t.Positions != nil {
		b = append(append(b, 1), t.Positions...)
	}
	c.term, c.scratch = b, e.add(seed, c.scratch, b, pack)
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
	err = eachRow(ctx, db, `SELECT field, value, records, positions, positions IS NULL, pack FROM terms WHERE pack <= ?`, last, func(rows *sql.Rows) error {
		var t store.Term
		var positions sql.RawBytes
		var unknown bool
		var pack int64
		err := rows.Scan(&t.Column, &t.Value, &t.Records, &positions, &unknown, &pack)
		if t.Positions = positions; positions == nil && !unknown { // the driver returns nil for no bytes
			t.Positions = []byte{}
		}
		c.addTerm(seed, &found, &t, pack)
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

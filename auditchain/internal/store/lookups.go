package store

import (
	"bytes"
	"context"
	"slices"
	"strings"
)

// CheckLookups compares the tables terms and filters with the packs, and looks for entries
// of packs that do not exist. It returns the number of the first record of a pack whose
// entries are not those of its records, 0 for none. A pack that cannot be read has no entries
// to compare.
//
// It may run while the log is written to: a pack and its entries come and go in one
// transaction and never change.
func (db *DB) CheckLookups(ctx context.Context) (pack int64, err error) {
	listed, err := db.listed(ctx)
	if err != nil {
		return 0, db.Wrap("reading what finds packs", err)
	}
	for _, first := range listed {
		differs, err := db.lookupDiffers(ctx, first)
		if differs || err != nil {
			return first, db.Wrap("reading what finds packs", err)
		}
	}
	return 0, nil
}

// listed returns the numbers that a pack, a term or a filter has as that of a pack, in their
// order.
func (db *DB) listed(ctx context.Context) (packs []int64, err error) {
	rows, err := db.QueryPacked(ctx, `SELECT first FROM packs UNION SELECT pack FROM terms UNION SELECT pack FROM filters ORDER BY 1`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var first int64
		if err := rows.Scan(&first); err != nil {
			return nil, err
		}
		packs = append(packs, first)
	}
	return packs, rows.Err()
}

// lookupDiffers reports whether a pack and its entries differ.
func (db *DB) lookupDiffers(ctx context.Context, first int64) (bool, error) {
	var p pack
	err := db.ScanPacked(ctx, `SELECT `+packColumns+` FROM packs WHERE first = ?`, []any{first}, p.destinations())
	gone := IsNoRows(err)
	if err != nil && !gone {
		return false, err
	}
	var l *Lookup
	if !gone {
		var u unpacker
		records, unreadable := u.read(&p)
		if unreadable != nil { // which the pass over the records reports
			return false, nil
		}
		l = new(LookupCollector).of(records)
	}
	// One statement: the pack may be removed meanwhile, and then its entries are gone too.
	var there, terms int64
	var bits []byte
	query, args := `SELECT (SELECT count(*) FROM packs WHERE first = ?1), (SELECT count(*) FROM terms WHERE pack = ?1), (SELECT bits FROM filters WHERE pack = ?1)`, []any{first}
	if err := db.ScanPacked(ctx, query, args, []any{&there, &terms, &bits}); err != nil {
		return false, err
	}
	switch {
	case there == 0:
		return terms > 0 || bits != nil, nil
	case gone: // it is new
		return false, nil
	case terms != int64(len(l.Terms)) || !bytes.Equal(bits, l.Filter):
		return true, nil
	}
	return db.termsDiffer(ctx, l)
}

// termsDiffer reports whether a pack that is still there lacks any of its terms.
func (db *DB) termsDiffer(ctx context.Context, l *Lookup) (bool, error) {
	for chunk := range slices.Chunk(l.Terms, 100) { // SQLite bounds the arms of a UNION
		var differing, there int64
		args := []any{l.Pack}
		for _, t := range chunk {
			args = append(args, t.Column, t.Value, t.Records)
		}
		err := db.ScanPacked(ctx, `SELECT (SELECT count(*) FROM packs WHERE first = ?1), (SELECT count(*) FROM (SELECT NULL AS f, NULL AS v, NULL AS n WHERE 0`+
			strings.Repeat(` UNION ALL SELECT ?, ?, ?`, len(chunk))+`) WHERE NOT EXISTS
			(SELECT 1 FROM terms WHERE field = f AND value = v AND pack = ?1 AND records = n))`, args, []any{&there, &differing})
		if err != nil || there > 0 && differing > 0 {
			return err == nil, err
		}
	}
	return false, nil
}

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
	all, err := db.listed(ctx)
	if err != nil {
		return 0, db.Wrap("reading what finds packs", err)
	}
	for _, l := range all {
		differs, err := db.lookupDiffers(ctx, l)
		if differs || err != nil {
			return l.pack, db.Wrap("reading what finds packs", err)
		}
	}
	return 0, nil
}

// A listed is a number that a pack, a term or a filter has as that of a pack.
type listed struct {
	pack  int64
	there bool // a pack has it
	terms int64
}

// listedSQL counts the terms of all packs in one go: the table is in the order of the values,
// and to count those of one pack alone it would have to be read from end to end.
const listedSQL = `SELECT pack, max(there), sum(terms) FROM (SELECT first AS pack, 1 AS there, 0 AS terms FROM packs
	UNION ALL SELECT pack, 0, 1 FROM terms UNION ALL SELECT pack, 0, 0 FROM filters) GROUP BY pack ORDER BY pack`

// listed returns what is listed, in the order of the packs.
func (db *DB) listed(ctx context.Context) (all []listed, err error) {
	rows, err := db.QueryPacked(ctx, listedSQL)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var l listed
		if err := rows.Scan(&l.pack, &l.there, &l.terms); err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, rows.Err()
}

// filterSQL selects whether there is a pack ?1, and its filter. In one statement: where the
// pack is removed, so is the filter.
const filterSQL = `SELECT (SELECT count(*) FROM packs WHERE first = ?1), (SELECT bits FROM filters WHERE pack = ?1)`

// lookupDiffers reports whether a pack and its entries differ. Of a pack that is removed
// meanwhile the entries go with it.
func (db *DB) lookupDiffers(ctx context.Context, listed listed) (bool, error) {
	if !listed.there {
		return true, nil
	}
	var p pack
	err := db.ScanPacked(ctx, `SELECT `+packColumns+` FROM packs WHERE first = ?`, []any{listed.pack}, p.destinations())
	if IsNoRows(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var u unpacker
	records, unreadable := u.read(&p)
	if unreadable != nil { // which the pass over the records reports
		return false, nil
	}
	l := new(LookupCollector).of(records)
	var there int64
	var bits []byte
	if err := db.ScanPacked(ctx, filterSQL, []any{listed.pack}, []any{&there, &bits}); err != nil || there == 0 {
		return false, err
	}
	if listed.terms != int64(len(l.Terms)) || !bytes.Equal(bits, l.Filter) {
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
			args = append(args, t.Column, t.Value, t.Records, t.Positions)
		}
		err := db.ScanPacked(ctx, termsSQL(len(chunk)), args, []any{&there, &differing})
		if err != nil || there > 0 && differing > 0 {
			return err == nil, err
		}
	}
	return false, nil
}

// termsSQL selects whether there is a pack ?1, and how many of count terms it lacks. Positions
// that are not known hide nothing.
func termsSQL(count int) string {
	return `SELECT (SELECT count(*) FROM packs WHERE first = ?1), (SELECT count(*) FROM (SELECT NULL AS f, NULL AS v, NULL AS n, NULL AS p WHERE 0` +
		strings.Repeat(` UNION ALL SELECT ?, ?, ?, ?`, count) + `) WHERE NOT EXISTS
			(SELECT 1 FROM terms WHERE field = f AND value = v AND pack = ?1 AND records = n AND coalesce(positions = p, positions IS NULL)))`
}

package store

import (
	"context"
	"database/sql"
	"iter"
	"strings"
)

// A PackChoice says which packs to read.
type PackChoice struct {
	// Low and High bound the numbers of the records, both exclusive.
	Low, High int64
	// Terms are in the pack; the first is the one whose packs are looked at.
	Terms []Term
	// Keys may be in the pack, as its filter says.
	Keys []FilterKey
	// Tenant, if set, is that of the records.
	Tenant string
	// Members are in the body of each record, such as "side":"caller" in canonical form. Text
	// is, too, in letters of either case; it has lower ones.
	Members [][]byte
	Text    []byte
	// Descending is from the newest pack on.
	Descending bool
}

// Packs yields the records of each pack that may have what a query looks for, or some of them,
// which are valid until the next. It reads nothing of other packs but their entries in the tables
// terms and filters.
func (db *DB) Packs(ctx context.Context, c *PackChoice) iter.Seq2[[]Record, error] {
	return func(yield func([]Record, error) bool) {
		read := db.wholePacks
		if len(c.Keys) > 0 {
			read = db.filteredPacks
		}
		var u unpacker
		err := read(ctx, c, func(p *pack) (bool, error) {
			records, err := u.candidates(p, c)
			if err != nil {
				return false, &PackError{First: p.first, Last: p.last, Err: err}
			}
			for i := range records {
				records[i].Digest = nil
			}
			return yield(records, nil), nil
		})
		if err != nil {
			yield(nil, err)
		}
	}
}

// statement returns the SQL that selects columns of the chosen packs, and its arguments. Packs
// and filters are found by the number of the pack; the order is that of the table that is
// read first.
func (c *PackChoice) statement(columns string) (string, []any) {
	from, at := `packs AS p`, `p.first`
	var where []string
	var args []any
	switch {
	case len(c.Terms) > 0:
		from, at = `terms AS t CROSS JOIN packs AS p ON p.first = t.pack`, `t.pack`
		if len(c.Keys) > 0 {
			from = `terms AS t CROSS JOIN filters AS f ON f.pack = t.pack`
		}
		where, args = append(where, `t.field = ? AND t.value = ?`), append(args, c.Terms[0].Column, c.Terms[0].Value)
	case len(c.Keys) > 0:
		from, at = `filters AS f`, `f.pack`
	}
	where = append(where, at+` >= coalesce((SELECT max(first) FROM packs WHERE first <= ?), 0)`, at+` < ?`)
	args = append(args, c.Low+1, c.High)
	for _, t := range c.Terms[min(1, len(c.Terms)):] {
		where = append(where, `EXISTS (SELECT 1 FROM terms AS x WHERE x.field = ? AND x.value = ? AND x.pack = `+at+`)`)
		args = append(args, t.Column, t.Value)
	}
	order := ` ORDER BY ` + at
	if c.Descending {
		order += ` DESC`
	}
	return `SELECT ` + columns + ` FROM ` + from + ` WHERE ` + strings.Join(where, ` AND `) + order, args
}

const joinedColumns = `p.first, p.last, p.ts, p.tenants, p.kinds, p.hashes, p.salts, p.bodies`

// wholePacks reads packs that terms alone choose.
func (db *DB) wholePacks(ctx context.Context, c *PackChoice, use func(*pack) (bool, error)) error {
	query, args := c.statement(joinedColumns)
	rows, err := db.QueryPacked(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	var p pack
	for rows.Next() {
		if err := rows.Scan(p.destinations()...); err != nil {
			return err
		}
		if more, err := use(&p); err != nil || !more {
			return err
		}
	}
	return rows.Err()
}

// filteredPacks reads the filters, and the packs whose filters have the keys.
func (db *DB) filteredPacks(ctx context.Context, c *PackChoice, use func(*pack) (bool, error)) error {
	query, args := c.statement(`f.pack, f.bits`)
	rows, err := db.QueryPacked(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var first int64
		var bits sql.RawBytes
		if err := rows.Scan(&first, &bits); err != nil {
			return err
		}
		if !c.mayHave(bits) {
			continue
		}
		var p pack
		err := db.ScanPacked(ctx, `SELECT `+packColumns+` FROM packs WHERE first = ?`, []any{first}, p.destinations())
		if IsNoRows(err) {
			continue // its records have rows by now, which are read after the packs
		}
		if err != nil {
			return err
		}
		if more, err := use(&p); err != nil || !more {
			return err
		}
	}
	return rows.Err()
}

// mayHave reports whether a filter has all keys.
func (c *PackChoice) mayHave(bits []byte) bool {
	for _, key := range c.Keys {
		if !key.In(bits) {
			return false
		}
	}
	return true
}

package store

import (
	"context"
	"database/sql"
	"iter"
	"slices"
	"strconv"
)

// A PackChoice says which packs to read, and which of their records.
type PackChoice struct {
	// Low and High bound the numbers of the records, both exclusive.
	Low, High int64
	// Terms have in common the records to read.
	Terms []Term
	// Keys may be in the pack, as its filter says. With terms, only the filters of packs are
	// looked up that have the terms; without, all are read.
	Keys []FilterKey
	// Tenant, if set, is that of the records.
	Tenant string
	// Members are in the body of each record, such as "side":"caller" in canonical form. Text
	// is, too, in letters of either case; it has lower ones.
	Members [][]byte
	Text    []byte
	// Descending is from the newest record on.
	Descending bool
}

// Packs yields the records of packs that may be what a query looks for, each valid until the
// next, in their order. It reads nothing of other packs but their entries in the tables terms and
// filters, of other records nothing but where their bodies end, and nothing behind the record that
// the consumer stops at.
func (db *DB) Packs(ctx context.Context, c *PackChoice) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		s := packSearch{db: db, choice: c, yield: yield}
		var err error
		switch {
		case len(c.Terms) > 0:
			err = s.byTerms(ctx)
		case len(c.Keys) > 0:
			err = s.byFilters(ctx)
		default:
			err = s.all(ctx)
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// A packSearch yields what a choice chooses.
type packSearch struct {
	db     *DB
	choice *PackChoice
	yield  func(*Record, error) bool
	u      unpacker
	p      pack
}

const (
	// The bodies are read as bytes: the driver would copy a long text once more.
	searchColumns = `first, last, ts, tenants, kinds, hashes, salts, CAST(bodies AS BLOB)`
	// startOf is the first number of the pack that has the record ?1.
	startOf = `coalesce((SELECT max(first) FROM packs WHERE first <= ?1), 0)`
	onePack = `SELECT ` + searchColumns + ` FROM packs WHERE first = ?`
)

// allSQL returns the statement for the packs with records from ?1 to before ?2.
func (c *PackChoice) allSQL() string {
	return c.ordered(`SELECT `+searchColumns+` FROM packs WHERE first >= `+startOf+` AND first < ?2`, `first`)
}

// filtersSQL returns the statement for their filters.
func (c *PackChoice) filtersSQL() string {
	return c.ordered(`SELECT pack, bits FROM filters WHERE pack >= `+startOf+` AND pack < ?2`, `pack`)
}

// ordered returns a statement that ends with the order of a column.
func (c *PackChoice) ordered(statement, column string) string {
	statement += ` ORDER BY ` + column
	if c.Descending {
		statement += ` DESC`
	}
	return statement
}

// all reads every pack.
func (s *packSearch) all(ctx context.Context) error {
	c := s.choice
	_, err := s.read(ctx, nil, c.allSQL(), c.Low+1, c.High)
	return err
}

// read yields the records of the packs of a statement, of one that is in the list those at its
// positions. It returns false if the consumer has stopped.
func (s *packSearch) read(ctx context.Context, list []posting, query string, args ...any) (more bool, err error) {
	rows, err := s.db.QueryPacked(ctx, query, args...)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	var tenants, kinds, hashes, salts, bodies sql.RawBytes
	for rows.Next() {
		if err := rows.Scan(&s.p.first, &s.p.last, &s.p.time, &tenants, &kinds, &hashes, &salts, &bodies); err != nil {
			return false, err
		}
		s.p.tenants, s.p.kinds, s.p.hashes, s.p.salts, s.p.bodies = tenants, kinds, hashes, salts, bodies
		chosen := allPositions()
		if i := slices.IndexFunc(list, func(entry posting) bool { return entry.pack == s.p.first }); i >= 0 {
			chosen = list[i].positions
		}
		more, err := s.u.candidates(&s.p, s.choice, &chosen, func(r *Record) bool { return s.yield(r, nil) })
		if err != nil {
			return false, &PackError{First: s.p.first, Last: s.p.last, Err: err}
		}
		if !more {
			return false, nil
		}
	}
	return true, rows.Err()
}

// byTerms reads the packs in which records have all terms.
func (s *packSearch) byTerms(ctx context.Context) error {
	c := s.choice
	low := int64(0)
	if c.Low > 0 { // the pack of the first record begins before it
		if err := s.db.ScanPacked(ctx, `SELECT `+startOf, []any{c.Low + 1}, []any{&low}); err != nil {
			return err
		}
		low = max(low, 0) // of a number below 1 there is no pack of the log's making
	}
	var list []posting
	size := minPacks
	for found, err := range s.db.common(ctx, c, low) {
		if err != nil {
			return err
		}
		if len(c.Keys) > 0 {
			if may, err := s.mayHave(ctx, found.pack); err != nil {
				return err
			} else if !may {
				continue
			}
		}
		if list = append(list, *found); len(list) < size {
			continue
		}
		if more, err := s.readListed(ctx, list); err != nil || !more {
			return err
		}
		list, size = list[:0], min(2*size, maxPacks)
	}
	_, err := s.readListed(ctx, list)
	return err
}

const (
	// minPacks and maxPacks bound how many packs one statement reads. Each has a price of its own; but
	// to look for more packs than fill the page may take long where few have what is looked for.
	minPacks = 2
	maxPacks = 32
	// listedPacks selects packs in the order of the list of their numbers ?1.
	listedPacks = `SELECT ` + searchColumns + ` FROM json_each(?1) AS list CROSS JOIN packs ON first = list.value`
)

// readListed reads the packs of some postings. One that is gone has rows by now, which are read
// after the packs.
func (s *packSearch) readListed(ctx context.Context, list []posting) (more bool, err error) {
	if len(list) == 0 {
		return true, nil
	}
	numbers := []byte{'['}
	for i := range list {
		if i > 0 {
			numbers = append(numbers, ',')
		}
		numbers = strconv.AppendInt(numbers, list[i].pack, 10)
	}
	return s.read(ctx, list, listedPacks, string(append(numbers, ']')))
}

const oneFilter = `SELECT bits FROM filters WHERE pack = ?`

// mayHave reports whether the filter of a pack has all keys. One that is not there may have any:
// it is not of the log's making.
func (s *packSearch) mayHave(ctx context.Context, first int64) (bool, error) {
	var bits []byte
	err := s.db.ScanPacked(ctx, oneFilter, []any{first}, []any{&bits})
	if IsNoRows(err) {
		return true, nil
	}
	return err == nil && s.choice.mayHave(bits), err
}

// byFilters reads the filters, and the packs whose filters have the keys.
func (s *packSearch) byFilters(ctx context.Context) error {
	c := s.choice
	rows, err := s.db.QueryPacked(ctx, c.filtersSQL(), c.Low+1, c.High)
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
		// A pack that is gone has rows by now, which are read after the packs.
		if more, err := s.read(ctx, nil, onePack, first); err != nil || !more {
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

package verify

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"hash/maphash"
	"strconv"

	"github.com/agentd/agentd/auditchain/internal/store"
)

// Queries and exports find records through indexes, and an index that lacks an entry
// hides a record. The pass over the records sums up what each index has to hold, and a
// scan of each index what it holds. A sum adds hashes under a seed that nobody knows
// beforehand, so that equal sums mean equal entries.
//
// Entries of records that were appended since the pass do not count, so that a log which is
// written to is no slower to verify. Different sums mean nothing yet: the log may be redacted
// and pruned meanwhile. Then SQLite compares records and indexes in one statement
// ([store.DB.CheckIndexes]), which takes more than twice as long as the scans.

// indexCount is the number of indexes that the schema has on the records.
const indexCount = 7

// notNull is how many of them, the first ones, are on columns that every record has. The
// value of such a column can be empty, which a scan may return as nil.
const notNull = 2

// An index is one of them. Its entries are of the type that its column has.
type index struct{ name, column, kind string }

func schemaIndexes() [indexCount]index {
	return [...]index{
		{"records_tenant", "tenant", "text"},
		{"records_kind", "kind", "text"},
		{"records_peer", "peer", "text"},
		{"records_capability", "capability", "text"},
		{"records_correlation", "correlation", "text"},
		{"records_session", "session", "text"},
		{"records_erased", "erased_by", "integer"},
	}
}

// entries sums up entries of one index.
type entries struct {
	sum   uint64
	count int64
}

// An indexCheck compares the indexes with the records.
type indexCheck struct {
	seed maphash.Seed
	// expected is what the indexes have to hold for the records read so far.
	expected [indexCount]entries
	lookups  lookupCheck
	scratch  []byte
}

func newIndexCheck() *indexCheck { return &indexCheck{seed: maphash.MakeSeed()} }

// expect takes a record of the pass. One in a pack is in no index.
func (c *indexCheck) expect(r *row) {
	if r.stored.Pack > 0 {
		c.lookups.expect(c.seed, r.stored)
		return
	}
	for i, value := range [...]sql.RawBytes{r.tenant, r.kind, r.peer, r.capability, r.correlation, r.session} {
		if value != nil || i < notNull {
			c.scratch = c.expected[i].add(c.seed, c.scratch, value, r.seq)
		}
	}
	if r.erasedBy.Valid {
		var number [20]byte
		c.scratch = c.expected[indexCount-1].add(c.seed, c.scratch, strconv.AppendInt(number[:0], r.erasedBy.Int64, 10), r.seq)
	}
}

// finding returns how an index differs from the records, "" if none does.
func (c *indexCheck) finding(ctx context.Context, db *store.DB, last int64) (string, error) {
	if finding, err := c.lookups.finding(ctx, db, c.seed, last); finding != "" || err != nil {
		return finding, err
	}
	agree, err := c.agree(ctx, db, last)
	if agree || err != nil {
		return "", db.Wrap("reading the indexes", err)
	}
	return db.CheckIndexes(ctx)
}

// agree reports whether the sums over the indexes are those over the records up to last, and
// SQLite finds entries and records where it looks for them. It is false for anything unusual,
// which includes an index that the schema does not have: a query might use that one.
func (c *indexCheck) agree(ctx context.Context, db *store.DB, last int64) (bool, error) {
	var structure string
	var count int
	err := db.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM pragma_index_list('records')), (SELECT quick_check FROM pragma_quick_check('records'))`).
		Scan(&count, &structure)
	if err != nil || structure != "ok" || count != indexCount {
		return false, err
	}
	var most int64
	for i, index := range schemaIndexes() {
		var found entries
		sorted, later, err := found.scan(ctx, db, c.seed, index, last)
		if err != nil || !sorted || found != c.expected[i] {
			return false, err
		}
		most = max(most, later)
	}
	if most == 0 {
		return true, nil
	}
	// There are at least as many later records as an index has entries of them, or it has
	// entries of none.
	var appended int64
	err = db.QueryRowContext(ctx, `SELECT count(*) FROM records NOT INDEXED WHERE seq > ?`, last).Scan(&appended)
	return err == nil && most <= appended, err
}

// scan reads an index from end to end. It sums up the entries of records up to last, and
// counts the later ones. It returns false if the entries are not in their
// order, in which SQLite would miss some of them. One of another type than its column,
// which equals no value of the column, does not count.
func (e *entries) scan(ctx context.Context, db *store.DB, seed maphash.Seed, index index, last int64) (sorted bool, later int64, err error) {
	rows, err := db.QueryContext(ctx, `SELECT `+index.column+`, seq FROM records INDEXED BY `+index.name+
		` WHERE `+index.column+` IS NOT NULL AND typeof(`+index.column+`) = ?`, index.kind)
	if err != nil {
		return false, 0, err
	}
	defer rows.Close()
	var value sql.RawBytes
	var seq, previousSeq int64
	var previous, scratch []byte
	for begun := false; rows.Next(); begun = true {
		if err := rows.Scan(&value, &seq); err != nil {
			return false, 0, err
		}
		order := bytes.Compare(previous, value)
		if index.kind == "integer" { // in decimal
			order = cmp.Or(cmp.Compare(len(previous), len(value)), order)
		}
		if order > 0 || order == 0 && seq <= previousSeq && begun {
			return false, 0, nil
		}
		if seq <= last {
			scratch = e.add(seed, scratch, value, seq)
		} else {
			later++
		}
		previous, previousSeq = append(previous[:0], value...), seq
	}
	return true, later, rows.Err()
}

// add adds an entry. It returns scratch, which it writes to.
func (e *entries) add(seed maphash.Seed, scratch, value []byte, seq int64) []byte {
	scratch = binary.BigEndian.AppendUint64(append(scratch[:0], value...), uint64(seq)) //nolint:gosec // its bits, whatever the sign
	e.sum += maphash.Bytes(seed, scratch)
	e.count++
	return scratch
}

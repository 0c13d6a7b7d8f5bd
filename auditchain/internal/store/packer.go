package store

import (
	"context"
	"database/sql"
	"errors"

	"github.com/agentd/agentd/auditchain/internal/chainhash"
	"github.com/agentd/agentd/auditchain/internal/record"
	"golang.org/x/mod/sumdb/tlog"
)

// A packer adds rows to the table packs, and what finds them to the tables terms and
// filters.
type packer struct {
	insertPack, insertTerm, insertFilter, insertLeaf, insertErased *sql.Stmt

	lookups               LookupCollector
	tenants, kinds        []byte
	hashes, salts, bodies []byte
}

func (pk *packer) prepare(ctx context.Context, conn *sql.Conn) (err error) {
	for _, p := range []struct {
		stmt **sql.Stmt
		text string
	}{
		// The driver would copy a long text once more than bytes, for each pack.
		{&pk.insertPack, `INSERT INTO packs (` + packColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, CAST(? AS TEXT))`},
		{&pk.insertTerm, `INSERT INTO terms (field, value, pack, records, positions) VALUES (?, ?, ?, ?, ?)`},
		{&pk.insertFilter, `INSERT INTO filters (pack, bits) VALUES (?, ?)`},
		{&pk.insertLeaf, `INSERT OR REPLACE INTO tree (level, position, hash) VALUES (0, ?, ?)`},
		{&pk.insertErased, `INSERT INTO records (seq, ts, tenant, kind, digest, hash, erased_by) VALUES (?, ?, ?, ?, ?, ?, ?)`},
	} {
		if *p.stmt, err = conn.PrepareContext(ctx, p.text); err != nil {
			return err
		}
	}
	return nil
}

// run returns how many of the first rows can be one pack. They are of one time.
func (*packer) run(rows []Row) (n int) {
	size := 0
	for n < len(rows) && n < maxPacked {
		row := &rows[n]
		size += len(row.Content.Body) + 1
		if !row.Packable || row.Header.Time != rows[0].Header.Time || size > maxPackedBytes {
			break
		}
		n++
	}
	return n
}

// insert adds rows as one pack.
func (pk *packer) insert(rows []Row) error {
	pk.encode(rows)
	first, last := rows[0].Header.Seq, rows[len(rows)-1].Header.Seq
	_, err := pk.insertPack.ExecContext(context.Background(), first, last, rows[0].Header.Time,
		string(pk.tenants), string(pk.kinds), pk.hashes, pk.salts, pk.bodies)
	if err != nil {
		return err
	}
	return pk.insertLookup(pk.lookups.ofRows(rows))
}

// encode makes the columns of a pack.
func (pk *packer) encode(rows []Row) {
	pk.tenants = appendTexts(pk.tenants[:0], len(rows), func(i int) string { return rows[i].Header.Tenant })
	pk.kinds = appendTexts(pk.kinds[:0], len(rows), func(i int) string { return rows[i].Header.Kind })
	pk.hashes, pk.salts, pk.bodies = pk.hashes[:0], pk.salts[:0], append(pk.bodies[:0], '[')
	for i := range rows {
		if i > 0 {
			pk.bodies = append(pk.bodies, ',')
		}
		pk.bodies = append(pk.bodies, rows[i].Content.Body...)
		pk.hashes = append(pk.hashes, rows[i].Hash[:]...)
		pk.salts = append(pk.salts, rows[i].Salt[:]...)
	}
	pk.bodies = append(pk.bodies, ']')
}

// insertLookup adds what finds a pack.
func (pk *packer) insertLookup(l *Lookup) error {
	for i := range l.Terms {
		t := &l.Terms[i]
		if _, err := pk.insertTerm.ExecContext(context.Background(), t.Column, t.Value, l.Pack, t.Records, t.Positions); err != nil {
			return err
		}
	}
	_, err := pk.insertFilter.ExecContext(context.Background(), l.Pack, l.Filter)
	return err
}

// forget overwrites the texts of the records that were packed last, which the log may be
// asked to erase.
func (pk *packer) forget() {
	clear(pk.bodies[:cap(pk.bodies)])
	clear(pk.salts[:cap(pk.salts)])
}

func (pk *packer) close() error {
	var errs []error
	for _, stmt := range []*sql.Stmt{pk.insertPack, pk.insertTerm, pk.insertFilter, pk.insertLeaf, pk.insertErased} {
		if stmt != nil {
			errs = append(errs, stmt.Close())
		}
	}
	return errors.Join(errs...)
}

// Unpack writes the packs that hold any of the records from first to last as rows, within
// the caller's transaction. The records stay the same in everything.
func (w *Writer) Unpack(first, last int64) error {
	packs, err := w.packsOf(first, last)
	if err != nil {
		return err
	}
	for _, at := range packs {
		if err := w.unpack(at, nil, 0); err != nil {
			return err
		}
	}
	return nil
}

// UnpackErased writes the packs that hold the first of some records, in ascending order, as
// rows, within the caller's transaction, those of the records without their content: erased by
// the record by. Once that has made limit rows it unpacks no further one. It returns how many of
// the records are before it, some of which may have been rows, and how many it has erased.
func (w *Writer) UnpackErased(seqs []int64, by, limit int64) (n int, erased int64, err error) {
	for made := int64(0); n < len(seqs); {
		var first, last int64
		// The first pack that ends with the next record or after it.
		err := w.QueryRowContext(context.Background(), `SELECT first, last FROM packs
			WHERE first >= coalesce((SELECT max(first) FROM packs WHERE first <= ?1), ?1) AND first <= ?2 AND last >= ?1 ORDER BY first LIMIT 1`,
			seqs[n], seqs[len(seqs)-1]).Scan(&first, &last)
		if IsNoRows(err) {
			return len(seqs), erased, nil
		}
		if err != nil {
			return n, erased, err
		}
		for n < len(seqs) && seqs[n] < first {
			n++
		}
		if n == len(seqs) || seqs[n] > last {
			continue
		}
		if made >= limit {
			return n, erased, nil
		}
		from := n
		for made += last - first + 1; n < len(seqs) && seqs[n] <= last; {
			n++
		}
		if err := w.unpack(first, seqs[from:n], by); err != nil {
			return from, erased, err
		}
		erased += int64(n - from)
	}
	return n, erased, nil
}

// packsOf returns the first numbers of the packs that hold any of the records from first
// to last.
func (w *Writer) packsOf(first, last int64) (packs []int64, err error) {
	return w.numbers(`SELECT first FROM packs
		WHERE first >= coalesce((SELECT max(first) FROM packs WHERE first <= ?1), ?1) AND first <= ?2 AND last >= ?1 ORDER BY first`, first, last)
}

// unpack writes one pack as rows, some of them without their content: erased by the record by. To
// write what is then erased would leave pages half empty, and fill indexes for nothing.
func (w *Writer) unpack(at int64, erased []int64, by int64) error {
	var p pack
	err := w.QueryRowContext(context.Background(), `SELECT `+packColumns+` FROM packs WHERE first = ?`, at).Scan(p.destinations()...)
	if err != nil {
		return err
	}
	var u unpacker
	records, err := u.read(&p)
	if err != nil {
		return w.Tampered((&PackError{First: p.first, Last: p.last, Err: err}).Error(), nil)
	}
	if err := w.removePack(at); err != nil {
		return err
	}
	kept := make([]Row, 0, len(records))
	for i := range records {
		r := &records[i]
		row := rowOf(r, u.digest(r))
		if len(erased) == 0 || erased[0] != r.Seq {
			kept = append(kept, row)
			continue
		}
		// In the order of the numbers: a row goes behind the one before.
		if err := w.insert.insert(kept); err != nil {
			return err
		}
		erased, kept = erased[1:], kept[:0]
		if err := w.packer.insertWithoutContent(&row, by); err != nil {
			return err
		}
	}
	return w.insert.insert(kept)
}

// insertWithoutContent adds a record whose content is erased.
func (pk *packer) insertWithoutContent(row *Row, by int64) error {
	h := &row.Header
	_, err := pk.insertErased.ExecContext(context.Background(), h.Seq, h.Time, h.Tenant, h.Kind, h.Digest[:], row.Hash[:], by)
	return err
}

// rowOf returns a record of a pack as a row.
func rowOf(r *Record, digest tlog.Hash) Row {
	p := &record.Prepared{}
	p.Header = chainhash.Header[string]{Seq: r.Seq, Time: r.Time, Tenant: string(r.Tenant), Kind: string(r.Kind), Digest: digest}
	p.Content = chainhash.Content[string]{
		Peer: string(r.Peer), Capability: string(r.Capability), Side: string(r.Side),
		Correlation: string(r.Correlation), Session: string(r.Session), Body: string(r.Body),
	}
	p.Salt = [chainhash.SaltSize]byte(r.Salt)
	return Row{Prepared: p, Hash: tlog.Hash(r.Hash)}
}

// removePack removes a pack and what finds it, within the caller's transaction.
func (w *Writer) removePack(first int64) error {
	if err := w.removeTerms(first); err != nil {
		return err
	}
	return errors.Join(w.Exec(`DELETE FROM filters WHERE pack = ?`, first), w.Exec(`DELETE FROM packs WHERE first = ?`, first))
}

// removeTerms removes the terms of a pack. It computes them from the records: the table is
// in the order of the values, and one without the values would be read from end to end.
func (w *Writer) removeTerms(first int64) error {
	var p pack
	err := w.QueryRowContext(context.Background(), `SELECT `+packColumns+` FROM packs WHERE first = ?`, first).Scan(p.destinations()...)
	if err != nil {
		return err
	}
	var u unpacker
	var lookups LookupCollector
	if records, err := u.read(&p); err == nil {
		for _, t := range lookups.of(records).Terms {
			if err := w.Exec(`DELETE FROM terms WHERE field = ? AND value = ? AND pack = ?`, t.Column, t.Value, first); err != nil {
				return err
			}
		}
		return nil
	}
	return w.Exec(`DELETE FROM terms WHERE pack = ?`, first)
}

// prunePack removes a pack whole, within the caller's transaction, and keeps the hashes of
// its records in the tree.
func (w *Writer) prunePack(first int64) (count int64, err error) {
	var hashes []byte
	if err := w.QueryRowContext(context.Background(), `SELECT hashes FROM packs WHERE first = ?`, first).Scan(&hashes); err != nil {
		return 0, err
	}
	for ; len(hashes) >= tlog.HashSize; hashes = hashes[tlog.HashSize:] {
		if _, err := w.packer.insertLeaf.ExecContext(context.Background(), first-1+count, hashes[:tlog.HashSize]); err != nil {
			return 0, err
		}
		count++
	}
	return count, w.removePack(first)
}

// PruneOldestPack removes the oldest pack that has records up to through, as far as it has
// them, within the caller's transaction. It returns how many records those were, 0 if there
// is no such pack.
func (w *Writer) PruneOldestPack(through int64) (count int64, err error) {
	var first, last int64
	err = w.QueryRowContext(context.Background(), `SELECT first, last FROM packs WHERE first <= ? ORDER BY first LIMIT 1`, through).Scan(&first, &last)
	switch {
	case IsNoRows(err):
		return 0, nil
	case err != nil:
		return 0, err
	case last <= through:
		return w.prunePack(first)
	}
	if err := w.unpack(first, nil, 0); err != nil {
		return 0, err
	}
	err = w.Exec(`INSERT OR REPLACE INTO tree (level, position, hash)
		SELECT 0, seq - 1, hash FROM records WHERE seq >= ? AND seq <= ?`, first, through)
	if err == nil {
		err = w.Exec(`DELETE FROM records WHERE seq >= ? AND seq <= ?`, first, through)
	}
	return through - first + 1, err
}

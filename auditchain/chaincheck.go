package auditchain

import (
	"context"
	"database/sql"
	"iter"

	"github.com/agentd/agentd/auditchain/internal/chainhash"
	"golang.org/x/mod/sumdb/tlog"
)

// checkPage is how many records are read by one statement. Between two, the
// database may move its write-ahead log along.
const checkPage = 4096

// A chainCheck recomputes the hashes of consecutive records.
type chainCheck struct {
	path string
	q    querier
	// previous is the hash before the first record to check.
	previous tlog.Hash
	// erasures looks up what allows an erasure; nil leaves erasures unchecked.
	erasures *erasureCheck
	// leaf, if set, is told the hash of each record in turn, whether it is there
	// or pruned, whether it is sound or not.
	leaf func(row *checkedRow)

	// computed is what the hash before should have been, where that differs
	// from previous, so that one altered hash is one fault and not two.
	computed tlog.Hash
	// lost is true after a record whose hash is not known: the next one cannot
	// be checked and is taken as it is.
	lost    bool
	time    int64
	checked checkedRow
	scratch []byte
}

// A checkedRow is what the check has read of a record.
type checkedRow struct {
	seq    int64
	hash   tlog.Hash
	pruned bool
	kind   []byte
	tenant []byte
	body   []byte
	erased bool
}

// scannedRow holds one row of the table records.
type scannedRow struct {
	seq, time                                    int64
	tenant, kind                                 sql.RawBytes
	peer, capability, side, correlation, session sql.RawBytes
	body, salt, digest, hash                     sql.RawBytes
	erasedBy                                     sql.NullInt64
}

const scannedColumns = `seq, ts, tenant, kind, peer, capability, side, correlation, session, body, salt, digest, hash, erased_by`

// destinations is what Scan fills, in the order of scannedColumns.
func (r *scannedRow) destinations() []any {
	return []any{&r.seq, &r.time, &r.tenant, &r.kind, &r.peer, &r.capability, &r.side, &r.correlation, &r.session,
		&r.body, &r.salt, &r.digest, &r.hash, &r.erasedBy}
}

// faults yields what is wrong with the records from first to last. An error
// ends it.
func (c *chainCheck) faults(ctx context.Context, first, last int64) iter.Seq2[Fault, error] {
	return func(yield func(Fault, error) bool) {
		c.computed = c.previous
		for next := first; next <= last; {
			upTo := min(last, next+checkPage-1)
			more, err := c.page(ctx, next, upTo, yield)
			if err != nil {
				yield(Fault{}, fault(c.path, "reading the records", err))
				return
			}
			if !more {
				return
			}
			next = upTo + 1
		}
	}
}

// page checks the records from first to last. It returns false if the caller
// wants no more.
func (c *chainCheck) page(ctx context.Context, first, last int64, yield func(Fault, error) bool) (bool, error) {
	rows, err := c.q.QueryContext(ctx, `SELECT `+scannedColumns+` FROM records WHERE seq >= ? AND seq <= ? ORDER BY seq`, first, last)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	var row scannedRow
	destinations := row.destinations()
	next := first
	for rows.Next() {
		if err := rows.Scan(destinations...); err != nil {
			return false, err
		}
		if row.seq > next {
			if more, err := c.gap(ctx, next, row.seq-1, yield); !more || err != nil {
				return false, err
			}
		}
		f, err := c.check(ctx, &row)
		if err != nil {
			return false, err
		}
		if f.Class != 0 && !yield(f, nil) {
			return false, nil
		}
		next = row.seq + 1
	}
	if err := rows.Err(); err != nil {
		return false, err
	}
	if next <= last {
		return c.gap(ctx, next, last, yield)
	}
	return true, nil
}

// check recomputes one row.
func (c *chainCheck) check(ctx context.Context, row *scannedRow) (Fault, error) {
	header := chainhash.Header[sql.RawBytes]{Seq: row.seq, Time: row.time, Tenant: row.tenant, Kind: row.kind}
	f := Fault{Seq: row.seq}
	copied := copy(header.Digest[:], row.digest)
	var stored tlog.Hash
	sized := copied == len(header.Digest) && len(row.digest) == copied && len(row.hash) == len(stored)
	copy(stored[:], row.hash)

	computed := chainhash.Record(&c.scratch, c.previous, &header)
	sound := sized && (computed == stored || c.lost)
	if !sound && sized && c.computed != c.previous {
		computed = chainhash.Record(&c.scratch, c.computed, &header)
		sound = computed == stored
	}
	switch {
	case !sound:
		f.Class, f.Detail = FaultRecordAltered, "its columns and the hash before it do not give its hash"
	case row.time < c.time:
		f.Class, f.Detail = FaultTimeReversed, "it is older than the record before it"
	case row.body == nil:
		detail, err := c.erasures.check(ctx, row)
		if err != nil {
			return f, err
		}
		if detail != "" {
			f.Class, f.Detail = FaultForgedErasure, detail
		}
	case row.erasedBy.Valid || c.digest(row) != header.Digest:
		f.Class, f.Detail = FaultContentAltered, "its content does not give its digest"
	}
	if sound {
		c.time = row.time
	}
	c.previous, c.computed, c.lost = stored, computed, false
	if c.leaf != nil {
		c.checked = checkedRow{seq: row.seq, hash: stored, kind: row.kind, tenant: row.tenant, body: row.body, erased: row.body == nil}
		c.leaf(&c.checked)
	}
	return f, nil
}

// digest is what the content of a row gives. A row as the log never writes it
// gives nothing that could match.
func (c *chainCheck) digest(row *scannedRow) tlog.Hash {
	for _, column := range [...]sql.RawBytes{row.peer, row.capability, row.side, row.correlation, row.session} {
		if column != nil && len(column) == 0 {
			return tlog.Hash{} // an empty column is never written
		}
	}
	content := chainhash.Content[sql.RawBytes]{
		Peer: row.peer, Capability: row.capability, Side: row.side, Correlation: row.correlation, Session: row.session, Body: row.body,
	}
	return chainhash.Digest(&c.scratch, row.salt, &content)
}

// gap deals with records that are not there: pruned ones have left their hash
// in the tree, and whether a signed record allows that is for erasures to say.
func (c *chainCheck) gap(ctx context.Context, first, last int64, yield func(Fault, error) bool) (bool, error) {
	rows, err := c.q.QueryContext(ctx, `SELECT position + 1, hash FROM tree
		WHERE level = 0 AND position >= ? AND position < ? ORDER BY position`, first-1, last)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	next := first
	for rows.Next() {
		var seq int64
		var hash sql.RawBytes
		if err := rows.Scan(&seq, &hash); err != nil {
			return false, err
		}
		if seq != next || len(hash) != tlog.HashSize {
			break
		}
		c.previous = tlog.Hash(hash)
		c.computed = c.previous
		if c.leaf != nil {
			c.checked = checkedRow{seq: seq, hash: c.previous, pruned: true}
			c.leaf(&c.checked)
		}
		next++
	}
	if err := rows.Err(); err != nil {
		return false, err
	}
	c.lost = next <= last
	allowed, err := c.erasures.allowedThrough(ctx, last)
	if err != nil {
		return false, err
	}
	missing := min(next, max(first, allowed+1))
	if missing > last {
		return true, nil
	}
	return yield(Fault{Class: FaultRecordMissing, Seq: missing, Last: last,
		Detail: "no signed prune record allows that it is gone"}, nil), nil
}

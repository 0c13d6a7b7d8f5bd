package verify

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"math"

	"github.com/agentd/agentd/auditchain/internal/chainhash"
	"github.com/agentd/agentd/auditchain/internal/store"
	"golang.org/x/mod/sumdb/tlog"
)

// pageSize is the number of records that one statement reads. A statement keeps
// a snapshot of the database, and SQLite cannot empty the write-ahead log past
// the oldest snapshot; between pages it can.
const pageSize = 4096

// FirstFault checks the hashes of the records from first to last, and returns
// the first fault, or nil. It checks neither erasures nor signatures.
func FirstFault(ctx context.Context, db *store.DB, first, last int64) (*Fault, error) {
	return firstFault(ctx, db, first, last, nil)
}

// FirstErasedFault is [FirstFault] of records some of which may be erased or pruned: it checks
// that a redaction or a prune record allows that.
func FirstErasedFault(ctx context.Context, db *store.DB, first, last int64) (*Fault, error) {
	erasures, err := loadErasures(ctx, db)
	if err != nil {
		return nil, err
	}
	return firstFault(ctx, db, first, last, erasures)
}

func firstFault(ctx context.Context, db *store.DB, first, last int64, erasures *erasures) (*Fault, error) {
	if first > last {
		return nil, nil
	}
	previous, err := hashBefore(ctx, db, first)
	if err != nil {
		return nil, err
	}
	c := chain{db: db, previous: previous, erasures: erasures}
	for f, err := range c.faults(ctx, first, last) {
		return &f, err
	}
	return nil, nil
}

// A chain recomputes the hashes of consecutive records.
type chain struct {
	db *store.DB
	// previous is the stored hash before the next record to check.
	previous tlog.Hash
	// erasures decides which erasures are authorised; nil accepts all.
	erasures *erasures
	// leaf, if set, is called for each record in turn, whether it is there or
	// pruned, sound or not. The record is valid during the call.
	leaf func(*checkedRecord)

	// computed is the hash that the record before should have, if that differs
	// from previous. The next record may chain to either, so that one altered
	// hash is reported as one fault and not as two.
	computed tlog.Hash
	// lost is true after a record whose hash is unknown: the next one cannot be
	// checked against it and is accepted as it is.
	lost bool
	// time is that of the newest sound record.
	time int64
	// unread is the first number of the pack that could not be read last.
	unread  int64
	checked checkedRecord
	scratch []byte
}

// A checkedRecord is what the chain reports of a record.
type checkedRecord struct {
	seq    int64
	hash   tlog.Hash
	pruned bool
	erased bool
	kind   []byte
	tenant []byte
	body   []byte
	row    *row // nil if it is pruned
}

// A row holds one record, from the table records or from a pack. Its bytes are valid until the next
// one is scanned, so that a verification allocates nothing per record.
type row struct {
	seq, time                                    int64
	tenant, kind                                 sql.RawBytes
	peer, capability, side, correlation, session sql.RawBytes
	body, salt, digest, hash                     sql.RawBytes
	erasedBy                                     sql.NullInt64
	stored                                       *store.Record
}

// take fills r from a record of the database.
func (r *row) take(s *store.Record) {
	r.seq, r.time, r.tenant, r.kind = s.Seq, s.Time, s.Tenant, s.Kind
	r.peer, r.capability, r.side, r.correlation, r.session = s.Peer, s.Capability, s.Side, s.Correlation, s.Session
	r.body, r.salt, r.digest, r.hash, r.erasedBy = s.Body, s.Salt, s.Digest, s.Hash, s.ErasedBy
	r.stored = s
}

// faults yields the faults of the records from first to last. An error ends the
// sequence.
func (c *chain) faults(ctx context.Context, first, last int64) iter.Seq2[Fault, error] {
	return func(yield func(Fault, error) bool) {
		c.computed = c.previous
		if first > last {
			return
		}
		for next := first; ; {
			upTo := next + min(pageSize-1, last-next)
			more, err := c.page(ctx, next, upTo, yield)
			if err == nil && more && upTo < last {
				next, more, err = c.overGap(ctx, upTo+1, last, yield)
			}
			if err != nil {
				yield(Fault{}, c.db.Wrap("reading the records", err))
				return
			}
			if !more || upTo == last {
				return
			}
		}
	}
}

// overGap returns the number to go on with where the records before next may not be there.
// Numbers in a file can be any: paging through all that are missing before a forged one would
// never end.
func (c *chain) overGap(ctx context.Context, next, last int64, yield func(Fault, error) bool) (int64, bool, error) {
	if !c.lost {
		return next, true, nil
	}
	there := next
	err := c.db.ScanPacked(ctx, `SELECT coalesce(min(n), ?2) FROM (
		SELECT (SELECT seq FROM records WHERE seq >= ?1 ORDER BY seq LIMIT 1) AS n
		UNION ALL SELECT (SELECT position + 1 FROM tree WHERE level = 0 AND position >= ?1 - 1 AND position < ?2 ORDER BY position LIMIT 1)
		UNION ALL SELECT (SELECT first FROM packs WHERE first >= ?1 ORDER BY first LIMIT 1)
		UNION ALL SELECT ?1 FROM (SELECT first, last FROM packs WHERE first < ?1 ORDER BY first DESC LIMIT 1) WHERE last >= ?1 AND first <> ?3)`,
		[]any{next, last, c.unread}, []any{&there})
	if err != nil || there <= next {
		return next, true, err
	}
	return there, yield(Fault{Class: RecordMissing, Seq: next, Last: there - 1, Detail: "no signed prune record allows that it is gone"}, nil), nil
}

// page checks the records from first to last. It returns false if the consumer
// has stopped.
func (c *chain) page(ctx context.Context, first, last int64, yield func(Fault, error) bool) (bool, error) {
	var r row
	next, over := first, false // over: the number after last would be beyond the largest one
	for stored, err := range c.db.Records(ctx, first, last) {
		if unreadable, ok := errors.AsType[*store.PackError](err); ok {
			over = over || min(unreadable.Last, last) == math.MaxInt64
			if f := c.unreadable(unreadable, &next, last); f.Class != 0 && !yield(f, nil) {
				return false, nil
			}
			continue
		}
		if err != nil {
			return false, err
		}
		r.take(stored)
		if r.seq < next || over {
			// A row and a pack, or two packs, with one number. It is in the chain once.
			if !yield(Fault{Class: RecordAdded, Seq: r.seq, Detail: "there is another record of this number"}, nil) {
				return false, nil
			}
			continue
		}
		if r.seq > next {
			if more, err := c.gap(ctx, next, r.seq-1, yield); !more || err != nil {
				return false, err
			}
		}
		f, err := c.check(ctx, &r)
		if err != nil {
			return false, err
		}
		if f.Class != 0 && !yield(f, nil) {
			return false, nil
		}
		if r.seq == last {
			return true, nil // it may be the largest number that there is
		}
		next = r.seq + 1
	}
	if next <= last && !over {
		return c.gap(ctx, next, last, yield)
	}
	return true, nil
}

// unreadable passes over the records of a pack that cannot be read, from *next to last. What
// follows cannot be checked against them. Class 0 means that the pack was met before.
func (c *chain) unreadable(e *store.PackError, next *int64, last int64) Fault {
	c.lost = true
	if e.Last >= *next {
		*next = min(e.Last, last, math.MaxInt64-1) + 1
	}
	if c.unread == e.First && e.First != 0 {
		return Fault{}
	}
	c.unread = e.First
	return Fault{Class: RecordAltered, Seq: max(e.First, 1), Last: max(e.Last, e.First), Detail: e.Error()}
}

// check recomputes one row. Class 0 means that the row is sound.
func (c *chain) check(ctx context.Context, r *row) (Fault, error) {
	header := chainhash.Header[sql.RawBytes]{Seq: r.seq, Time: r.time, Tenant: r.tenant, Kind: r.kind}
	f := Fault{Seq: r.seq}
	var stored tlog.Hash
	sized := len(r.digest) == len(header.Digest) && len(r.hash) == len(stored)
	copy(header.Digest[:], r.digest)
	copy(stored[:], r.hash)

	computed := chainhash.Record(&c.scratch, c.previous, &header)
	sound := sized && (computed == stored || c.lost)
	if !sound && sized {
		computed = chainhash.Record(&c.scratch, c.computed, &header)
		sound = computed == stored
	}
	switch {
	case !sound:
		f.Class, f.Detail = RecordAltered, "its columns and the hash before it do not give its hash"
	case r.time < c.time:
		f.Class, f.Detail = TimeReversed, "it is older than the record before it"
	case r.body == nil:
		detail, err := c.erasures.check(ctx, r)
		if err != nil {
			return f, err
		}
		if detail != "" {
			f.Class, f.Detail = ForgedErasure, detail
		}
	case r.stored.Pack > 0: // its digest was computed from its content
	case r.erasedBy.Valid || c.digest(r) != header.Digest:
		f.Class, f.Detail = ContentAltered, "its content does not give its digest"
	}
	if sound {
		c.time = r.time
	}
	c.previous, c.computed, c.lost = stored, computed, false
	if c.leaf != nil {
		c.checked = checkedRecord{seq: r.seq, hash: stored, kind: r.kind, tenant: r.tenant, body: r.body, erased: r.body == nil, row: r}
		c.leaf(&c.checked)
	}
	return f, nil
}

// digest computes the digest of a row's content.
func (c *chain) digest(r *row) tlog.Hash {
	for _, column := range [...]sql.RawBytes{r.peer, r.capability, r.side, r.correlation, r.session} {
		if column != nil && len(column) == 0 {
			// The writer stores an absent column as NULL, and both have one digest.
			// The zero hash matches no record's.
			return tlog.Hash{}
		}
	}
	content := chainhash.Content[sql.RawBytes]{
		Peer: r.peer, Capability: r.capability, Side: r.side, Correlation: r.correlation, Session: r.session, Body: r.body,
	}
	return chainhash.Digest(&c.scratch, r.salt, &content)
}

// gap checks records that are not there. Pruned ones have left their hash in the
// table tree, so the chain continues; erasures decides whether they may be gone.
func (c *chain) gap(ctx context.Context, first, last int64, yield func(Fault, error) bool) (bool, error) {
	rows, err := c.db.QueryContext(ctx, `SELECT position + 1, hash FROM tree
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
			c.checked = checkedRecord{seq: seq, hash: c.previous, pruned: true}
			c.leaf(&c.checked)
		}
		next++
	}
	if err := rows.Err(); err != nil {
		return false, err
	}
	c.lost = next <= last
	allowed, err := c.erasures.prunable(ctx, last)
	if err != nil {
		return false, err
	}
	missing := min(next, max(first, allowed+1))
	if missing > last {
		return true, nil
	}
	return yield(Fault{Class: RecordMissing, Seq: missing, Last: last,
		Detail: "no signed prune record allows that it is gone"}, nil), nil
}

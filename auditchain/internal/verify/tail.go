package verify

import (
	"context"
	"fmt"

	"github.com/agentd/agentd/auditchain/internal/record"
	"github.com/agentd/agentd/auditchain/internal/store"
)

// The rule for the records after the newest checkpoint, which no signature covers.
// Whoever can write to the file can append there, so the tail may hold only what a
// writer leaves that was killed:
//
//   - There is a checkpoint. The first commit of a log signs one.
//   - There are at most [MaxUnsigned] records. The commit that reaches one more signs.
//   - None is of a kind that only the log itself writes: those are signed in the
//     transaction that writes them, and the next start acts on them.
//   - The last signed record does not seal the log, as that of a clean stop does, or of
//     an erasure. The first commit after one signs.
//   - All have their content. An erasure signs.
//
// A log that breaks the rule is neither opened nor signed, and nothing that its tail
// demands is done.

const (
	// MaxUnsigned is the most records that a commit leaves unsigned.
	MaxUnsigned = 4095
	// nearPacks is how many signed packs, the newest ones, a start looks at for records that
	// something else claims too. Nothing but a look at every pack would find that among the
	// older ones, and a start must not take longer in a longer log: those are for a whole
	// verification, and for an erasure before it acts on them.
	nearPacks = 1024
	// maxFirstCheckpoint bounds, in milliseconds, the time between the records of a
	// log without any checkpoint, as the versions left them that signed only ten
	// seconds after the first record. See [CheckUnsigned].
	maxFirstCheckpoint = 60_000
)

// CheckUnsigned checks, for a log that is about to be written, the records after
// the newest checkpoint, which covers signed of them: that each verifies, and that
// a crash can have left them. It returns the first fault, or nil. Nobody else may
// write meanwhile.
//
// A log that was never signed is accepted if it is as young as one that an older
// version left when it was killed. That weakens nothing: whoever can remove every
// checkpoint can as well begin a new log.
func CheckUnsigned(ctx context.Context, db *store.DB, signed, last int64) (*Fault, error) {
	if f, err := checkNumbers(ctx, db, signed+1, nearPacks); f != nil || err != nil {
		return f, err
	}
	if last <= signed {
		return nil, nil
	}
	if signed == 0 {
		if f, err := checkYoung(ctx, db); f != nil || err != nil {
			return f, err
		}
	}
	// The last signed record too: its content says whether it seals the log, and an
	// erasure of it would have been signed later.
	first := max(1, signed)
	if f, err := FirstFault(ctx, db, first, last); f != nil || err != nil {
		return f, err
	}
	erased, err := firstOf(ctx, db, `SELECT seq FROM records NOT INDEXED WHERE seq >= ? AND body IS NULL ORDER BY seq LIMIT 1`, first)
	if err != nil {
		return nil, err
	}
	if erased > 0 {
		return &Fault{Class: ForgedErasure, Seq: erased, Detail: "its content is gone and no checkpoint covers an erasure"}, nil
	}
	return checkTail(ctx, db, signed, last)
}

// checkTail applies the rule to the records from signed to last, each of which
// verifies. There may be more by now.
func checkTail(ctx context.Context, db *store.DB, signed, last int64) (*Fault, error) {
	if last <= signed {
		return nil, nil
	}
	f := &Fault{Class: UnsignedTail, Seq: signed + 1, Last: last}
	if n := last - signed; n > MaxUnsigned {
		f.Detail = fmt.Sprintf("%d records follow the newest checkpoint; a crash leaves at most %d", n, MaxUnsigned)
		return f, nil
	}
	own, err := firstOf(ctx, db, `SELECT seq FROM records NOT INDEXED WHERE seq > ? AND seq <= ? AND kind IN (?, ?, ?) ORDER BY seq LIMIT 1`,
		signed, last, record.KindRedaction, record.KindPrune, record.KindCheckpoint)
	if err != nil {
		return nil, err
	}
	if own > 0 {
		f.Seq, f.Last = own, 0
		f.Detail = "no checkpoint covers it, and the log signs a record of this kind as it writes it"
		return f, nil
	}
	sealed, err := isSealed(ctx, db, signed)
	if err != nil || !sealed {
		return nil, err
	}
	f.Detail = fmt.Sprintf("record %d seals the log: what the log itself writes after it is signed at once", signed)
	return f, nil
}

// isSealed reports whether a record seals the log. One that is gone or erased meanwhile
// does not: what allows that is signed later.
func isSealed(ctx context.Context, db *store.DB, seq int64) (bool, error) {
	var kind string
	var body []byte
	err := db.QueryRowContext(ctx, `SELECT kind, body FROM records WHERE seq = ?`, seq).Scan(&kind, &body)
	if store.IsNoRows(err) {
		return false, nil
	}
	return record.IsSealed(record.Kind(kind), body), db.Wrap("reading the last signed record", err)
}

// checkYoung checks a log without a checkpoint.
func checkYoung(ctx context.Context, db *store.DB) (*Fault, error) {
	var age, last int64
	err := db.ScanPacked(ctx, `SELECT CAST(min(max(ts) * 1.0 - min(ts), 1e15) AS INTEGER), max(seq) FROM (SELECT seq, ts FROM records NOT INDEXED UNION ALL SELECT last, ts FROM packs)`,
		nil, []any{&age, &last})
	if err != nil {
		return nil, db.Wrap("reading the records", err)
	}
	if age > maxFirstCheckpoint {
		return unsignedLog(last), nil
	}
	return nil, nil
}

// unsignedLog is the fault of a log that nothing vouches for.
func unsignedLog(last int64) *Fault {
	return &Fault{Class: UnsignedTail, Seq: 1, Last: last, Detail: "nothing of this log is signed, and a log signs its first record"}
}

// checkNumbers looks for rows that are outside the numbering, and so in no hash and under no
// checkpoint: a query would show them among the records. Besides those with numbers below 1,
// they are rows and packs that claim the numbers of a pack, of those from the record first on
// and of up to before earlier ones.
func checkNumbers(ctx context.Context, db *store.DB, first, before int64) (*Fault, error) {
	var count, least int64
	err := db.ScanPacked(ctx, `SELECT count(*), coalesce(min(seq), 0) FROM (SELECT seq FROM records NOT INDEXED WHERE seq < 1
		UNION ALL SELECT first FROM packs WHERE first < 1)`, nil, []any{&count, &least})
	if err != nil {
		return nil, db.Wrap("reading the records", err)
	}
	if count > 0 {
		return &Fault{Class: RecordAdded, Detail: fmt.Sprintf("%d rows have numbers below 1, from %d on: they belong to no chain", count, least)}, nil
	}
	twice, err := claimedTwice(ctx, db, first, before)
	if err != nil || twice == 0 {
		return nil, err
	}
	return &Fault{Class: RecordAdded, Seq: twice, Detail: "a row or another pack claims a number of the pack that has this record"}, nil
}

// ClaimedTwice returns the highest number, up to last, of a record in a pack that another pack or
// a row claims too, or of one that is pruned and in a pack or a row, 0 for none. It looks at every
// pack, and one neighbour of each.
func ClaimedTwice(ctx context.Context, db *store.DB, last int64) (seq int64, err error) {
	err = db.ScanPacked(ctx, `SELECT coalesce(max(twice), 0) FROM (`+twiceSQL+` UNION ALL `+prunedSQL+`) WHERE twice <= ?3`, []any{1, 0, last}, []any{&seq})
	return seq, db.Wrap("reading the packs", err)
}

// claimedTwice returns the lowest such number in the packs with the record first and later ones,
// and before of the earlier ones.
func claimedTwice(ctx context.Context, db *store.DB, first, before int64) (seq int64, err error) {
	err = db.ScanPacked(ctx, `SELECT coalesce(min(twice), 0) FROM (`+twiceSQL+`)`, []any{first, before}, []any{&seq})
	return seq, db.Wrap("reading the packs", err)
}

const (
	// sinceSQL is the first of ?2 packs before the one that begins with ?1 or before it.
	sinceSQL = `coalesce((SELECT first FROM packs WHERE first <= ?1 ORDER BY first DESC LIMIT 1 OFFSET ?2), min(1, ?1))`
	// twiceSQL selects the numbers that two claim.
	twiceSQL = `SELECT (SELECT n.first FROM packs AS n WHERE n.first > p.first AND n.first <= p.last ORDER BY n.first LIMIT 1) AS twice
			FROM packs AS p WHERE p.first >= ` + sinceSQL + `
		UNION ALL
		SELECT (SELECT seq FROM records WHERE seq >= p.first AND seq <= p.last ORDER BY seq LIMIT 1)
			FROM packs AS p WHERE p.first >= ` + sinceSQL
	// prunedSQL selects the numbers of packs and rows whose hashes are among those of pruned records.
	// Of the rows before the last of these, a pruning leaves but the changes of keys.
	prunedSQL = `SELECT (SELECT position + 1 FROM tree WHERE level = 0 AND position >= p.first - 1 AND position < p.last ORDER BY position LIMIT 1)
			FROM packs AS p WHERE p.first > 0
		UNION ALL
		SELECT seq FROM records WHERE seq > 0 AND seq <= (SELECT min(position, 9223372036854775806) + 1 FROM tree WHERE level = 0 ORDER BY position DESC LIMIT 1)
			AND EXISTS (SELECT 1 FROM tree WHERE level = 0 AND position = seq - 1)`
)

// firstOf returns the number that a query selects, 0 for none.
func firstOf(ctx context.Context, db *store.DB, query string, args ...any) (seq int64, err error) {
	err = db.QueryRowContext(ctx, query, args...).Scan(&seq)
	if store.IsNoRows(err) {
		return 0, nil
	}
	return seq, db.Wrap("reading the unsigned records", err)
}

package query

import (
	"context"
	"database/sql"
	"iter"
	"time"

	"github.com/agentd/agentd/auditchain/internal/record"
	"github.com/agentd/agentd/auditchain/internal/store"
)

// followInterval is how often a follower checks whether the log has changed.
// SQLite notifies nobody across processes, and the check reads one integer.
const followInterval = 200 * time.Millisecond

// Follow yields the records that the filter chooses, oldest first, and then those
// that are appended, until the context is done. With a limit, it begins with that
// many of the newest records. Filter.Order is ignored. The end of the context
// ends the sequence without an error.
func Follow(ctx context.Context, db *store.Reader, filter Filter) iter.Seq2[record.Entry, error] {
	return func(yield func(record.Entry, error) bool) {
		err := follow(ctx, db, filter, func(e record.Entry) bool { return yield(e, nil) })
		if err != nil && ctx.Err() == nil {
			yield(record.Entry{}, err)
		}
	}
}

// follow queries again whenever the database has changed.
func follow(ctx context.Context, db *store.Reader, filter Filter, yield func(record.Entry) bool) error {
	if err := skipToNewest(ctx, &db.DB, &filter); err != nil {
		return err
	}
	filter.Limit, filter.Order = 0, OldestFirst
	// The data version counts the changes by other connections than the one that
	// asks, so it is always the same one, and one that never writes.
	conn, err := db.Conn(ctx)
	if err != nil {
		return db.Wrap("following the log", err)
	}
	defer func() { _ = conn.Close() }() // nothing was written
	ticker := time.NewTicker(followInterval)
	defer ticker.Stop()
	for seen := int64(-1); ; {
		version, err := dataVersion(ctx, conn)
		if err != nil {
			return db.Wrap("following the log", err)
		}
		if version != seen {
			seen = version
			for entry, err := range Run(ctx, &db.DB, filter) {
				if err != nil {
					return err
				}
				if filter.After = entry.Seq; !yield(entry) {
					return nil
				}
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// skipToNewest makes the filter begin Limit matches before the end.
func skipToNewest(ctx context.Context, db *store.DB, filter *Filter) error {
	if filter.Limit == 0 {
		return nil
	}
	var start int64
	newest := *filter
	newest.Order, newest.After = NewestFirst, 0
	for entry, err := range Run(ctx, db, newest) {
		if err != nil {
			return err
		}
		if entry.Seq <= filter.After {
			break
		}
		start = entry.Seq - 1
	}
	filter.After = max(filter.After, start)
	return nil
}

// dataVersion returns a number that changes when another connection has changed
// the database (sqlite.org/pragma.html#pragma_data_version).
func dataVersion(ctx context.Context, conn *sql.Conn) (version int64, err error) {
	err = conn.QueryRowContext(ctx, `PRAGMA data_version`).Scan(&version)
	return version, err
}

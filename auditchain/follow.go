package auditchain

import (
	"context"
	"database/sql"
	"iter"
	"time"
)

// followInterval is how often a follower looks whether the log has grown.
const followInterval = 200 * time.Millisecond

// Follow yields the records that the filter chooses, oldest first, and then
// those that are appended, until the context is done. With a limit, it begins
// with that many of the newest records. Filter.Order is not looked at.
//
// The end of the context ends the sequence without an error.
func (r *Reader) Follow(ctx context.Context, filter Filter) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		err := r.follow(ctx, filter, func(e Entry) bool { return yield(e, nil) })
		if err != nil && ctx.Err() == nil {
			yield(Entry{}, err)
		}
	}
}

// follow queries again whenever the database has changed. It asks that one
// connection all the time, since a connection tells only what others changed.
func (r *Reader) follow(ctx context.Context, filter Filter, yield func(Entry) bool) error {
	if err := r.skipToNewest(ctx, &filter); err != nil {
		return err
	}
	filter.Limit, filter.Order = 0, OldestFirst
	conn, err := r.db.Conn(ctx)
	if err != nil {
		return fault(r.path, "following the log", err)
	}
	defer func() { _ = conn.Close() }() // nothing was written
	ticker := time.NewTicker(followInterval)
	defer ticker.Stop()
	for version := int64(-1); ; {
		changed, err := dataVersion(ctx, conn)
		if err != nil {
			return fault(r.path, "following the log", err)
		}
		if changed != version {
			version = changed
			for entry, err := range r.Query(ctx, filter) {
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
func (r *Reader) skipToNewest(ctx context.Context, filter *Filter) error {
	if filter.Limit == 0 {
		return nil
	}
	var start int64
	newest := *filter
	newest.Order, newest.After = NewestFirst, 0
	for entry, err := range r.Query(ctx, newest) {
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

// dataVersion changes when another connection has changed the database
// (sqlite.org/pragma.html#pragma_data_version).
func dataVersion(ctx context.Context, conn *sql.Conn) (version int64, err error) {
	err = conn.QueryRowContext(ctx, `PRAGMA data_version`).Scan(&version)
	return version, err
}

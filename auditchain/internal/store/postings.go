package store

import (
	"context"
	"database/sql"
	"iter"
)

// The entries of one term are in the order of the packs. What records have several terms is found
// by going along the entries of each: where one term has no pack, the others go on from its next.

// A posting is an entry of a term: a pack, and which of its records have the value.
type posting struct {
	pack int64
	positions
}

const (
	// minPostings and maxPostings bound how many entries one statement reads. A statement takes as
	// long as some fifty entries, so to pass over fewer it is better to read them: one reads the
	// more the more entries are looked at, and fewer where the other terms leave only one in
	// passedOver of those read.
	minPostings = 32
	maxPostings = 1024
	passedOver  = 64
)

// postings are the entries of one term in some packs, in the order of a search.
type postings struct {
	db          *DB
	query       string
	term        Term
	low, high   int64 // bound the packs, high exclusive
	descending  bool
	read        []posting
	next        int // of read
	used, limit int // of read, how many were of use; how many to read
	whole       bool
}

// postingsSQL returns the statement for the entries of a term in the packs from ?3 to ?4.
func (c *PackChoice) postingsSQL() string {
	return c.ordered(`SELECT pack, records, positions FROM terms WHERE field = ?1 AND value = ?2 AND pack >= ?3 AND pack <= ?4`, `pack`) + ` LIMIT ?5`
}

// common yields the packs from the number low on in which records have all terms of a choice.
func (db *DB) common(ctx context.Context, c *PackChoice, low int64) iter.Seq2[*posting, error] {
	return func(yield func(*posting, error) bool) {
		lists := make([]postings, len(c.Terms))
		for i, t := range c.Terms {
			lists[i] = postings{db: db, query: c.postingsSQL(), term: t, low: low, high: c.High, descending: c.Descending, limit: minPostings}
		}
		at := low
		if c.Descending {
			at = c.High - 1
		}
		for {
			found, agreed, err := meet(ctx, lists, at)
			if err != nil {
				yield(nil, err)
				return
			}
			if found == nil {
				return
			}
			at = found.pack
			if !agreed {
				continue
			}
			if !found.empty() && !yield(found, nil) {
				return
			}
			if c.Descending {
				at--
			} else {
				at++
			}
		}
	}
}

// meet returns the posting that all lists have in common if they have one in the pack at. It
// returns the first one behind that of a list that has none there, and nil at the end of a list.
func meet(ctx context.Context, lists []postings, at int64) (found *posting, agreed bool, err error) {
	found = &posting{positions: allPositions()}
	for i := range lists {
		entry, err := lists[i].seek(ctx, at)
		if err != nil || entry == nil {
			return nil, false, err
		}
		if i == 0 {
			at = entry.pack
		}
		if entry.pack != at {
			return entry, false, nil
		}
		found.pack = at
		found.intersect(&entry.positions)
	}
	return found, true, nil
}

// seek returns the first posting in the pack at or behind it, nil if there is none. The packs of
// successive calls are in the order of the search.
func (l *postings) seek(ctx context.Context, at int64) (*posting, error) {
	if entry := l.advance(at); entry != nil || l.whole {
		return entry, nil
	}
	if err := l.fill(ctx, at); err != nil {
		return nil, err
	}
	return l.advance(at), nil
}

// advance is [postings.seek] among what is read.
func (l *postings) advance(at int64) *posting {
	for ; l.next < len(l.read); l.next++ {
		if entry := &l.read[l.next]; entry.pack == at || (entry.pack > at) != l.descending {
			l.used++
			return entry
		}
	}
	return nil
}

// fill reads further entries, from the pack at on.
func (l *postings) fill(ctx context.Context, at int64) error {
	switch {
	case len(l.read) == 0: // the first ones
	case l.used*passedOver >= len(l.read):
		l.limit = min(2*l.limit, maxPostings)
	default:
		l.limit = max(l.limit/2, minPostings)
	}
	low, high := at, l.high-1
	if l.descending {
		low, high = l.low, at
	}
	rows, err := l.db.QueryPacked(ctx, l.query, l.term.Column, l.term.Value, low, high, l.limit)
	if err != nil {
		return err
	}
	defer rows.Close()
	l.read, l.next, l.used = l.read[:0], 0, 0
	var set sql.RawBytes
	for rows.Next() {
		var entry posting
		var records int64
		if err := rows.Scan(&entry.pack, &records, &set); err != nil {
			return err
		}
		entry.positions = readPositions(records, set)
		l.read = append(l.read, entry)
	}
	l.whole = len(l.read) < l.limit
	return rows.Err()
}

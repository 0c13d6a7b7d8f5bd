package audit

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/agentd/agentd/auditchain"
)

// A record is an entry of one of the logs that a command reads.
type record struct {
	log   int // index of the log
	agent string
	auditchain.Entry
}

// mergeLogs yields the records that the filter selects in all logs, ordered by
// time in the direction of filter.Order. It is a k-way merge: it holds one page
// of each log in memory, however long the logs are. filter.Limit applies to each
// log by itself, so a caller with a limit must stop after that many records.
func mergeLogs(ctx context.Context, logs []Log, filter auditchain.Filter) iter.Seq2[record, error] {
	return func(yield func(record, error) bool) {
		var cursors []*cursor
		for i, l := range logs {
			next, stop := iter.Pull2(l.Query(ctx, filter))
			// Deferred to the end of the merge: stop releases the iterator's
			// goroutine and its SQL statement, also when the consumer breaks off
			// early.
			defer stop()
			c := &cursor{next: next, record: record{log: i, agent: l.Agent}}
			more, err := c.advance()
			if err != nil {
				yield(record{}, err)
				return
			}
			if more {
				cursors = append(cursors, c)
			}
		}
		for len(cursors) > 0 {
			i := first(cursors, filter.Order)
			if !yield(cursors[i].record, nil) {
				return
			}
			more, err := cursors[i].advance()
			if err != nil {
				yield(record{}, err)
				return
			}
			if !more {
				cursors = slices.Delete(cursors, i, i+1)
			}
		}
	}
}

// A cursor is the position in one of the logs being merged. It holds the next
// record that the merge has not yielded yet.
type cursor struct {
	next   func() (auditchain.Entry, error, bool)
	record record
}

// advance reads the next record of the log, and reports whether there is one.
func (c *cursor) advance() (more bool, err error) {
	entry, err, more := c.next()
	c.record.Entry = entry
	return more, err
}

// first returns the index of the cursor whose record comes first in order.
// Records of the same millisecond are ordered by agent, so that the same query
// always prints the same sequence.
func first(cursors []*cursor, order auditchain.Order) int {
	// A linear scan: a fleet has a handful of logs, for which a heap would not pay.
	best := 0
	for i := range cursors {
		x, y := &cursors[i].record, &cursors[best].record
		before := cmp.Or(x.Time.Compare(y.Time), strings.Compare(x.agent, y.agent))
		if order == auditchain.NewestFirst {
			before = -before
		}
		if before < 0 {
			best = i
		}
	}
	return best
}

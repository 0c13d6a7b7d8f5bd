package main

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/agentd/agentd/auditchain"
)

// A foundRecord is a record and whose log it is in.
type foundRecord struct {
	log   int // which of the logs that were searched
	agent string
	auditchain.Entry
}

// mergeLogs yields what the filter chooses in several logs, by time, in the
// direction of the filter's order. It holds one page of each log in memory. A
// limit holds for each log.
func mergeLogs(ctx context.Context, logs []namedLog, filter auditchain.Filter) iter.Seq2[foundRecord, error] {
	return func(yield func(foundRecord, error) bool) {
		var heads []*logHead
		for i, l := range logs {
			next, stop := iter.Pull2(l.Query(ctx, filter))
			defer stop()
			head := &logHead{next: next, record: foundRecord{log: i, agent: l.agent}}
			more, err := head.advance()
			if err != nil {
				yield(foundRecord{}, err)
				return
			}
			if more {
				heads = append(heads, head)
			}
		}
		for len(heads) > 0 {
			i := nextHead(heads, filter.Order)
			if !yield(heads[i].record, nil) {
				return
			}
			more, err := heads[i].advance()
			if err != nil {
				yield(foundRecord{}, err)
				return
			}
			if !more {
				heads = slices.Delete(heads, i, i+1)
			}
		}
	}
}

// A logHead is a log that is being merged, with the first record that is not
// merged yet.
type logHead struct {
	next   func() (auditchain.Entry, error, bool)
	record foundRecord
}

// advance goes on to the log's next record, and reports whether there is one.
func (h *logHead) advance() (more bool, err error) {
	entry, err, more := h.next()
	h.record.Entry = entry
	return more, err
}

// nextHead chooses the log whose record comes next. Records of the same
// millisecond come in the order of the agents' names, so that a query always
// gives the same answer.
func nextHead(heads []*logHead, order auditchain.Order) int {
	best := 0
	for i := range heads {
		x, y := &heads[i].record, &heads[best].record
		sooner := cmp.Or(x.Time.Compare(y.Time), strings.Compare(x.agent, y.agent))
		if order == auditchain.NewestFirst {
			sooner = -sooner
		}
		if sooner < 0 {
			best = i
		}
	}
	return best
}

package audit

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
)

// follow prints records as agents append them, until parent ends. It begins with
// the newest records, as many as filter.Limit allows, or with everything after
// the record filter.After.
func follow(parent context.Context, env *cli.Env, logs []Log, filter auditchain.Filter) error {
	out := followWriter{env}
	if err := out.header(); err != nil {
		return err
	}
	from, err := out.backlog(parent, logs, filter)
	if err != nil {
		return err
	}
	// The limit applies to the backlog alone; what comes after is endless.
	filter.Limit = 0
	ctx, stop := context.WithCancelCause(parent)
	defer stop(nil)
	records := make(chan record) // unbuffered: the reader of standard output sets the pace
	var followers sync.WaitGroup
	for i, l := range logs {
		followers.Go(func() {
			own := filter
			own.After = from[i]
			for entry, err := range l.Follow(ctx, own) {
				if err != nil {
					stop(err)
					return
				}
				select {
				case records <- record{agent: l.Agent, Entry: entry}:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	// This goroutine ends when the last follower does, and closing the channel is
	// what ends the loop below.
	go func() { followers.Wait(); close(records) }()
	// Receive until the channel is closed, even after an error: only then has
	// every follower returned and left the readers, which the caller closes next.
	for r := range records {
		if ctx.Err() != nil {
			continue
		}
		if err := out.write(&r); err != nil {
			stop(err)
		}
	}
	if parent.Err() != nil {
		return nil // ctrl-c is the normal end of --follow
	}
	return context.Cause(ctx)
}

// A followWriter writes records one by one, each on a line of its own.
type followWriter struct{ env *cli.Env }

// backlog writes the records to begin with, ordered by time, and returns the
// number of the last record seen in each log.
func (w followWriter) backlog(ctx context.Context, logs []Log, filter auditchain.Filter) ([]int64, error) {
	from := make([]int64, len(logs))
	if filter.After > 0 {
		from[0] = filter.After // --after comes with exactly one log
		return from, nil
	}
	if filter.Limit == 0 { // all of them: stream, rather than collect and reverse
		filter.Order = auditchain.OldestFirst
	}
	var newest []record
	for r, err := range mergeLogs(ctx, logs, filter) {
		if err != nil {
			return nil, err
		}
		// Also for records that are not shown because other logs have newer ones:
		// following must begin after them.
		from[r.log] = max(from[r.log], r.Seq)
		if filter.Limit == 0 {
			if err := w.write(&r); err != nil {
				return nil, err
			}
		} else if len(newest) < filter.Limit {
			newest = append(newest, r)
		}
	}
	for i := range slices.Backward(newest) {
		if err := w.write(&newest[i]); err != nil {
			return nil, err
		}
	}
	return from, nil
}

// header writes the names of the columns, which JSON Lines does not have.
func (w followWriter) header() error {
	if w.env.Format == output.JSONL {
		return nil
	}
	return w.row(recordHeader())
}

// write writes one record at once, unbuffered: a reader of --follow expects each
// record when it happens.
func (w followWriter) write(r *record) error {
	if w.env.Format == output.JSONL {
		data, err := r.json()
		if err != nil {
			return err
		}
		return output.WriteJSONBytes(w.env.Stdout, output.JSONL, data)
	}
	return w.row(r.row())
}

// row writes the cells in columns of fixed width: the widest cell may be yet to
// come. A longer cell pushes the rest of its row to the right.
func (w followWriter) row(cells []string) error {
	widths := [...]int{14, 6, 24, 28, 22, 18, 8, 0}
	var line strings.Builder
	for i, width := range widths {
		fmt.Fprintf(&line, "%-*s  ", width, output.Printable(cells[i]))
	}
	_, err := fmt.Fprintln(w.env.Stdout, strings.TrimRight(line.String(), " "))
	return err
}

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/internal/output"
)

// followLogs prints records as they come, until ctx ends. It begins with the
// newest ones, as many as the filter's limit; or, where the filter says after
// which record to begin, with all from there on.
func (a *app) followLogs(parent context.Context, logs []namedLog, filter auditchain.Filter) error {
	if err := a.writeFollowedHeader(); err != nil {
		return err
	}
	from, err := a.writeNewest(parent, logs, filter)
	if err != nil {
		return err
	}
	filter.Limit = 0
	ctx, stop := context.WithCancelCause(parent)
	defer stop(nil)
	records := make(chan foundRecord) // unbuffered: the reader sets the pace
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
				case records <- foundRecord{agent: l.agent, Entry: entry}:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	go func() { followers.Wait(); close(records) }()
	for r := range records { // to the end, so that no follower is left behind
		if ctx.Err() != nil {
			continue
		}
		if err := a.writeFollowed(&r); err != nil {
			stop(err)
		}
	}
	if parent.Err() != nil {
		return nil // this is how it is meant to end
	}
	return context.Cause(ctx)
}

// writeNewest prints what there is to begin with, by time, and returns the
// number of the last record seen in each log.
func (a *app) writeNewest(ctx context.Context, logs []namedLog, filter auditchain.Filter) ([]int64, error) {
	from := make([]int64, len(logs))
	if filter.After > 0 {
		from[0] = filter.After // only one log can be meant
		return from, nil
	}
	if filter.Limit == 0 { // all, however many: as they come
		filter.Order = auditchain.OldestFirst
	}
	var newest []foundRecord
	for r, err := range mergeLogs(ctx, logs, filter) {
		if err != nil {
			return nil, err
		}
		from[r.log] = max(from[r.log], r.Seq)
		if filter.Limit == 0 {
			if err := a.writeFollowed(&r); err != nil {
				return nil, err
			}
		} else if len(newest) < filter.Limit {
			newest = append(newest, r)
		}
	}
	for i := range slices.Backward(newest) {
		if err := a.writeFollowed(&newest[i]); err != nil {
			return nil, err
		}
	}
	return from, nil
}

// followedWidths are the columns of a table that is written row by row, and
// cannot know what is still to come.
func followedWidths() []int { return []int{14, 6, 24, 28, 22, 18, 8, 0} }

func (a *app) writeFollowedHeader() error {
	if a.output == output.JSONL {
		return nil
	}
	return a.writeFollowedRow(recordHeader())
}

func (a *app) writeFollowed(r *foundRecord) error {
	if a.output == output.JSONL {
		data, err := r.json()
		if err != nil {
			return err
		}
		return output.WriteJSONBytes(a.stdout, output.JSONL, data)
	}
	return a.writeFollowedRow(recordRow(r))
}

func (a *app) writeFollowedRow(cells []string) error {
	var row strings.Builder
	for i, width := range followedWidths() {
		fmt.Fprintf(&row, "%-*s  ", width, output.Printable(cells[i]))
	}
	_, err := fmt.Fprintln(a.stdout, strings.TrimRight(row.String(), " "))
	return err
}

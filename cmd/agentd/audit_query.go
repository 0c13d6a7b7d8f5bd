package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/internal/output"
)

// The orders of `agentd audit query`.
const (
	orderTail   = ""       // chooses the newest, prints them newest last
	orderNewest = "newest" // newest first
	orderOldest = "oldest" // oldest first
)

// queryFlags are the flags of `agentd audit query`.
type queryFlags struct {
	logs    logChoice
	records recordFilter
	limit   int
	after   int64
	order   string
	follow  bool
}

func (a *app) auditQueryCommand() *cobra.Command {
	var flags queryFlags
	cmd := &cobra.Command{
		Use:   "query",
		Short: "Print records, the newest last",
		Long: "Print the newest records, the newest last. All conditions that are given must hold.\n\n" +
			"With --order newest or oldest the records of one log are paged through from that end: when\n" +
			"there are more, the --after of the next page is told on standard error. Paging costs the\n" +
			"same on every page, however long the log. For whole logs there is `agentd audit export`.\n\n" +
			"Payloads that a capability has captured are shown only with --kind payload_capture.\n\n" +
			"With --follow, new records are printed as they come, until ctrl-c.",
		Example: "  agentd audit query --kind capability_schema_violation\n" +
			"  agentd audit query --agent concierge --since 2h -o jsonl | jq .violations\n" +
			"  agentd audit query --agent concierge --order oldest --limit 500 --after 500\n" +
			"  agentd audit query --follow --peer agent://pr-reviewer",
		Args: cobra.NoArgs,
		RunE: a.do(func(ctx context.Context, _ []string) error {
			filter, err := flags.filter(time.Now())
			if err != nil {
				return err
			}
			if flags.follow && a.output == output.JSON {
				return usage("--follow has no end, and so is no JSON value: use -o jsonl")
			}
			run := func(logs []namedLog) error { return a.query(ctx, logs, filter, flags.order) }
			if flags.follow {
				run = func(logs []namedLog) error { return a.followLogs(ctx, logs, filter) }
			}
			if flags.after > 0 { // a number means something in one log only
				return a.openLog(ctx, flags.logs, func(log namedLog) error { return run([]namedLog{log}) })
			}
			return a.openLogs(ctx, flags.logs, run)
		}),
	}
	flags.logs.register(cmd)
	flags.records.register(cmd)
	f := cmd.Flags()
	f.IntVar(&flags.limit, "limit", 100, "at most this many; 0 is no limit")
	f.StringVar(&flags.order, "order", orderTail, "newest or oldest first (default: the newest, newest last)")
	f.Int64Var(&flags.after, "after", 0, "go on behind the record with this number, in the direction of --order (default: oldest)")
	f.BoolVar(&flags.follow, "follow", false, "then print new records as they come")
	cmd.MarkFlagsMutuallyExclusive("follow", "order")
	cmd.MarkFlagsMutuallyExclusive("follow", "until")
	return cmd
}

func (q *queryFlags) filter(now time.Time) (auditchain.Filter, error) {
	f, err := q.records.filter(now)
	if err != nil {
		return f, err
	}
	f.Limit, f.After, f.Order = q.limit, q.after, auditchain.NewestFirst
	if q.order == orderTail && q.after > 0 {
		q.order = orderOldest
	}
	switch q.order {
	case orderTail, orderNewest:
	case orderOldest:
		f.Order = auditchain.OldestFirst
	default:
		return f, usage("--order: must be newest or oldest, not %q", q.order)
	}
	if q.limit < 0 || q.after < 0 {
		return f, usage("--limit and --after must not be negative")
	}
	return f, nil
}

// query prints one page, and how to get the next one.
func (a *app) query(ctx context.Context, logs []namedLog, filter auditchain.Filter, order string) error {
	limit := filter.Limit
	switch {
	case limit > 0 && limit < math.MaxInt:
		filter.Limit++ // one more, to know whether there are more
	case limit == 0 && order == orderTail:
		// All of them, the newest last: there is nothing to turn round.
		order, filter.Order = orderOldest, auditchain.OldestFirst
	}
	var tail []foundRecord // of a page that is chosen in one order and printed in the other
	var shown int
	var last foundRecord
	more := false
	out := a.recordWriter()
	for r, err := range mergeLogs(ctx, logs, filter) {
		if err != nil {
			return err
		}
		if more = limit > 0 && shown == limit; more {
			break
		}
		shown, last = shown+1, r
		if order == orderTail {
			tail = append(tail, r)
		} else if err := out.write(&r); err != nil {
			return err
		}
	}
	for i := range slices.Backward(tail) {
		if err := out.write(&tail[i]); err != nil {
			return err
		}
	}
	if err := out.end(); err != nil {
		return err
	}
	if more {
		fmt.Fprintln(a.stderr, nextPage(&last, order, len(logs) == 1))
	}
	return nil
}

// nextPage tells how to see what comes after the last record of a page.
func nextPage(last *foundRecord, order string, oneLog bool) string {
	switch {
	case !oneLog: // the numbers of several logs have nothing to do with each other
		return "there are more records: raise --limit, or page through one log with --agent or --db"
	case order == orderTail:
		return fmt.Sprintf("there are older records: go on with --order newest --after %d", last.Seq)
	}
	return fmt.Sprintf("there are more records: go on with --order %s --after %d", order, last.Seq)
}

// queryLogs collects what the filter chooses in several logs, oldest first.
// With a limit, it keeps as many from the end that the order begins at.
func queryLogs(ctx context.Context, logs []namedLog, filter auditchain.Filter) ([]foundRecord, error) {
	var found []foundRecord
	for r, err := range mergeLogs(ctx, logs, filter) {
		if err != nil {
			return nil, err
		}
		if found = append(found, r); len(found) == filter.Limit {
			break
		}
	}
	if filter.Order == auditchain.NewestFirst {
		slices.Reverse(found)
	}
	return found, nil
}

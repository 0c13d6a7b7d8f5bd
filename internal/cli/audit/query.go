package audit

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
)

// The values of --order.
const (
	orderTail   = ""       // select the newest records, print them oldest first
	orderNewest = "newest" // newest first
	orderOldest = "oldest" // oldest first
)

// A QueryRequest is one `agentd audit query`.
type QueryRequest struct {
	Logs       Choice
	Conditions Conditions
	// Limit is the number of records to print at most; 0 prints all.
	Limit int
	// After continues after the record with this number, in the direction of Order.
	After int64
	// Order is "", newest or oldest.
	Order string
	// Follow keeps printing new records as agents append them.
	Follow bool
}

// Query prints records: one page of them, or with Follow an endless stream.
func Query(ctx context.Context, env *cli.Env, q QueryRequest) error {
	filter, err := q.filter(time.Now())
	if err != nil {
		return err
	}
	if q.Follow && env.Format == output.JSON {
		return cli.Usage("--follow never ends, so it cannot print one JSON value: use -o jsonl")
	}
	run := func(logs []Log) error { return writePage(ctx, env, logs, filter, q.Order) }
	if q.Follow {
		run = func(logs []Log) error { return follow(ctx, env, logs, filter) }
	}
	if q.After > 0 { // record numbers are those of a single log
		return withOneLog(ctx, env, q.Logs, func(log Log) error { return run([]Log{log}) })
	}
	return withLogs(ctx, env, q.Logs, run)
}

// filter converts the request, and settles the order that --after implies.
func (q *QueryRequest) filter(now time.Time) (auditchain.Filter, error) {
	f, err := q.Conditions.filter(now)
	if err != nil {
		return f, err
	}
	f.Limit, f.After, f.Order = q.Limit, q.After, auditchain.NewestFirst
	// After a given record, the default order reads forward: "the tail" of what
	// follows would skip records between the two pages.
	if q.Order == orderTail && q.After > 0 {
		q.Order = orderOldest
	}
	switch q.Order {
	// Both select from the newest end; they differ only in how the page is printed.
	case orderTail, orderNewest:
	case orderOldest:
		f.Order = auditchain.OldestFirst
	default:
		return f, cli.Usage("--order: must be newest or oldest, not %q", q.Order)
	}
	if q.Limit < 0 || q.After < 0 {
		return f, cli.Usage("--limit and --after must not be negative")
	}
	return f, nil
}

// writePage prints one page, and on standard error how to get the next one.
func writePage(ctx context.Context, env *cli.Env, logs []Log, filter auditchain.Filter, order string) error {
	limit := filter.Limit
	switch {
	case limit > 0 && limit < math.MaxInt:
		filter.Limit++ // one more than is printed shows whether there is another page
	case limit == 0 && order == orderTail:
		// Selecting all from the newest end and reversing them is selecting them
		// from the oldest end, without holding them in memory.
		order, filter.Order = orderOldest, auditchain.OldestFirst
	}
	var tail []record // selected newest first, printed oldest first
	var printed int
	var last record
	more := false
	out := newRecordWriter(env)
	for r, err := range mergeLogs(ctx, logs, filter) {
		if err != nil {
			return err
		}
		if more = limit > 0 && printed == limit; more {
			break
		}
		printed, last = printed+1, r
		if order == orderTail {
			tail = append(tail, r)
		} else if err := out.write(&r); err != nil {
			return err
		}
	}
	// In the default order nothing has been printed so far.
	for i := range slices.Backward(tail) {
		if err := out.write(&tail[i]); err != nil {
			return err
		}
	}
	if err := out.close(); err != nil {
		return err
	}
	if more {
		fmt.Fprintln(env.Stderr, nextPage(&last, order, len(logs) == 1))
	}
	return nil
}

// nextPage describes how to see what follows the last record of a page.
func nextPage(last *record, order string, oneLog bool) string {
	switch {
	case !oneLog: // there is no --after across logs
		return "there are more records: raise --limit, or page through one log with --agent or --db"
	case order == orderTail:
		return fmt.Sprintf("there are older records: continue with --order newest --after %d", last.Seq)
	}
	return fmt.Sprintf("there are more records: continue with --order %s --after %d", order, last.Seq)
}

package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/internal/progress"
)

// A RedactRequest is one `agentd audit redact`.
type RedactRequest struct {
	Logs Choice
	// Matches are the values of --match.
	Matches []string
	Reason  string
	// Yes skips the confirmation.
	Yes bool
}

// Redact erases the content of the matching records of each chosen log.
func Redact(ctx context.Context, env *cli.Env, r RedactRequest) error {
	filter, err := parseMatches(r.Matches, time.Now())
	if err != nil {
		return err
	}
	if err := checkReason(r.Reason); err != nil {
		return err
	}
	return eraser{
		env: env, logs: r.Logs, yes: r.Yes, done: "redacted", doing: "redacting",
		warning: "The content of these records will be gone for good.",
		preview: func(ctx context.Context, log Log) (loss, error) { return redactable(ctx, env, log, filter) },
		erase: func(ctx context.Context, keeper control.AuditKeeper) (auditchain.Erasure, error) {
			return keeper.Redact(ctx, filter, r.Reason)
		},
	}.run(ctx)
}

// A PruneRequest is one `agentd audit prune`.
type PruneRequest struct {
	Logs Choice
	// OlderThan is an age or a time in RFC 3339.
	OlderThan string
	Reason    string
	// Yes skips the confirmation.
	Yes bool
}

// Prune removes the old records of each chosen log.
func Prune(ctx context.Context, env *cli.Env, r PruneRequest) error {
	before, err := parseTime("--older-than", r.OlderThan, time.Now())
	if err != nil {
		return err
	}
	if err := checkReason(r.Reason); err != nil {
		return err
	}
	return eraser{
		env: env, logs: r.Logs, yes: r.Yes, done: "pruned", doing: "pruning",
		warning: "These records will be gone for good.",
		preview: func(ctx context.Context, log Log) (loss, error) { return prunable(ctx, log, before) },
		erase: func(ctx context.Context, keeper control.AuditKeeper) (auditchain.Erasure, error) {
			return keeper.Prune(ctx, before, r.Reason)
		},
	}.run(ctx)
}

// checkReason rejects an empty reason before anything is opened: the record of the
// erasure needs one.
func checkReason(reason string) error {
	if strings.TrimSpace(reason) == "" {
		return cli.Usage("--reason: must not be empty; it is recorded")
	}
	return nil
}

// A loss is what a log would lose: how many records about, 0 for nothing, and which.
type loss struct {
	count int64
	text  string
}

// redactable returns what a redaction would erase from a log. It leaves out what [auditchain.Log.Redact] skips: records that are
// erased already, and the kinds that the chain itself depends on.
func redactable(ctx context.Context, env *cli.Env, log Log, filter auditchain.Filter) (loss, error) {
	line := progress.New(env.Stderr, env.Getenv, "searching "+output.Printable(log.Agent), "records to redact")
	defer line.End()
	kept := []auditchain.Kind{auditchain.KindRedaction, auditchain.KindPrune, auditchain.KindCheckpoint}
	var count, first, last int64
	for entry, err := range log.Query(ctx, filter) {
		if err != nil {
			return loss{}, err
		}
		if entry.Erased() || slices.Contains(kept, entry.Kind) {
			continue
		}
		if count++; first == 0 {
			first = entry.Seq
		}
		last = entry.Seq
		line.Set(count, 0)
	}
	return loss{count, fmt.Sprintf("the content of %d records, between number %d and %d", count, first, last)}, nil
}

// prunable returns which records of a log are older than a time. Checkpoint records stay: they carry the changes of the signing key.
func prunable(ctx context.Context, log Log, before time.Time) (loss, error) {
	kinds := slices.DeleteFunc(auditchain.Kinds(), func(k auditchain.Kind) bool { return k == auditchain.KindCheckpoint })
	var ends [2]auditchain.Entry
	// Two queries for one record each find both ends without reading the records in
	// between, which may be millions.
	for i, order := range []auditchain.Order{auditchain.OldestFirst, auditchain.NewestFirst} {
		for entry, err := range log.Query(ctx, auditchain.Filter{Kinds: kinds, Until: before, Limit: 1, Order: order}) {
			if err != nil {
				return loss{}, err
			}
			ends[i] = entry
		}
	}
	first, last := &ends[0], &ends[1]
	if first.Seq == 0 {
		return loss{}, nil
	}
	return loss{last.Seq - first.Seq + 1, fmt.Sprintf("records %d to %d, written from %s to %s", first.Seq, last.Seq,
		first.Time.Format(time.RFC3339), last.Time.Format(time.RFC3339))}, nil
}

// An eraser runs a redaction or a pruning: it previews what each log would lose,
// asks for confirmation, and then changes the logs one by one.
type eraser struct {
	env  *cli.Env
	logs Choice
	yes  bool
	// done is the participle for the affected records, such as "redacted", and doing that
	// of the work.
	done, doing string
	// warning is the last line before the question.
	warning string
	// preview returns what one log would lose.
	preview func(ctx context.Context, log Log) (loss, error)
	// erase changes one log.
	erase func(ctx context.Context, keeper control.AuditKeeper) (auditchain.Erasure, error)
}

// An erasedLog is the outcome for one log.
type erasedLog struct {
	Agent string `json:"agent"`
	// Count is the number of records erased or removed. Records are the numbers
	// of the records that document it.
	Count   int64   `json:"count"`
	Records []int64 `json:"records"`
	// Error is why the log was not changed, or not completely.
	Error string `json:"error,omitempty"`
}

// run continues with the other logs when one fails, and prints what was done in
// all of them: an erasure that happened must not go unreported.
func (e eraser) run(ctx context.Context) error {
	affected, err := e.affected(ctx)
	if err != nil {
		return err
	}
	if len(affected) == 0 {
		fmt.Fprintf(e.env.Stderr, "no audit records match: nothing is %s.\n", e.done)
		return e.write([]erasedLog{})
	}
	if !e.yes {
		var lines []string
		for _, a := range affected {
			lines = append(lines, fmt.Sprintf("%s: %s", output.Printable(a.Agent), a.text))
		}
		if err := confirm(ctx, e.env, append(lines, e.warning)); err != nil {
			return err
		}
	}
	all := []erasedLog{}
	var errs []error
	for _, s := range affected {
		one := erasedLog{Agent: s.Agent, Records: []int64{}}
		err := daemon.WithAuditKeeper(ctx, s.DB, s.Socket, func(keeper control.AuditKeeper) error {
			defer watchErasure(ctx, e.env, e.doing, s.Source, s.count)()
			done, err := e.erase(ctx, keeper)
			// Set also when err is not nil: an erasure that failed half way has
			// done something.
			one.Count, one.Records = done.Count, append(one.Records, done.Records...)
			return err
		})
		if err != nil {
			one.Error = err.Error()
			errs = append(errs, err)
		}
		all = append(all, one)
	}
	return errors.Join(errors.Join(errs...), e.write(all))
}

// An affectedLog is a log that would lose something.
type affectedLog struct {
	Source
	loss
}

// affected returns the logs that would lose something, and what. It closes them
// again before any of them is changed: erased pages stay in SQLite's write-ahead
// log for as long as a reader is open.
func (e eraser) affected(ctx context.Context) (affected []affectedLog, err error) {
	err = withLogs(ctx, e.env, e.logs, func(logs []Log) error {
		for _, l := range logs {
			loss, err := e.preview(ctx, l)
			if err != nil {
				return err
			}
			if loss.count > 0 {
				affected = append(affected, affectedLog{l.Source, loss})
			}
		}
		return nil
	})
	return affected, err
}

func (e eraser) write(all []erasedLog) error {
	if e.env.Format != output.Table {
		return cli.WriteList(e.env, all)
	}
	for _, one := range all {
		if one.Error != "" && one.Count == 0 {
			continue // the returned error has it
		}
		numbers := make([]string, len(one.Records))
		for i, seq := range one.Records {
			numbers[i] = strconv.FormatInt(seq, 10)
		}
		fmt.Fprintf(e.env.Stdout, "%s: %d records %s, under record %s\n", one.Agent, one.Count, e.done, strings.Join(numbers, ", "))
	}
	return nil
}

package audit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"time"

	"github.com/agentd/agentd/auditchain/export"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/otlp"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/internal/progress"
)

// An ExportRequest is one `agentd audit export`.
type ExportRequest struct {
	Logs       Choice
	Conditions Conditions
	// Format is jsonl, ocsf, otlp or cef.
	Format string
	// To is the file to append to; "-" is standard output, and what [otlpTarget] knows is a
	// collector.
	To string
	// Cursor names the position to continue from and to store; "" is none.
	Cursor string
	// Follow keeps exporting new records as the agent appends them.
	Follow bool

	refused int64 // by a collector
}

// Export writes the records of one log, oldest first, for another system.
func Export(ctx context.Context, env *cli.Env, r ExportRequest) error {
	var opts export.Options
	collector, err := otlpTarget(env, r.To)
	switch {
	case err != nil:
		return err
	case collector != nil && r.Format == "":
		r.Format = export.OTLP.String()
	case collector != nil && r.Format != export.OTLP.String():
		return cli.Usage("--format: a collector takes otlp, not %q", r.Format)
	case r.Format == "":
		return cli.Usage("--format: must be one of %v", export.Formats())
	}
	if err := opts.Format.UnmarshalText([]byte(r.Format)); err != nil {
		return cli.Usage("--format: must be one of %v, not %q", export.Formats(), r.Format)
	}
	opts.Follow = r.Follow
	if opts.Filter, err = r.Conditions.filter(time.Now()); err != nil {
		return err
	}
	return withOneLog(ctx, env, r.Logs, func(log Log) error { return r.run(ctx, env, log, collector, opts) })
}

func (r *ExportRequest) run(ctx context.Context, env *cli.Env, log Log, collector *otlp.Config, opts export.Options) (err error) {
	cursor, err := openCursor(log.Path(), r.Cursor)
	if err != nil {
		return err
	}
	defer cursor.Close()
	var sink export.Sink = export.WriterSink{Writer: env.Stdout}
	var collected *otlpSink
	switch {
	case collector != nil:
		collected = &otlpSink{client: otlp.NewClient(*collector), follow: r.Follow, stderr: env.Stderr}
		defer collected.client.Close()
		sink = collected
	case r.To != "-":
		file, err := r.openFile()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		sink = file
	}
	var line *progress.Line
	if !r.Follow { // which has no end to come to
		line = progress.New(env.Stderr, env.Getenv, "exporting "+output.Printable(log.Agent), "records")
		if last, lerr := log.LastSeq(ctx); lerr == nil {
			opts.Progress = func(seq int64) { line.Set(seq, last) }
		}
	}
	result, err := export.Run(ctx, log.Reader, cursor, sink, opts)
	line.End()
	// After an error, too, the user needs to know how far the export came.
	if err == nil || result.Exported > 0 {
		if collected != nil {
			r.refused = collected.refused
		}
		err = errors.Join(err, r.report(env, log.Agent, result))
	}
	return err
}

// openCursor opens the cursor called name, beside the database. Without a name
// the export starts at the beginning and stores no position.
func openCursor(db, name string) (*export.Cursor, error) {
	if name == "" {
		return export.NewCursor(), nil
	}
	// The name becomes part of a file name.
	if !regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`).MatchString(name) {
		return nil, cli.Usage("--cursor: a name has 1 to 64 letters, digits, _ or -, unlike %q", name)
	}
	return export.OpenCursor(db + ".cursor." + name)
}

// openFile opens the file to append to. Without a cursor the file must be new or
// empty: the export starts at the first record, which the file may have already.
func (r *ExportRequest) openFile() (*export.FileSink, error) {
	info, err := os.Stat(r.To)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case err == nil && r.Cursor == "" && info.Size() > 0:
		return nil, cli.Usage("--to: %s is not empty: continue an export with --cursor <name>, or choose a new file", r.To)
	}
	return export.OpenFileSink(r.To)
}

// report prints what was exported; on standard error when standard output
// carries the records.
func (r *ExportRequest) report(env *cli.Env, agent string, result export.Result) error {
	if env.Format != output.Table && r.To != "-" {
		return env.WriteJSON(struct {
			Agent    string `json:"agent"`
			Exported int64  `json:"exported"`
			Missed   int64  `json:"missed"`
			Last     int64  `json:"last"`
			Refused  int64  `json:"refused,omitempty"`
		}{agent, result.Exported, result.Missed, result.Last, r.refused})
	}
	fmt.Fprintf(env.Stderr, "%s: %d records exported, up to number %d\n", agent, result.Exported, result.Last)
	if r.refused > 0 {
		fmt.Fprintf(env.Stderr, "%s: %d records were refused by the collector\n", agent, r.refused)
	}
	if result.Missed > 0 {
		fmt.Fprintf(env.Stderr, "%s: %d records were pruned before they could be exported\n", agent, result.Missed)
	}
	return nil
}

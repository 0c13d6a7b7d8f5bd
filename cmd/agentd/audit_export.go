package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/auditchain/export"
	"github.com/agentd/agentd/internal/output"
)

// exportFlags are the flags of `agentd audit export`.
type exportFlags struct {
	logs               logChoice
	records            recordFilter
	format, to, cursor string
	follow             bool
}

func (a *app) auditExportCommand() *cobra.Command {
	var flags exportFlags
	cmd := &cobra.Command{
		Use:   "export --format <format>",
		Short: "Write a log for a SIEM: JSON lines, OCSF, OTLP or CEF",
		Long: "Write the records of one log, oldest first, in the format of whoever collects them:\n\n" +
			"  jsonl  the record as it is, one JSON object a line\n" +
			"  ocsf   Open Cybersecurity Schema Framework events\n" +
			"  otlp   OpenTelemetry log records, OTLP/JSON\n" +
			"  cef    ArcSight Common Event Format\n\n" +
			"With --cursor, the next export with the same name goes on where this one ended, also after\n" +
			"a crash: nothing is lost, and in a file nothing is doubled. The cursor is kept beside the\n" +
			"database. A receiver of standard output may see its last records again; each has the log's\n" +
			"name and a number, which tell. Nothing is read ahead of a slow receiver.\n\n" +
			"Conditions choose records as in `agentd audit query`; captured payloads are exported only with\n" +
			"--kind payload_capture. With --follow, new records are written as they come, until ctrl-c.",
		Example: "  agentd audit export --agent reviewer --format ocsf --to reviewer.ocsf --cursor siem\n" +
			"  agentd audit export --agent reviewer --format cef --cursor syslog --follow | logger",
		Args: cobra.NoArgs,
		RunE: a.do(func(ctx context.Context, _ []string) error {
			var opts export.Options
			if err := opts.Format.UnmarshalText([]byte(flags.format)); err != nil {
				return usage("--format: must be one of %v, not %q", export.Formats(), flags.format)
			}
			opts.Follow = flags.follow
			var err error
			if opts.Filter, err = flags.records.filter(time.Now()); err != nil {
				return err
			}
			return a.openLog(ctx, flags.logs, func(log namedLog) error { return a.export(ctx, log, flags, opts) })
		}),
	}
	flags.logs.register(cmd)
	flags.records.register(cmd)
	f := cmd.Flags()
	f.StringVar(&flags.format, "format", "", "jsonl, ocsf, otlp or cef (required)")
	f.StringVar(&flags.to, "to", "-", "append to this file; - is standard output")
	f.StringVar(&flags.cursor, "cursor", "", "name under which to remember how far the export has come")
	f.BoolVar(&flags.follow, "follow", false, "then write new records as they come")
	_ = cmd.MarkFlagRequired("format") // fails only for a flag that does not exist
	return cmd
}

func (a *app) export(ctx context.Context, log namedLog, flags exportFlags, opts export.Options) (err error) {
	cursor, err := openCursor(log.Path(), flags.cursor)
	if err != nil {
		return err
	}
	defer cursor.Close()
	var sink export.Sink = export.WriterSink{Writer: a.stdout}
	if flags.to != "-" {
		file, err := openExportFile(flags)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		sink = file
	}
	result, err := export.Run(ctx, log.Reader, cursor, sink, opts)
	if err == nil || result.Exported > 0 {
		err = errors.Join(err, a.writeExported(log.agent, flags, result))
	}
	return err
}

// openCursor opens the cursor of a name, beside the database. Without a name
// it begins at the start and is forgotten.
func openCursor(db, name string) (*export.Cursor, error) {
	if name == "" {
		return export.NewCursor(), nil
	}
	if !regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`).MatchString(name) {
		return nil, usage("--cursor: a name has 1 to 64 letters, digits, _ or -, unlike %q", name)
	}
	return export.OpenCursor(db + ".cursor." + name)
}

// openExportFile opens the file to append to. Without a cursor it must be new:
// records that are in it already would be doubled.
func openExportFile(flags exportFlags) (*export.FileSink, error) {
	info, err := os.Stat(flags.to)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case err == nil && flags.cursor == "" && info.Size() > 0:
		return nil, usage("--to: %s has content already: go on with an export by --cursor <name>, or give a new file", flags.to)
	}
	return export.OpenFileSink(flags.to)
}

// writeExported tells what was exported: on standard error where standard
// output has the records.
func (a *app) writeExported(agent string, flags exportFlags, r export.Result) error {
	if a.output != output.Table && flags.to != "-" {
		return output.WriteJSON(a.stdout, a.output, struct {
			Agent    string `json:"agent"`
			Exported int64  `json:"exported"`
			Missed   int64  `json:"missed"`
			Last     int64  `json:"last"`
		}{agent, r.Exported, r.Missed, r.Last})
	}
	fmt.Fprintf(a.stderr, "%s: %d records exported, up to number %d\n", agent, r.Exported, r.Last)
	if r.Missed > 0 {
		fmt.Fprintf(a.stderr, "%s: %d records were pruned before they could be exported\n", agent, r.Missed)
	}
	return nil
}

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/internal/output"
)

// queryFlags are the flags of `agentd audit query`.
type queryFlags struct {
	logs                                        logChoice
	kinds                                       []string
	tenant, peer, capability, side, correlation string
	session, text, since, until                 string
	limit                                       int
}

func (a *app) auditQueryCommand() *cobra.Command {
	var flags queryFlags
	cmd := &cobra.Command{
		Use:   "query",
		Short: "Print records, the newest last",
		Example: "  agentd audit query --kind capability_schema_violation\n" +
			"  agentd audit query --agent concierge --since 2h -o jsonl | jq .violations",
		Args: cobra.NoArgs,
		RunE: a.do(func(ctx context.Context, _ []string) error {
			filter, err := flags.filter(time.Now())
			if err != nil {
				return err
			}
			return a.openLogs(ctx, flags.logs, func(logs []namedLog) error {
				found, err := queryLogs(ctx, logs, filter)
				if err != nil {
					return err
				}
				return a.writeRecords(found)
			})
		}),
	}
	flags.logs.register(cmd)
	f := cmd.Flags()
	f.StringSliceVar(&flags.kinds, "kind", nil, "only records of these kinds, like capability_schema_violation,lifecycle")
	f.StringVar(&flags.tenant, "tenant", "", "only records of this tenant")
	f.StringVar(&flags.peer, "peer", "", "only records about this agent://id")
	f.StringVar(&flags.capability, "capability", "", "only records about this capability")
	f.StringVar(&flags.side, "side", "", "request or response")
	f.StringVar(&flags.correlation, "correlation", "", "only records of this call")
	f.StringVar(&flags.session, "session", "", "only records of this session")
	f.StringVar(&flags.text, "text", "", "only records whose body holds this text")
	f.StringVar(&flags.since, "since", "", "not older than this: RFC 3339, or a duration before now like 2h")
	f.StringVar(&flags.until, "until", "", "older than this: RFC 3339, or a duration before now like 10m")
	f.IntVar(&flags.limit, "limit", 100, "at most this many, the newest; 0 is no limit")
	return cmd
}

func (q queryFlags) filter(now time.Time) (f auditchain.Filter, err error) {
	f = auditchain.Filter{
		Tenant: q.tenant, Peer: q.peer, Capability: q.capability, Side: auditchain.Side(q.side),
		Correlation: q.correlation, Session: q.session, Text: q.text, Limit: q.limit, Order: auditchain.NewestFirst,
	}
	for _, k := range q.kinds {
		if !auditchain.Kind(k).Valid() {
			return f, usage("--kind: there is no kind %q; there are %v", k, auditchain.Kinds())
		}
		f.Kinds = append(f.Kinds, auditchain.Kind(k))
	}
	if q.side != "" && f.Side != auditchain.SideRequest && f.Side != auditchain.SideResponse {
		return f, usage("--side: must be request or response, not %q", q.side)
	}
	if q.limit < 0 {
		return f, usage("--limit: must not be negative")
	}
	if f.Since, err = parseTime("--since", q.since, now); err != nil {
		return f, err
	}
	f.Until, err = parseTime("--until", q.until, now)
	return f, err
}

// parseTime reads RFC 3339, or a duration before now.
func parseTime(flag, s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}, usage("%s: must be like 2026-01-31T12:00:00Z or like 2h, not %q", flag, s)
	}
	return t, nil
}

// A foundRecord is a record and whose log it is in.
type foundRecord struct {
	agent string
	auditchain.Entry
}

// queryLogs merges the logs by time, and keeps the newest records.
func queryLogs(ctx context.Context, logs []namedLog, filter auditchain.Filter) ([]foundRecord, error) {
	var found []foundRecord
	for _, l := range logs {
		for entry, err := range l.Query(ctx, filter) {
			if err != nil {
				return nil, err
			}
			found = append(found, foundRecord{agent: l.agent, Entry: entry})
		}
	}
	slices.SortStableFunc(found, func(x, y foundRecord) int {
		return cmp.Or(x.Time.Compare(y.Time), cmp.Compare(x.agent, y.agent), cmp.Compare(x.Seq, y.Seq))
	})
	if filter.Limit > 0 && len(found) > filter.Limit {
		found = found[len(found)-filter.Limit:]
	}
	return found, nil
}

func (a *app) writeRecords(found []foundRecord) error {
	switch a.output {
	case output.JSONL:
		for i := range found {
			data, err := found[i].json()
			if err != nil {
				return err
			}
			if err := output.WriteJSONBytes(a.stdout, a.output, data); err != nil {
				return err
			}
		}
		return nil
	case output.JSON:
		var all bytes.Buffer
		all.WriteByte('[')
		for i := range found {
			data, err := found[i].json()
			if err != nil {
				return err
			}
			if i > 0 {
				all.WriteByte(',')
			}
			all.Write(data)
		}
		all.WriteByte(']')
		return output.WriteJSONBytes(a.stdout, a.output, all.Bytes())
	}
	if len(found) == 0 {
		fmt.Fprintln(a.stderr, "no audit records match the query.")
		return nil
	}
	return output.WriteTable(a.stdout, recordHeader(), recordRows(found))
}

// json is the record in the shape of its kind, with agent and seq in front.
func (r *foundRecord) json() ([]byte, error) {
	record, err := json.Marshal(&r.Entry)
	if err != nil {
		return nil, err
	}
	front, err := json.Marshal(struct {
		Agent string `json:"agent"`
		Seq   int64  `json:"seq"`
		Hash  string `json:"hash"`
	}{r.agent, r.Seq, fmt.Sprintf("%x", r.Hash[:])})
	if err != nil {
		return nil, err
	}
	return append(append(front[:len(front)-1], ','), record[1:]...), nil
}

func recordHeader() []string {
	return []string{"AGENT", "SEQ", "TIME", "KIND", "PEER", "CAPABILITY", "SIDE", "DETAIL"}
}

func recordRows(found []foundRecord) [][]string {
	rows := make([][]string, len(found))
	for i := range found {
		r := &found[i]
		rows[i] = []string{
			r.agent, strconv.FormatInt(r.Seq, 10), r.Time.UTC().Format("2006-01-02T15:04:05.000Z"),
			string(r.Kind), r.Peer, r.Capability, string(r.Side), detail(&r.Entry),
		}
	}
	return rows
}

// detail is what a table shows of a record's body.
func detail(e *auditchain.Entry) string {
	if e.Erased() {
		return fmt.Sprintf("erased by record %d", e.ErasedBy)
	}
	if v, err := e.SchemaViolation(); err == nil {
		parts := make([]string, len(v.Violations))
		for i, violation := range v.Violations {
			parts[i] = strings.TrimSpace(violation.Path + " " + violation.Message)
		}
		return strings.Join(parts, "; ")
	}
	return string(e.Body)
}

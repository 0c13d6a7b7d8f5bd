package audit

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
)

// logStats are the statistics of one log.
type logStats struct {
	Agent string `json:"agent"`
	*auditchain.Stats
}

// Stats prints the location, size and signing state of the logs, and the number
// of their records by kind, tenant, peer and capability.
func Stats(ctx context.Context, env *cli.Env, choice Choice) error {
	return withLogs(ctx, env, choice, func(logs []Log) error {
		all := make([]logStats, len(logs))
		for i, l := range logs {
			s, err := l.Stats(ctx)
			if err != nil {
				return err
			}
			all[i] = logStats{l.Agent, s}
		}
		if env.Format != output.Table {
			return cli.WriteList(env, all)
		}
		return writeStats(env, all)
	})
}

// writeStats writes two tables: the facts about each log, and the counts.
func writeStats(env *cli.Env, all []logStats) error {
	var facts, counts [][]string
	for _, s := range all {
		facts = append(facts, s.facts()...)
		for _, by := range []struct {
			column string
			counts []auditchain.Count
		}{{"kind", s.Kinds}, {"tenant", s.Tenants}, {"peer", s.Peers}, {"capability", s.Capabilities}} {
			for _, c := range by.counts {
				counts = append(counts, []string{s.Agent, by.column, c.Value, strconv.FormatInt(c.Records, 10)})
			}
		}
	}
	if err := env.WriteTable([]string{"AGENT", "FIELD", "VALUE"}, facts); err != nil {
		return err
	}
	if len(counts) == 0 {
		return nil
	}
	fmt.Fprintln(env.Stdout)
	return env.WriteTable([]string{"AGENT", "BY", "VALUE", "RECORDS"}, counts)
}

// facts returns the rows about one log. Rows that would be empty are left out.
func (s *logStats) facts() [][]string {
	rows := [][]string{
		{s.Agent, "database", s.Path},
		{s.Agent, "log", s.Origin},
		{s.Agent, "size", fmt.Sprintf("%d bytes", s.Bytes)},
		{s.Agent, "records", fmt.Sprintf("%d, the newest is number %d", s.Records, s.Last)},
		{s.Agent, "erased", strconv.FormatInt(s.Erased, 10)},
		{s.Agent, "pruned", strconv.FormatInt(s.Pruned, 10)},
	}
	if s.Last > 0 {
		rows = append(rows,
			[]string{s.Agent, "oldest", s.Oldest.Format(time.RFC3339)},
			[]string{s.Agent, "newest", s.Newest.Format(time.RFC3339)})
	}
	// Records after the newest checkpoint are chained but not signed: a process
	// that can write the file could still rewrite them.
	checkpoint := fmt.Sprintf("covers the records up to number %d", s.Signed)
	if s.Signed == 0 {
		checkpoint = "none yet"
	}
	rows = append(rows, []string{s.Agent, "last checkpoint", checkpoint})
	if len(s.Cosigners) > 0 {
		rows = append(rows, []string{s.Agent, "co-signed by", strings.Join(s.Cosigners, ", ") + " (not checked here: `agentd audit verify --witness` does)"})
	}
	if s.Conflict > 0 {
		rows = append(rows, []string{s.Agent, "WITNESS CONFLICT",
			fmt.Sprintf("record %d: a witness has seen another history of this log; run `agentd audit verify --witness`", s.Conflict)})
	}
	return rows
}

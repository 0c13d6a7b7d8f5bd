package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/internal/output"
)

func (a *app) auditStatsCommand() *cobra.Command {
	var choice logChoice
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Say where the logs are, and count what is in them",
		Long: "Say where the logs are and how large, how far they are signed, and how many records there\n" +
			"are by kind, tenant, peer and capability, the most frequent first.",
		Example: "  agentd audit stats\n" +
			"  agentd audit stats --agent reviewer -o json | jq '.[0].path'",
		Args: cobra.NoArgs,
		RunE: a.do(func(ctx context.Context, _ []string) error {
			return a.openLogs(ctx, choice, func(logs []namedLog) error {
				all := make([]logStats, len(logs))
				for i, l := range logs {
					s, err := l.Stats(ctx)
					if err != nil {
						return err
					}
					all[i] = logStats{l.agent, s}
				}
				return a.writeStats(all)
			})
		}),
	}
	choice.register(cmd)
	return cmd
}

type logStats struct {
	Agent string `json:"agent"`
	*auditchain.Stats
}

func (a *app) writeStats(all []logStats) error {
	if a.output != output.Table {
		return writeList(a, all)
	}
	var facts, counts [][]string
	for _, s := range all {
		facts = append(facts, s.facts()...)
		for _, by := range []struct {
			name   string
			counts []auditchain.Count
		}{{"kind", s.Kinds}, {"tenant", s.Tenants}, {"peer", s.Peers}, {"capability", s.Capabilities}} {
			for _, c := range by.counts {
				counts = append(counts, []string{s.Agent, by.name, c.Value, strconv.FormatInt(c.Records, 10)})
			}
		}
	}
	if err := output.WriteTable(a.stdout, []string{"AGENT", "FIELD", "VALUE"}, facts); err != nil {
		return err
	}
	if len(counts) == 0 {
		return nil
	}
	fmt.Fprintln(a.stdout)
	return output.WriteTable(a.stdout, []string{"AGENT", "BY", "VALUE", "RECORDS"}, counts)
}

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
	checkpoint := fmt.Sprintf("covers the records up to number %d", s.Signed)
	if s.Signed == 0 {
		checkpoint = "none yet"
	}
	rows = append(rows, []string{s.Agent, "last checkpoint", checkpoint})
	if len(s.Cosigners) > 0 {
		rows = append(rows, []string{s.Agent, "co-signed by", strings.Join(s.Cosigners, ", ")})
	}
	if s.Conflict > 0 {
		rows = append(rows, []string{s.Agent, "WITNESS CONFLICT",
			fmt.Sprintf("record %d: a witness has seen another history of this log; run audit verify --witness", s.Conflict)})
	}
	return rows
}

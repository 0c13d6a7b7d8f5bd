package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon/control"
)

func (a *app) auditPruneCommand() *cobra.Command {
	var choice logChoice
	var olderThan, reason string
	var yes bool
	cmd := &cobra.Command{
		Use:   "prune --older-than <age or time> --reason <text>",
		Short: "Remove old records, for good; the chain still verifies",
		Long: "Remove the records that are older than an age. Their hashes stay, some 50 bytes each, so\n" +
			"that the rest still verifies against old checkpoints. The pruning is a record itself, with\n" +
			"the reason. Records of changed signing keys stay.\n\n" +
			"Without --agent or --db the records are removed from the logs of all members. It cannot be\n" +
			"undone: export first what must be kept.",
		Example: "  agentd audit prune --older-than 90d --reason 'retention policy'\n" +
			"  agentd audit prune --db audit.db --older-than 2026-01-01T00:00:00Z --reason archived --yes -o json",
		Args: cobra.NoArgs,
		RunE: a.do(func(ctx context.Context, _ []string) error {
			before, err := parseTime("--older-than", olderThan, time.Now())
			if err != nil {
				return err
			}
			if strings.TrimSpace(reason) == "" {
				return usage("--reason: say why; it is recorded")
			}
			return a.erase(ctx, eraseRequest{
				logs: choice, yes: yes, done: "pruned",
				warning: "These records will be gone for good.",
				preview: func(ctx context.Context, log namedLog) (string, error) { return prunable(ctx, log, before) },
				erase: func(ctx context.Context, keeper control.AuditKeeper) (auditchain.Erasure, error) {
					return keeper.Prune(ctx, before, reason)
				},
			})
		}),
	}
	choice.register(cmd)
	f := cmd.Flags()
	f.StringVar(&olderThan, "older-than", "", "an age like 90d or 12h, or a time in RFC 3339 (required)")
	f.StringVar(&reason, "reason", "", "why; it is recorded (required)")
	f.BoolVar(&yes, "yes", false, "do not ask")
	_ = cmd.MarkFlagRequired("older-than") // fails only for a flag that does not exist
	_ = cmd.MarkFlagRequired("reason")     // the same
	return cmd
}

// prunable says which records of a log would be removed: those before a time,
// but for the changes of keys.
func prunable(ctx context.Context, log namedLog, before time.Time) (string, error) {
	kinds := slices.DeleteFunc(auditchain.Kinds(), func(k auditchain.Kind) bool { return k == auditchain.KindCheckpoint })
	var ends [2]auditchain.Entry
	for i, order := range []auditchain.Order{auditchain.OldestFirst, auditchain.NewestFirst} {
		for entry, err := range log.Query(ctx, auditchain.Filter{Kinds: kinds, Until: before, Limit: 1, Order: order}) {
			if err != nil {
				return "", err
			}
			ends[i] = entry
		}
	}
	first, last := &ends[0], &ends[1]
	if first.Seq == 0 {
		return "", nil
	}
	return fmt.Sprintf("records %d to %d, written from %s to %s", first.Seq, last.Seq,
		first.Time.Format(time.RFC3339), last.Time.Format(time.RFC3339)), nil
}

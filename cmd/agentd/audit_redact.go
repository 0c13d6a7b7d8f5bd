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

func (a *app) auditRedactCommand() *cobra.Command {
	var choice logChoice
	var matches []string
	var reason string
	var yes bool
	cmd := &cobra.Command{
		Use:   "redact --match <column>=<value>… --reason <text>",
		Short: "Erase what records say, for good; the chain still verifies",
		Long: "Erase what records say: the body, and peer, capability, side, correlation and session. That\n" +
			"there was a record, with its number, time, tenant and kind, stays, and the chain still\n" +
			"verifies. The redaction is a record itself, with the reason.\n\n" +
			"All conditions must hold: " + strings.Join(filterNames(), ", ") + ". Without --agent or --db\n" +
			"the records are erased in the logs of all members. It cannot be undone. Backups and exports\n" +
			"keep their copies: see to those as well.",
		Example: "  agentd audit redact --match session=s-17 --reason 'erasure request 4711'\n" +
			"  agentd audit redact --agent reviewer --match peer=agent://alice --match until=90d --reason policy --yes",
		Args: cobra.NoArgs,
		RunE: a.do(func(ctx context.Context, _ []string) error {
			filter, err := parseMatches(matches, time.Now())
			if err != nil {
				return err
			}
			if strings.TrimSpace(reason) == "" {
				return usage("--reason: say why; it is recorded")
			}
			return a.erase(ctx, eraseRequest{
				logs: choice, yes: yes, done: "redacted",
				warning: "What these records say will be gone for good.",
				preview: func(ctx context.Context, log namedLog) (string, error) { return redactable(ctx, log, filter) },
				erase: func(ctx context.Context, keeper control.AuditKeeper) (auditchain.Erasure, error) {
					return keeper.Redact(ctx, filter, reason)
				},
			})
		}),
	}
	choice.register(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&matches, "match", nil, "records for which this holds, like session=s-17 (required; repeatable)")
	f.StringVar(&reason, "reason", "", "why; it is recorded, so name no secret (required)")
	f.BoolVar(&yes, "yes", false, "do not ask")
	_ = cmd.MarkFlagRequired("match")  // fails only for a flag that does not exist
	_ = cmd.MarkFlagRequired("reason") // the same
	return cmd
}

// redactable says what of a log a redaction would erase: what is not erased
// yet, and not of the log's own kinds, which it never erases.
func redactable(ctx context.Context, log namedLog, filter auditchain.Filter) (string, error) {
	own := []auditchain.Kind{auditchain.KindRedaction, auditchain.KindPrune, auditchain.KindCheckpoint}
	var count, first, last int64
	for entry, err := range log.Query(ctx, filter) {
		if err != nil {
			return "", err
		}
		if entry.Erased() || slices.Contains(own, entry.Kind) {
			continue
		}
		if count++; first == 0 {
			first = entry.Seq
		}
		last = entry.Seq
	}
	if count == 0 {
		return "", nil
	}
	return fmt.Sprintf("the content of %d records, between number %d and %d", count, first, last), nil
}

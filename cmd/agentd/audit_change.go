package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/internal/cli/audit"
)

// auditRedactCommand returns `agentd audit redact`. It requires a condition: a
// redaction of everything by a forgotten flag could not be undone.
func (a *app) auditRedactCommand() *cobra.Command {
	var r audit.RedactRequest
	cmd := &cobra.Command{
		Use:   "redact --match <column>=<value>… --reason <text>",
		Short: "Erase what records say, for good; the chain still verifies",
		Long: "Erase what records say: the body, and peer, capability, side, correlation and session. That\n" +
			"there was a record, with its number, time, tenant and kind, stays, and the chain still\n" +
			"verifies. The redaction is a record itself, with the reason.\n\n" +
			"A record must match all conditions: " + strings.Join(audit.ConditionNames(), ", ") + ".\n" +
			"Without --agent or --db the records are erased in the logs of all members. It cannot be\n" +
			"undone. Backups and exports keep their copies: treat those as well.",
		Example: "  agentd audit redact --match session=s-17 --reason 'erasure request 4711'\n" +
			"  agentd audit redact --agent reviewer --match peer=agent://alice --match until=90d --reason policy --yes",
		Args: arguments(0),
		RunE: a.do(func(ctx context.Context, _ []string) error { return audit.Redact(ctx, &a.Env, r) }),
	}
	logFlags(cmd, &r.Logs)
	f := cmd.Flags()
	f.StringArrayVar(&r.Matches, "match", nil, "records for which this holds, like session=s-17 (required; repeatable)")
	f.StringVar(&r.Reason, "reason", "", "why; it is recorded, so name no secret (required)")
	f.BoolVar(&r.Yes, "yes", false, "do not ask for confirmation")
	required(cmd, "match", "reason")
	return cmd
}

func (a *app) auditPruneCommand() *cobra.Command {
	var r audit.PruneRequest
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
		Args: arguments(0),
		RunE: a.do(func(ctx context.Context, _ []string) error { return audit.Prune(ctx, &a.Env, r) }),
	}
	logFlags(cmd, &r.Logs)
	f := cmd.Flags()
	f.StringVar(&r.OlderThan, "older-than", "", "an age like 90d or 12h, or a time in RFC 3339 (required)")
	f.StringVar(&r.Reason, "reason", "", "why; it is recorded (required)")
	f.BoolVar(&r.Yes, "yes", false, "do not ask for confirmation")
	required(cmd, "older-than", "reason")
	return cmd
}

func (a *app) auditRotateKeyCommand() *cobra.Command {
	var logs audit.Choice
	cmd := &cobra.Command{
		Use:   "rotate-key",
		Short: "Change the key that signs a log, and print the new public key",
		Long: "Make a new signing key for a log, and print the new verifier key. The change is a record\n" +
			"signed with the old key, so anyone who trusts the old key can verify the new one from the log\n" +
			"itself. Old public keys stay in the .pub file; the old private key is removed.",
		Example: "  agentd audit rotate-key --agent reviewer",
		Args:    arguments(0),
		RunE:    a.do(func(ctx context.Context, _ []string) error { return audit.RotateKey(ctx, &a.Env, logs) }),
	}
	logFlags(cmd, &logs)
	return cmd
}

func (a *app) auditQuarantineCommand() *cobra.Command {
	var r audit.QuarantineRequest
	cmd := &cobra.Command{
		Use:   "quarantine --reason <text>",
		Short: "Take records that nobody vouches for out of a log that does not open",
		Long: "Make a log usable again that an agent does not open because somebody else has written to it.\n" +
			"Records that no signed checkpoint covers are taken out, and indexes that were altered are built\n" +
			"anew. The database as it was found stays beside it, as <database>.quarantine-<time>, for whoever\n" +
			"finds out what happened. The quarantine is a record itself, with the reason and the hash of that\n" +
			"copy.\n\n" +
			"The agent must not run. A log whose signed records were changed is not mended by this: restore a\n" +
			"backup.",
		Example: "  agentd audit quarantine --agent reviewer --reason 'unknown rows after the stop of Friday'",
		Args:    arguments(0),
		RunE:    a.do(func(ctx context.Context, _ []string) error { return audit.Quarantine(ctx, &a.Env, r) }),
	}
	logFlags(cmd, &r.Logs)
	f := cmd.Flags()
	f.StringVar(&r.Reason, "reason", "", "why; it is recorded (required)")
	f.BoolVar(&r.Yes, "yes", false, "do not ask for confirmation")
	required(cmd, "reason")
	return cmd
}

func (a *app) auditCompactCommand() *cobra.Command {
	var logs audit.Choice
	cmd := &cobra.Command{
		Use:   "compact",
		Short: "Give the free space of a log's database back to the disk",
		Long: "Write the database of a log anew, without free space. Records stay as they are.\n\n" +
			"A log that an older version made keeps the space that pruning frees, to fill it again. It needs this\n" +
			"once, and gives free space back by itself from then on, as newer logs do from the start.\n\n" +
			"The agent must not run, and for a while the disk has to hold the log twice.",
		Example: "  agentd audit compact --agent reviewer",
		Args:    arguments(0),
		RunE:    a.do(func(ctx context.Context, _ []string) error { return audit.Compact(ctx, &a.Env, logs) }),
	}
	logFlags(cmd, &logs)
	return cmd
}

package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/internal/cli/audit"
	"github.com/agentd/agentd/internal/gcpace"
)

func (a *app) auditCommand() *cobra.Command {
	return a.group(&cobra.Command{
		Use: "audit", Short: "Read, verify, prove, export and erase audit records",
		Long: "Read, verify, prove, export and erase audit records.\n\n" +
			"Every agent has a log of its own. Without --agent or --db the commands read the logs of all\n" +
			"members of the fleet, or require you to choose one. They may run while the agents write: a\n" +
			"change to a log then goes through the agent that has it open.",
	},
		a.auditQueryCommand(), a.auditStatsCommand(), a.auditExportCommand(),
		a.auditVerifyCommand(), a.auditProveCommand(), a.auditVerifyProofCommand(), a.auditVerifyApprovalCommand(),
		a.auditRedactCommand(), a.auditPruneCommand(), a.auditRotateKeyCommand(), a.auditQuarantineCommand(), a.auditCompactCommand(),
	)
}

// logFlags adds the flags that select logs.
func logFlags(cmd *cobra.Command, c *audit.Choice) {
	cmd.Flags().StringVar(&c.Agent, "agent", "", "use this member's log only")
	cmd.Flags().StringVar(&c.DB, "db", "", "use this file instead of the fleet's logs")
	cmd.MarkFlagsMutuallyExclusive("agent", "db")
}

// conditionFlags adds the flags that filter records. The returned function
// collects their values once the command line is parsed.
func conditionFlags(cmd *cobra.Command) func() audit.Conditions {
	f := cmd.Flags()
	kinds := f.StringSlice("kind", nil, "only records of these kinds, like capability_schema_violation,lifecycle")
	values := map[string]*string{}
	for _, flag := range [][2]string{
		{"tenant", "only records of this tenant"},
		{"peer", "only records about this agent://id"},
		{"capability", "only records about this capability"},
		{"side", "request or response"},
		{"correlation", "only records of this call"},
		{"session", "only records of this session"},
		{"text", "only records whose body contains this text"},
		{"since", "not older than this: RFC 3339, or an age like 2h or 90d"},
		{"until", "older than this: RFC 3339, or an age like 10m"},
	} {
		values[flag[0]] = f.String(flag[0], "", flag[1])
	}
	return func() audit.Conditions {
		c := audit.Conditions{"kind": *kinds}
		for name, value := range values {
			c[name] = []string{*value}
		}
		return c
	}
}

// auditQueryCommand returns `agentd audit query`. --follow excludes --order and
// --until, which have no meaning for records that are still to come.
func (a *app) auditQueryCommand() *cobra.Command {
	var q audit.QueryRequest
	var conditions func() audit.Conditions
	cmd := &cobra.Command{
		Use:   "query",
		Short: "Print records, the newest last",
		Long: "Print the newest records, the newest last. A record must meet all conditions that are given.\n\n" +
			"With --order newest or oldest you page through the records of one log from that end: when there\n" +
			"are more, standard error names the --after of the next page. A page costs the same anywhere in\n" +
			"the log, however long it is. For whole logs there is `agentd audit export`.\n\n" +
			"Payloads that a capability has captured are shown only with --kind payload_capture.\n\n" +
			"With --follow, new records are printed as they are written, until ctrl-c.",
		Example: "  agentd audit query --kind capability_schema_violation\n" +
			"  agentd audit query --agent concierge --since 2h -o jsonl | jq .violations\n" +
			"  agentd audit query --agent concierge --order oldest --limit 500 --after 500\n" +
			"  agentd audit query --follow --peer agent://pr-reviewer",
		Args: arguments(0),
		RunE: a.do(func(ctx context.Context, _ []string) error {
			q.Conditions = conditions()
			return audit.Query(ctx, &a.Env, q)
		}),
	}
	logFlags(cmd, &q.Logs)
	conditions = conditionFlags(cmd)
	f := cmd.Flags()
	f.IntVar(&q.Limit, "limit", 100, "at most this many; 0 is no limit")
	f.StringVar(&q.Order, "order", "", "newest or oldest first (default: the newest, newest last)")
	f.Int64Var(&q.After, "after", 0, "continue after the record with this number, in the direction of --order (default: oldest)")
	f.BoolVar(&q.Follow, "follow", false, "then print new records as they are written")
	cmd.MarkFlagsMutuallyExclusive("follow", "order")
	cmd.MarkFlagsMutuallyExclusive("follow", "until")
	return cmd
}

func (a *app) auditStatsCommand() *cobra.Command {
	var logs audit.Choice
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Show where the logs are, and count what is in them",
		Long: "Show where the logs are and how large, how far they are signed, and how many records there\n" +
			"are by kind, tenant, peer and capability, the most frequent first.",
		Example: "  agentd audit stats\n" +
			"  agentd audit stats --agent reviewer -o json | jq '.[0].path'",
		Args: arguments(0),
		RunE: a.do(func(ctx context.Context, _ []string) error { return audit.Stats(ctx, &a.Env, logs) }),
	}
	logFlags(cmd, &logs)
	return cmd
}

// auditExportCommand returns `agentd audit export`. It takes one log only, because
// a cursor is a position in one.
func (a *app) auditExportCommand() *cobra.Command {
	var r audit.ExportRequest
	var conditions func() audit.Conditions
	cmd := &cobra.Command{
		Use:   "export --format <format>",
		Short: "Write a log for a SIEM: JSON lines, OCSF, OTLP or CEF",
		Long: "Write the records of one log, oldest first, in the format of the system that collects them:\n\n" +
			"  jsonl  the record as it is, one JSON object a line\n" +
			"  ocsf   Open Cybersecurity Schema Framework events\n" +
			"  otlp   OpenTelemetry log records, OTLP/JSON\n" +
			"  cef    ArcSight Common Event Format\n\n" +
			"With --cursor, the next export with the same name continues where this one ended, also after\n" +
			"a crash: nothing is lost, and in a file nothing is duplicated. The cursor is kept beside the\n" +
			"database. A receiver of standard output may see the last records again, and can recognise them\n" +
			"by the log's name and the record's number. Nothing is read ahead of a slow receiver.\n\n" +
			"With --to otlp the records go to an OpenTelemetry collector, as the OTEL_EXPORTER_OTLP_* variables\n" +
			"say, or to the one of a URL: otlp+http://host:4318, otlp+grpc://host:4317, or with TLS otlp+https\n" +
			"and otlp+grpcs. Each record is sent until it is taken: after a crash the last ones may come again,\n" +
			"recognisable by log.record.uid. What the collector refuses is told.\n\n" +
			"Conditions select records as in `agentd audit query`; captured payloads are exported only with\n" +
			"--kind payload_capture. With --follow, new records are exported as they are written, until ctrl-c.",
		Example: "  agentd audit export --agent reviewer --format ocsf --to reviewer.ocsf --cursor siem\n" +
			"  agentd audit export --agent reviewer --to otlp+grpc://localhost:4317 --cursor otel --follow\n" +
			"  agentd audit export --agent reviewer --format cef --cursor syslog --follow | logger",
		Args: arguments(0),
		RunE: a.do(func(ctx context.Context, _ []string) error {
			r.Conditions = conditions()
			return audit.Export(ctx, &a.Env, r)
		}),
	}
	logFlags(cmd, &r.Logs)
	conditions = conditionFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&r.Format, "format", "", "jsonl, ocsf, otlp or cef (required, but for a collector)")
	f.StringVar(&r.To, "to", "-", "append to this file; - is standard output, otlp[+http|+https|+grpc|+grpcs://host:port] a collector")
	f.StringVar(&r.Cursor, "cursor", "", "name under which to store how far the export has come")
	f.BoolVar(&r.Follow, "follow", false, "then export new records as they are written")
	return cmd
}

// auditVerifyCommand returns `agentd audit verify`. Keys, checkpoints and witnesses
// are repeatable: each adds a claim that the log must meet.
func (a *app) auditVerifyCommand() *cobra.Command {
	var r audit.VerifyRequest
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Recompute every hash of the logs; exit status 3 when a chain is broken",
		Long: "Recompute every hash of the logs, and compare the result with every signed checkpoint. The\n" +
			"exit status is 3 when a chain is broken; the first bad record and the class of the fault\n" +
			"are named.\n\n" +
			"By default, verify trusts the public keys and the checkpoint beside the database. Whoever\n" +
			"can write all these files could rewrite them together: to detect that, give what was kept\n" +
			"elsewhere, as --key, --checkpoint or --witness.\n\n" +
			"--continue proves that the log has still the history that the stopped run has read, and checks\n" +
			"what follows. It does not read the first part again: an edit there since then may go unseen.",
		Example: "  agentd audit verify\n" +
			"  agentd audit verify --agent reviewer --from-checkpoint\n" +
			"  agentd audit verify --agent reviewer --witness agent://librarian\n" +
			"  agentd audit verify --db copy.db --key reviewer.pub --checkpoint friday.checkpoint",
		Args: arguments(0),
		RunE: a.do(func(ctx context.Context, _ []string) error {
			gcpace.Relax(a.Getenv) // it reads and drops millions of records
			return audit.Verify(ctx, &a.Env, r)
		}),
	}
	logFlags(cmd, &r.Logs)
	f := cmd.Flags()
	f.StringArrayVar(&r.Keys, "key", nil, "trust this verifier key, or those in this file (default: those in the .pub file beside the database)")
	f.StringArrayVar(&r.Checkpoints, "checkpoint", nil, "the log must have grown from the signed checkpoint in this file")
	f.StringArrayVar(&r.Witnesses, "witness", nil, "the log must have grown from what a witness keeps of it: a running agent, agent://<id> or the id of a member, or the folder of one")
	f.StringArrayVar(&r.WitnessKeys, "witness-key", nil, "a witness's verifier key, or a file of them, such as the .pub file of its own log: only answers signed with these confirm")
	f.IntVar(&r.Quorum, "quorum", 0, "how many of the witnesses must confirm (default: audit.witnessQuorum of agent.yaml, or all)")
	f.BoolVar(&r.FromCheckpoint, "from-checkpoint", false, "take what the newest checkpoint covers as verified, and check the rest only")
	f.BoolVar(&r.Continue, "continue", false, "go on where ctrl-c has stopped an earlier verification, instead of reading everything again")
	cmd.MarkFlagsMutuallyExclusive("continue", "from-checkpoint")
	f.StringVar(&r.Tenant, "tenant", "", "also count the records of this tenant; the chain runs through all of them")
	return cmd
}

func (a *app) auditProveCommand() *cobra.Command {
	var r audit.ProveRequest
	cmd := &cobra.Command{
		Use:   "prove <seq>",
		Short: "Make a file that proves one record to somebody without the log",
		Long: "Make a file that proves that one record is in a log, under a signed checkpoint, and shows\n" +
			"no other record. `agentd audit verify-proof` checks it offline, with the log's public key\n" +
			"alone. A record can be proven once it is signed, some seconds after it was written.",
		Example: "  agentd audit prove 17 --agent reviewer --out proof.json\n" +
			"  agentd audit prove 17 --db audit.db --without-content > proof.json",
		Args: arguments(1, "seq"),
		RunE: a.do(func(ctx context.Context, args []string) error {
			r.Seq = args[0]
			return audit.Prove(ctx, &a.Env, r)
		}),
	}
	logFlags(cmd, &r.Logs)
	cmd.Flags().StringVar(&r.Out, "out", "", "write to this new file instead of standard output")
	cmd.Flags().BoolVar(&r.WithoutContent, "without-content", false, "show number, time, tenant and kind only, not what the record says")
	return cmd
}

// auditVerifyProofCommand returns `agentd audit verify-proof`. --key has no
// default: a key found beside the proof would prove nothing.
func (a *app) auditVerifyProofCommand() *cobra.Command {
	var keys []string
	cmd := &cobra.Command{
		Use:   "verify-proof <file> --key <key or file>",
		Short: "Check a proof offline; exit status 3 when it is false",
		Long: "Check a proof that `agentd audit prove` made. It needs the log's public key, and neither\n" +
			"the log nor the fleet nor a network. A proof shows what the holder of the key has signed:\n" +
			"take the key from somebody that you trust, not from whoever gave you the proof.",
		Example: "  agentd audit verify-proof proof.json --key reviewer.pub\n" +
			"  cat proof.json | agentd audit verify-proof - --key 'agentd.audit/reviewer/3f9a0c52+0acb1d2e+AYE…'",
		Args: arguments(1, "file"),
		RunE: a.do(func(_ context.Context, args []string) error { return audit.VerifyProof(&a.Env, args[0], keys) }),
	}
	cmd.Flags().StringArrayVar(&keys, "key", nil, "trust this verifier key, or those in this file (required)")
	required(cmd, "key")
	return cmd
}

// auditVerifyApprovalCommand returns `agentd audit verify-approval`. --approvers has no
// default: keys found beside the records would prove nothing.
func (a *app) auditVerifyApprovalCommand() *cobra.Command {
	var lists []string
	cmd := &cobra.Command{
		Use:   "verify-approval <file> --approvers <file>",
		Short: "Check the signatures of approvals offline; exit status 3 when one is false",
		Long: "Check the signed decisions among records, as `agentd audit query -o json` or `-o jsonl` prints\n" +
			"them: each must be the signature of a person on the list, over a statement that says what the\n" +
			"record says, made in time. It needs neither the log nor the fleet nor a network. The list is an\n" +
			"allowed_signers or authorized_keys file: take it from somebody that you trust.",
		Example: "  agentd audit query --kind approval -o jsonl >approvals.jsonl\n" +
			"  agentd approvals signers >approvers\n" +
			"  agentd audit verify-approval approvals.jsonl --approvers approvers",
		Args: arguments(1, "file"),
		RunE: a.do(func(_ context.Context, args []string) error {
			return audit.VerifyApprovals(&a.Env, args[0], lists)
		}),
	}
	cmd.Flags().StringArrayVar(&lists, "approvers", nil, "the people whose signatures count, and their keys (required)")
	required(cmd, "approvers")
	return cmd
}

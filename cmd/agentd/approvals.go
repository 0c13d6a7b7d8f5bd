package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/internal/cli/approvals"
)

func (a *app) approvalsCommand() *cobra.Command {
	return a.group(&cobra.Command{
		Use:   "approvals",
		Short: "Decide about the calls that wait for a person",
		Long: "List and decide the calls that wait for a person, because a permission of the calling agent says\n" +
			"`ask`, or one of the agent that is called. Each decision, with who made it and why, is a record\n" +
			"of the audit log of the agent that asks (kind approval).\n\n" +
			"Where security.approvers of its agent.yaml lists people by their SSH keys, a decision is a\n" +
			"signature of one of them. Elsewhere who decides is the user that runs this command: the agent\n" +
			"learns it from the kernel.",
	},
		a.approvalsListCommand(),
		a.approvalsShowCommand(),
		a.approvalsDecideCommand("approve", "Let a waiting call proceed", true),
		a.approvalsDecideCommand("deny", "Refuse a waiting call", false),
		a.approvalsSignersCommand(),
	)
}

// approvalsListCommand returns `agentd approvals list`. Payloads may hold personal
// data, so it shows them only on request.
func (a *app) approvalsListCommand() *cobra.Command {
	var agent string
	var payload bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the calls that wait", Args: arguments(0),
		RunE: a.do(func(ctx context.Context, _ []string) error {
			return approvals.List(ctx, &a.Env, agent, payload)
		}),
	}
	cmd.Flags().StringVar(&agent, "agent", "", "the agent that asks (default: every agent that runs here)")
	cmd.Flags().BoolVar(&payload, "show-payload", false, "show what would be sent")
	return cmd
}

func (a *app) approvalsShowCommand() *cobra.Command {
	var r approvals.ShowRequest
	var deny bool
	cmd := &cobra.Command{
		Use:   "show <id>",
		Short: "Show one waiting call, and what a decision about it signs",
		Long: "Show one waiting call with its payload, and the statement that a decision signs. With --statement,\n" +
			"write nothing but the statement, byte for byte, so that a key on another machine can sign it.",
		Example: "  agentd approvals show 019aa8f4 --statement >statement.json\n" +
			"  ssh-keygen -Y sign -n agentd-approval@v1 -f ~/.ssh/id_ed25519 statement.json\n" +
			"  agentd approvals approve 019aa8f4 --signature statement.json.sig",
		Args: arguments(1, "id"),
		RunE: a.do(func(ctx context.Context, args []string) error {
			r.ID, r.Approve = args[0], !deny
			return approvals.Show(ctx, &a.Env, r)
		}),
	}
	cmd.Flags().StringVar(&r.Agent, "agent", "", "the agent that asks (default: whichever has the call)")
	cmd.Flags().BoolVar(&r.Statement, "statement", false, "write the statement alone")
	cmd.Flags().BoolVar(&deny, "deny", false, "the statement of a denial")
	cmd.Flags().StringVar(&r.Reason, "reason", "", "the reason that is in the statement")
	return cmd
}

// approvalsDecideCommand returns the command called verb, which approves or denies.
// There is no flag for who decides: the agent reads the signature, or the user from the
// socket's peer credentials, which a flag could only falsify.
func (a *app) approvalsDecideCommand(verb, short string, approve bool) *cobra.Command {
	d := approvals.Decision{Approve: approve}
	cmd := &cobra.Command{
		Use:   verb + " <id>",
		Short: short,
		Long: short + ". Where the agent lists approvers, this signs: with the key of --key, else with the\n" +
			"first key of an approver that the ssh-agent or ~/.ssh has. It shows first what it signs, and on\n" +
			"a terminal it asks.",
		Example: "  agentd approvals " + verb + " 019aa8f4-5c1e-7b02-9d3c-2f6e8a417c55 --reason 'ticket 1234'\n" +
			"  agentd approvals " + verb + " 019aa8f4 --key ~/.ssh/approver",
		Args: arguments(1, "id"),
		RunE: a.do(func(ctx context.Context, args []string) error {
			d.ID = args[0]
			return approvals.Decide(ctx, &a.Env, d)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&d.Agent, "agent", "", "the agent that asks (default: whichever has the call)")
	f.StringVar(&d.Reason, "reason", "", "why; it is recorded, and the caller of a denied call sees it")
	f.StringVar(&d.Key, "key", "", "sign with this private key, or with the one of this .pub file in the ssh-agent")
	f.StringVar(&d.Signature, "signature", "", "use this signature of what `agentd approvals show --statement` wrote, with the same --reason")
	f.BoolVar(&d.Yes, "yes", false, "sign without a question")
	cmd.MarkFlagsMutuallyExclusive("key", "signature")
	return cmd
}

func (a *app) approvalsSignersCommand() *cobra.Command {
	var agent string
	cmd := &cobra.Command{
		Use:   "signers",
		Short: "Print who may sign, as an allowed_signers file",
		Long: "Print who may sign by the files of the fleet, in the form of an allowed_signers file. With it\n" +
			"`agentd audit verify-approval` and `ssh-keygen -Y verify` check signatures of records offline.",
		Args: arguments(0),
		RunE: a.do(func(ctx context.Context, _ []string) error { return approvals.Signers(ctx, &a.Env, agent) }),
	}
	cmd.Flags().StringVar(&agent, "agent", "", "the agent that asks (default: all of the fleet)")
	return cmd
}

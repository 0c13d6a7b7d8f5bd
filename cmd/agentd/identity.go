package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	identitycli "github.com/agentd/agentd/internal/cli/identity"
)

// identityCommand returns `agentd identity`. Its commands work on files and need no
// running agent; agents see a change when they reload.
func (a *app) identityCommand() *cobra.Command {
	return a.group(&cobra.Command{
		Use:   "identity",
		Short: "Manage the keys with which agents prove who they are",
		Long: "Manage the keys with which agents prove who they are. Each agent keeps its own in its state folder,\n" +
			"readable by its owner alone; what others need to know of them is in identities.yaml beside fleet.yaml.",
	}, a.identityListCommand(), a.identityPublishCommand(), a.identityRotateCommand(), a.identityExportCommand(), a.identityImportCommand())
}

func (a *app) identityListCommand() *cobra.Command {
	var which identitycli.Selection
	cmd := &cobra.Command{
		Use: "list", Short: "List the public keys of the agents that run here", Args: arguments(0),
		RunE: a.do(func(context.Context, []string) error { return identitycli.List(&a.Env, which) }),
	}
	cmd.Flags().StringSliceVar(&which.Agents, "agent", nil, "only these agents (default: every member)")
	keyFileFlag(cmd, &which.KeyFile)
	return cmd
}

// keyFileFlag adds the flag for keys that are kept elsewhere than where agents read them.
func keyFileFlag(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, "key-file", "", "the file of the agent's keys (default: that of agent.yaml, or else in the state folder)")
}

// identityPublishCommand returns `agentd identity publish`. It only adds public
// keys, so that its output can be reviewed and checked in.
func (a *app) identityPublishCommand() *cobra.Command {
	var r identitycli.PublishRequest
	cmd := &cobra.Command{
		Use:   "publish",
		Short: "Write the public keys of the agents that run here into identities.yaml",
		Long: "Write the public keys of the agents that run here into identities.yaml, and make a key for each that\n" +
			"has none. The entries of other agents stay as they are, so that every host of a fleet can add its\n" +
			"own. From the next start or reload on, agents accept messages of those listed only with a proof.\n\n" +
			"A listed key that this host does not have belongs to another replica of the agent: bring it here\n" +
			"(identity export, identity import). An agent that has no key here is then left out, or refused if\n" +
			"it is named; --replace withdraws the listed key instead.",
		Example: "  agentd identity publish --agent pr-reviewer\n  git add identities.yaml",
		Args:    arguments(0),
		RunE:    a.do(func(context.Context, []string) error { return identitycli.Publish(&a.Env, r) }),
	}
	cmd.Flags().StringSliceVar(&r.Agents, "agent", nil, "only these agents (default: every member)")
	keyFileFlag(cmd, &r.KeyFile)
	cmd.Flags().BoolVar(&r.Replace, "replace", false, "withdraw listed keys that are not here")
	return cmd
}

// identityRotateCommand returns `agentd identity rotate`. The defaults leave an
// hour to publish the new key and a day for slow hosts to reload.
func (a *app) identityRotateCommand() *cobra.Command {
	var r identitycli.RotateRequest
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Make a new key for an agent, which takes over from the old one",
		Long: "Make a new key for an agent. It signs from --after from now on; the old key is accepted for --overlap\n" +
			"longer. In between, publish the new key (identity publish), and let every agent reload its files\n" +
			"(SIGHUP, or a restart).",
		Example: "  agentd identity rotate --agent pr-reviewer --after 1h --overlap 24h\n  agentd identity publish --agent pr-reviewer",
		Args:    arguments(0),
		RunE:    a.do(func(context.Context, []string) error { return identitycli.Rotate(&a.Env, r) }),
	}
	f := cmd.Flags()
	f.StringVar(&r.Agent, "agent", "", "the agent (required)")
	f.DurationVar(&r.After, "after", time.Hour, "when the new key begins to sign, from now")
	f.DurationVar(&r.Overlap, "overlap", 24*time.Hour, "how long the old key is accepted after that")
	keyFileFlag(cmd, &r.KeyFile)
	return cmd
}

// identityExportCommand returns `agentd identity export`.
func (a *app) identityExportCommand() *cobra.Command {
	var r identitycli.ExportRequest
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Seal the keys of an agent for another replica of it",
		Long: "Seal the keys of an agent, all of them, for another replica of it. The file is one of age\n" +
			"(age-encryption.org): only the recipients, or who knows the passphrase, can open it.\n\n" +
			"The key of the audit log is not in it: each replica has a log of its own.",
		Example: "  agentd identity export --agent pr-reviewer --recipient ~/.ssh/id_ed25519.pub --file pr-reviewer.age\n" +
			"  agentd identity export --agent pr-reviewer --passphrase | ssh b agentd identity import - --passphrase-file /run/pass",
		Args: arguments(0),
		RunE: a.do(func(context.Context, []string) error { return identitycli.Export(&a.Env, r) }),
	}
	f := cmd.Flags()
	f.StringVar(&r.Agent, "agent", "", "the agent (required)")
	f.StringArrayVarP(&r.Recipients, "recipient", "r", nil, "who may open it: age1…, an SSH public key (ssh-ed25519, ssh-rsa), or a file with such; may be repeated")
	f.StringArrayVarP(&r.RecipientFiles, "recipients-file", "R", nil, "a file of recipients, one a line; may be repeated")
	f.BoolVarP(&r.ByPassphrase, "passphrase", "p", false, "seal it with a passphrase, asked for at the terminal")
	f.StringVar(&r.Passphrase.File, "passphrase-file", "", "seal it with the passphrase in the first line of this file, such as /dev/fd/3")
	keyFileFlag(cmd, &r.KeyFile)
	f.StringVar(&r.Out, "file", "", "write this file (default: standard output)")
	return cmd
}

// identityImportCommand returns `agentd identity import`.
func (a *app) identityImportCommand() *cobra.Command {
	var r identitycli.ImportRequest
	cmd := &cobra.Command{
		Use:   "import <file>",
		Short: "Make sealed keys those of their agent on this host",
		Long: "Open a file that identity export has sealed, and make its keys those of their agent on this host. A\n" +
			"running agent takes them into use within a second.\n\n" +
			"Anybody can seal a file, so the keys must be those that identities.yaml lists for the agent. Keys\n" +
			"of this host that are not in the file would be lost, which takes --force.",
		Example: "  agentd identity import pr-reviewer.age --identity ~/.ssh/id_ed25519\n  agentd identity import pr-reviewer.age --passphrase-file /dev/fd/3 3<pass",
		Args:    arguments(1, "file"),
		RunE: a.do(func(_ context.Context, args []string) error {
			r.File = args[0]
			return identitycli.Import(&a.Env, r)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&r.Agent, "agent", "", "whose keys they must be (default: any member's)")
	f.StringArrayVarP(&r.Identities, "identity", "i", nil, "a file that opens it: an SSH private key, or identities of age; may be repeated (default: a passphrase)")
	f.StringVar(&r.Passphrase.File, "passphrase-file", "", "the passphrase is the first line of this file, such as /dev/fd/3 (default: ask at the terminal)")
	keyFileFlag(cmd, &r.KeyFile)
	f.BoolVar(&r.Unpublished, "allow-unpublished", false, "take keys that identities.yaml does not list")
	f.BoolVar(&r.Force, "force", false, "replace keys of this host that are not in the file")
	return cmd
}

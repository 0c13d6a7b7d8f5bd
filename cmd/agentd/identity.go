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
	}, a.identityListCommand(), a.identityPublishCommand(), a.identityRotateCommand())
}

func (a *app) identityListCommand() *cobra.Command {
	var agents []string
	cmd := &cobra.Command{
		Use: "list", Short: "List the public keys of the agents that run here", Args: arguments(0),
		RunE: a.do(func(context.Context, []string) error { return identitycli.List(&a.Env, agents) }),
	}
	cmd.Flags().StringSliceVar(&agents, "agent", nil, "only these agents (default: every member)")
	return cmd
}

// identityPublishCommand returns `agentd identity publish`. It only adds public
// keys, so that its output can be reviewed and checked in.
func (a *app) identityPublishCommand() *cobra.Command {
	var agents []string
	cmd := &cobra.Command{
		Use:   "publish",
		Short: "Write the public keys of the agents that run here into identities.yaml",
		Long: "Write the public keys of the agents that run here into identities.yaml, and make a key for each that\n" +
			"has none. The entries of other agents stay as they are, so that every host of a fleet can add its\n" +
			"own. From the next start or reload on, agents accept messages of those listed only with a proof.",
		Example: "  agentd identity publish --agent pr-reviewer\n  git add identities.yaml",
		Args:    arguments(0),
		RunE:    a.do(func(context.Context, []string) error { return identitycli.Publish(&a.Env, agents) }),
	}
	cmd.Flags().StringSliceVar(&agents, "agent", nil, "only these agents (default: every member)")
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
	return cmd
}

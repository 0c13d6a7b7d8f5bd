package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/identity"
)

func (a *app) identityPublishCommand() *cobra.Command {
	var agents []string
	cmd := &cobra.Command{
		Use:   "publish",
		Short: "Write the public keys of the agents that run here into identities.yaml",
		Long: "Write the public keys of the agents that run here into identities.yaml, and make a key for each that\n" +
			"has none. The entries of other agents stay as they are, so that every host of a fleet can add its\n" +
			"own. From the next start or reload on, agents take messages of those listed only with a proof.",
		Example: "  agentd identity publish --agent pr-reviewer\n  git add identities.yaml",
		Args:    cobra.NoArgs,
	}
	cmd.Flags().StringSliceVar(&agents, "agent", nil, "only these agents (default: every member)")
	cmd.RunE = a.do(func(context.Context, []string) error {
		f, stores, err := a.identityStores(agents)
		if err != nil {
			return err
		}
		for _, s := range stores {
			keys, err := s.Ensure(time.Now())
			if err != nil {
				return err
			}
			if err := publishIdentity(f, s.member, keys); err != nil {
				return err
			}
		}
		if err := fleet.WriteIdentities(f.Root, f.Identities); err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.stdout, "%s lists %d agents\n", fleet.IdentitiesName, len(f.Identities))
		return err
	})
	return cmd
}

// publishIdentity puts the keys of a member into the identities of f, in the
// place that the member has there.
func publishIdentity(f *fleet.Fleet, m *fleet.Member, keys []identity.OwnKey) error {
	auth := &fleet.PeerAuth{Provider: fleet.NKey}
	for _, k := range keys {
		if !k.Window.NotAfter.IsZero() && time.Now().After(k.Window.NotAfter) {
			continue
		}
		auth.PublicKeys = append(auth.PublicKeys, fleet.PublicKey{
			Key: k.Public, NotBefore: k.Window.NotBefore, NotAfter: k.Window.NotAfter,
		})
	}
	at := slices.IndexFunc(f.Identities, func(id fleet.Identity) bool { return id.Agent == m.Address })
	if at < 0 {
		f.Identities = append(f.Identities, fleet.Identity{Agent: m.Address, Auth: auth})
		return nil
	}
	if have := f.Identities[at].Auth; have.Provider != fleet.NKey {
		return fmt.Errorf("%s:%d: %s proves itself by %s; take the entry out first if it is to use its key pair",
			have.Position.File, have.Position.Line, m.Address, have.Provider)
	}
	f.Identities[at].Auth = auth
	return nil
}

func (a *app) identityRotateCommand() *cobra.Command {
	var (
		agent          string
		after, overlap time.Duration
	)
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Make a new key for an agent, which takes over from the old one",
		Long: "Make a new key for an agent. It signs from --after from now on; the old key counts for --overlap\n" +
			"longer. In between, publish the new key (identity publish), and let every agent read the files\n" +
			"again (SIGHUP, or a restart).",
		Example: "  agentd identity rotate --agent pr-reviewer --after 1h --overlap 24h\n  agentd identity publish --agent pr-reviewer",
		Args:    cobra.NoArgs,
	}
	cmd.Flags().StringVar(&agent, "agent", "", "the agent (required)")
	cmd.Flags().DurationVar(&after, "after", time.Hour, "when the new key begins to sign, from now")
	cmd.Flags().DurationVar(&overlap, "overlap", 24*time.Hour, "how long the old key counts after that")
	cmd.RunE = a.do(func(context.Context, []string) error {
		switch {
		case agent == "":
			return usage("--agent is required: whose key is it?")
		case after < 0 || overlap < 0:
			return usage("--after and --overlap must not be negative")
		}
		f, stores, err := a.identityStores([]string{agent})
		if err != nil {
			return err
		}
		keys, err := stores[0].Rotate(time.Now(), time.Now().Add(after), overlap)
		if err != nil {
			return err
		}
		return a.writeIdentities(identityRows(f, stores[0], keys))
	})
	return cmd
}

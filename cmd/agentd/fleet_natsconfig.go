package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/transport/nats/natsauth"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/policy"
)

func (a *app) fleetNATSConfigCommand() *cobra.Command {
	var keys string
	cmd := &cobra.Command{
		Use:   "nats-config",
		Short: "Write nats-server permissions: who may call whom, enforced by the broker",
		Long: "Write an authorization block for nats-server from the fleet's files. Each member gets a user\n" +
			"that may publish to the peers that its permissions let it call, subscribe to its own subjects, read its own\n" +
			"replies, and nothing else. Users are known by nkeys: seeds are made in the folder of --keys\n" +
			"where they are missing, and the configuration holds public keys only.",
		Example: "  agentd fleet nats-config > nats.conf\n  agentd broker --config nats.conf\n" +
			"  AGENTD_NATS_NKEY=keys/pr-reviewer.nk agentd run --agent pr-reviewer",
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringVar(&keys, "keys", "", "folder of the members' nkey seeds (default: nats in the fleet's state folder)")
	cmd.RunE = a.do(func(context.Context, []string) error { return a.writeNATSConfig(keys) })
	return cmd
}

func (a *app) writeNATSConfig(keyDir string) error {
	f, err := a.loadFleet(fleet.LoadOptions{InspectOnly: true})
	if err != nil {
		return err
	}
	may, err := policy.Reach(f)
	if err != nil {
		return err
	}
	rules, err := natsauth.Derive(f, natsauth.Options{Allowed: may})
	if err != nil {
		return err
	}
	if a.output != output.Table {
		return output.WriteJSON(a.stdout, a.output, rules)
	}
	if keyDir == "" {
		paths, err := a.paths(f)
		if err != nil {
			return err
		}
		keyDir = filepath.Join(paths.State, "nats")
	}
	keys, err := rules.EnsureKeys(keyDir)
	if err != nil {
		return err
	}
	fmt.Fprintln(a.stderr, "start each agent with its own key:")
	for _, u := range rules.Users {
		fmt.Fprintf(a.stderr, "  AGENTD_NATS_NKEY=%s agentd run --agent %s\n", natsauth.KeyFile(keyDir, u.ID), u.ID)
	}
	return rules.WriteConfig(a.stdout, keys)
}

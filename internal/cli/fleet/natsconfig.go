package fleet

import (
	"fmt"
	"path/filepath"

	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/transport/nats/natsauth"
)

// NATSConfig prints accounts and users for nats-server, with public keys, and makes those
// keys in keyDir that are missing. "" is the folder nats in the fleet's state folder.
func NATSConfig(env *cli.Env, keyDir string) error {
	_, rules, keyDir, err := natsRules(env, keyDir)
	if err != nil {
		return err
	}
	if env.Format != output.Table {
		return env.WriteJSON(rules) // the rules alone: no keys are made
	}
	keys, err := rules.EnsureKeys(keyDir)
	if err != nil {
		return err
	}
	fmt.Fprintln(env.Stderr, "start each agent with its own key:")
	for _, u := range rules.Users {
		fmt.Fprintf(env.Stderr, "  AGENTD_NATS_NKEY=%s agentd run --agent %s\n", natsauth.KeyFile(keyDir, u.ID), u.ID)
	}
	for _, q := range rules.Queues {
		fmt.Fprintf(env.Stderr, "%s uses JetStream with a second key, which agentd expects beside the first: %s\n",
			q.ID, natsauth.KeyFile(keyDir, natsauth.QueueKey(q.ID)))
	}
	if len(rules.Queues) > 0 {
		fmt.Fprintln(env.Stderr, "once the server runs, make what they use: agentd fleet provision")
	}
	return rules.WriteConfig(env.Stdout, keys)
}

// natsRules derives the rules of the fleet, and returns the folder of their keys.
func natsRules(env *cli.Env, keyDir string) (*fleet.Fleet, *natsauth.Rules, string, error) {
	f, paths, err := env.InspectFleet()
	if err != nil {
		return nil, nil, "", err
	}
	mayCall, err := policy.Reach(f)
	if err != nil {
		return nil, nil, "", err
	}
	rules, err := natsauth.Derive(f, natsauth.Options{Allowed: mayCall})
	if keyDir == "" {
		keyDir = filepath.Join(paths.State, "nats")
	}
	return f, rules, keyDir, err
}

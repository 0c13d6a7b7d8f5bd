package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/transport/nats"
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
		fmt.Fprintln(env.Stderr, "once the server runs, with JetStream (agentd broker --config <file> --store <folder>), make what they use: agentd fleet provision")
	}
	return rules.WriteConfig(env.Stdout, keys)
}

// A JWTRequest is what `agentd fleet nats-config --jwt` was asked for.
type JWTRequest struct {
	// Dir gets the accounts.
	Dir string
	// Keys is the folder of the keys; "" is the folder nats in the fleet's state folder.
	Keys string
	// SigningKey is the path of the operator's seed, or of one of its signing keys.
	SigningKey string
	// Push sends the accounts to the servers.
	Push bool
}

// NATSAccounts makes accounts and credentials for a NATS system in operator mode.
func NATSAccounts(ctx context.Context, env *cli.Env, r JWTRequest) error {
	f, rules, keyDir, err := natsRules(env, r.Keys)
	if err != nil {
		return err
	}
	if r.SigningKey == "" {
		return cli.Usage("--signing-key: --jwt needs the seed of the operator, or of one of its signing keys")
	}
	operator, err := natsauth.ReadOperatorKey(r.SigningKey)
	if err != nil {
		return err
	}
	accounts, err := rules.Accounts(keyDir, operator)
	if err == nil {
		err = natsauth.WriteAccounts(r.Dir, accounts)
	}
	if err == nil && r.Push {
		err = pushAccounts(ctx, env, f, accounts)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(env.Stderr, "credentials are in %s: start each agent with AGENTD_NATS_CREDS=%s\n", keyDir, natsauth.CredsFile(keyDir, "<agent>"))
	if env.Format != output.Table {
		return env.WriteJSON(accounts)
	}
	for _, a := range accounts {
		if _, err := fmt.Fprintln(env.Stdout, a.Key, a.Name); err != nil {
			return err
		}
	}
	return nil
}

// pushAccounts sends accounts to the servers, with the credentials of the environment,
// which must be those of a user of the system account.
func pushAccounts(ctx context.Context, env *cli.Env, f *fleet.Fleet, accounts []natsauth.Account) error {
	ctx, cancel := context.WithTimeout(ctx, provisionTimeout)
	defer cancel()
	opts := daemon.ServersOf(f, nats.FromEnv(env.Getenv))
	opts.Name = "agentd/nats-config"
	conn, err := nats.Connect(ctx, opts)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // everything that was sent has been answered
	for _, a := range accounts {
		answer, err := conn.Client().RequestWithContext(ctx, natsauth.ClaimsSubject, []byte(a.JWT))
		if err != nil {
			return fmt.Errorf("the account %s was not taken (are these the credentials of a user of the system account, and is the resolver a full one?): %w", a.Name, err)
		}
		var refused struct{ Error struct{ Description string } }
		if json.Unmarshal(answer.Data, &refused) != nil || refused.Error.Description != "" {
			return fmt.Errorf("the account %s was refused: %s", a.Name, refused.Error.Description)
		}
	}
	return nil
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

package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats"
	"github.com/agentd/agentd/transport/nats/durable"
	"github.com/agentd/agentd/transport/nats/natsauth"
)

// provisionTimeout bounds a whole run: a server that does not answer must not hold up a
// deployment.
const provisionTimeout = 2 * time.Minute

// A ProvisionRequest is what `agentd fleet provision` was asked for.
type ProvisionRequest struct {
	// Keys is the folder of the keys; "" is the folder nats in the fleet's state folder.
	Keys string
	// Check changes nothing.
	Check bool
}

// A provisioned is what was found out about one resource of an agent.
type provisioned struct {
	Agent string `json:"agent"`
	durable.Finding
}

// Provision makes the streams, consumers and buckets that the fleet's agents use, and
// changes those that differ. The error of a check is a finding if something is missing
// or differs.
func Provision(ctx context.Context, env *cli.Env, r ProvisionRequest) error {
	f, rules, keyDir, err := natsRules(env, r.Keys)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, provisionTimeout)
	defer cancel()
	all := []provisioned{}
	if len(rules.Queues) > 0 {
		conn, err := connectOperator(ctx, env, f, keyDir)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }() // everything that was sent has been answered
		if all, err = provisionAll(ctx, conn, f, rules, r.Check); err != nil {
			if len(all) == 0 {
				return err
			}
			return errors.Join(err, writeProvisioned(env, all))
		}
	}
	if err := writeProvisioned(env, all); err != nil {
		return err
	}
	for _, p := range all {
		if p.State == durable.Missing || p.State == durable.Differs {
			return cli.Finding(nil)
		}
	}
	return nil
}

// connectOperator connects as the operator: with the credentials of the environment, or
// else with the key that nats-config has made, if the server wants one.
func connectOperator(ctx context.Context, env *cli.Env, f *fleet.Fleet, keyDir string) (*nats.Conn, error) {
	opts := daemon.ServersOf(f, nats.FromEnv(env.Getenv))
	opts.Name = "agentd/provision"
	conn, err := nats.Connect(ctx, opts)
	if errors.Is(err, transport.Denied) && !opts.Authenticates() {
		if creds := natsauth.CredsFile(keyDir, natsauth.OperatorKey); exists(creds) {
			with := opts
			with.CredsFile = creds
			if conn, err := nats.Connect(ctx, with); !errors.Is(err, transport.Denied) {
				return conn, err
			}
		}
		key := natsauth.KeyFile(keyDir, natsauth.OperatorKey)
		if !exists(key) {
			return nil, fmt.Errorf("%w\n(the operator's key is not in %s: name its folder with --keys, or set AGENTD_NATS_NKEY or AGENTD_NATS_CREDS)", err, keyDir)
		}
		opts.NKeySeedFile = key
		conn, err = nats.Connect(ctx, opts)
	}
	return conn, err
}

func provisionAll(ctx context.Context, conn *nats.Conn, f *fleet.Fleet, rules *natsauth.Rules, check bool) (all []provisioned, err error) {
	js, err := conn.JetStream()
	if err != nil {
		return nil, err
	}
	for _, q := range rules.Queues {
		m, _ := f.Member(q.ID) // the rules are derived from the members
		resources := durable.ResourcesOf(daemon.DurableOptions(f, m), q.Requests, q.Calls)
		resources.Buckets = append(resources.Buckets, daemon.SharedBuckets(f, m, &q)...)
		findings, err := resources.Provision(ctx, js, check)
		for _, finding := range findings {
			all = append(all, provisioned{Agent: q.ID, Finding: finding})
		}
		if durable.NoJetStream(err) {
			return all, fmt.Errorf("agent %s: the broker has no JetStream where agentd is the operator: turn it on (`agentd broker --store <folder>`, or `jetstream {}` in the configuration of nats-server), and use the accounts of `agentd fleet nats-config`: %w", q.ID, err)
		}
		if err != nil {
			return all, fmt.Errorf("agent %s: %w", q.ID, err)
		}
	}
	return all, nil
}

func writeProvisioned(env *cli.Env, all []provisioned) error {
	if env.Format != output.Table {
		return env.WriteJSON(all)
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(env.Stdout, "no agent of the fleet uses JetStream")
		return err
	}
	w := tabwriter.NewWriter(env.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "AGENT\tKIND\tNAME\tSTATE\tSETTINGS")
	for _, p := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", p.Agent, p.Kind, p.Name, p.State, strings.Join(p.Settings, "; "))
	}
	return w.Flush()
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

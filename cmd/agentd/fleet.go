package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/fleet"
	fleetcli "github.com/agentd/agentd/internal/cli/fleet"
)

// fleetCommand returns `agentd fleet`. All of its commands but run, peers --verify,
// status and reset-breaker read files only.
func (a *app) fleetCommand() *cobra.Command {
	return a.group(&cobra.Command{Use: "fleet", Short: "Run the fleet, and look at its files"},
		a.fleetRunCommand(), a.fleetValidateCommand(), a.fleetListCommand(), a.fleetCapabilitiesCommand(),
		a.fleetGraphCommand(), a.fleetPeersCommand(), a.fleetStatusCommand(), a.fleetResetBreakerCommand(),
		a.fleetNATSConfigCommand(), a.fleetProvisionCommand(),
	)
}

// fleetValidateCommand returns `agentd fleet validate`, the check to run before a
// deployment.
func (a *app) fleetValidateCommand() *cobra.Command {
	var strict bool
	cmd := &cobra.Command{
		Use: "validate", Short: "Check every file of the fleet; exit status 3 when there are errors", Args: arguments(0),
		Long: "Check every file of the fleet, each for itself and all of them together: names that lead nowhere,\n" +
			"calls that nobody can make, subjects that cannot be subscribed, programs that are not there,\n" +
			"bounds that contradict each other, and keys without effect.\n\n" +
			"Errors (✗) keep an agent from starting. Warnings (!) are about what will not work here, and notes\n" +
			"(·) about what is taken as intended. Each has a stable name, a place and, mostly, a remedy.",
		Example: "  agentd fleet validate --strict -o json",
		RunE:    a.do(func(context.Context, []string) error { return fleetcli.Validate(&a.Env, strict) }),
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "fail on warnings, too")
	return cmd
}

func (a *app) fleetListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the members of the fleet", Args: arguments(0),
		RunE: a.do(func(context.Context, []string) error { return fleetcli.List(&a.Env) }),
	}
}

func (a *app) fleetCapabilitiesCommand() *cobra.Command {
	return &cobra.Command{
		Use: "capabilities", Short: "List what the members offer", Args: arguments(0),
		RunE: a.do(func(context.Context, []string) error { return fleetcli.Capabilities(&a.Env) }),
	}
}

// fleetGraphCommand returns `agentd fleet graph`. Its formats are those of other
// programs, hence --format and not -o.
func (a *app) fleetGraphCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use: "graph", Short: "Draw who may call whom", Args: arguments(0),
		Example: "  agentd fleet graph --format dot | dot -Tsvg > fleet.svg",
		RunE: a.do(func(context.Context, []string) error {
			return fleetcli.Graph(&a.Env, fleet.GraphFormat(format))
		}),
	}
	cmd.Flags().StringVar(&format, "format", "mermaid", "mermaid, dot or json")
	return cmd
}

func (a *app) fleetPeersCommand() *cobra.Command {
	var r fleetcli.PeersRequest
	cmd := &cobra.Command{
		Use:   "peers [agent://id]…",
		Short: "List the members' peers, and whether they can be reached",
		Long: "List whom the members call, and how. With --verify the running agents ask each of their peers,\n" +
			"under their own identity and over their own transports, what it offers now: reachable is a peer\n" +
			"that answers and offers what the caller was built against, drifted one that offers something\n" +
			"else, unreachable one that does not answer. Without --verify a peer is not-yet-probed, or\n" +
			"external: no member of the fleet.\n\n" +
			"With --verify the exit status is 3 when a peer is not reachable, or has drifted.",
		Example: "  agentd fleet peers\n" +
			"  agentd fleet peers --verify --as concierge -o json",
		RunE: a.do(func(ctx context.Context, args []string) error {
			r.Only = args
			return fleetcli.Peers(ctx, &a.Env, r)
		}),
	}
	cmd.Flags().StringVar(&r.As, "as", "", "the calling agent (default: all members; with --verify, those that run here)")
	cmd.Flags().BoolVar(&r.Verify, "verify", false, "ask the peers")
	return cmd
}

// fleetStatusCommand returns `agentd fleet status`. It shows processes; `agentd
// fleet peers` shows what callers can reach.
func (a *app) fleetStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show which members run, here and elsewhere",
		Long: "Show which members run: on this machine, by their control sockets, and anywhere on the NATS\n" +
			"system that the fleet's files or AGENTD_NATS_URL name, as NATS services. An agent that only\n" +
			"calls others is no service, and is shown only on its own machine.\n\n" +
			"The exit status is 3 when a member does not run, or is not ready.",
		Example: "  agentd fleet status\n" +
			"  agentd fleet status -o json | jq -r '.[] | select(.state != \"ready\") | .agent'",
		Args: arguments(0),
		RunE: a.do(func(ctx context.Context, _ []string) error { return fleetcli.Status(ctx, &a.Env) }),
	}
}

// fleetResetBreakerCommand returns `agentd fleet reset-breaker`.
func (a *app) fleetResetBreakerCommand() *cobra.Command {
	var agent string
	cmd := &cobra.Command{
		Use:   "reset-breaker [<peer>[/<capability>]]",
		Short: "Close circuit breakers now, without waiting for their cool-down",
		Long: "Close the circuit breakers of the agents that run here, so that they call a capability again at\n" +
			"once: those of a peer, of one of its capabilities, or all. The output lists those that were open\n" +
			"or half-open; `agentd fleet status -o json` lists them all. A breaker opens again when calls go\n" +
			"on failing.",
		Example: "  agentd fleet reset-breaker\n" +
			"  agentd fleet reset-breaker pr-reviewer/review-pr --as concierge",
		Args: arguments(0, "peer/capability"),
		RunE: a.do(func(ctx context.Context, args []string) error {
			return fleetcli.ResetBreakers(ctx, &a.Env, agent, strings.Join(args, ""))
		}),
	}
	cmd.Flags().StringVar(&agent, "as", "", "the calling agent (default: every agent that runs here)")
	return cmd
}

// fleetNATSConfigCommand returns `agentd fleet nats-config`. The configuration goes
// to standard output, so that --output does not apply to it.
func (a *app) fleetNATSConfigCommand() *cobra.Command {
	var keys string
	var r fleetcli.JWTRequest
	cmd := &cobra.Command{
		Use:   "nats-config",
		Short: "Write nats-server permissions: who may call whom, enforced by the broker",
		Long: "Write accounts and users for nats-server from the fleet's files. Each member gets a user\n" +
			"that may publish to the peers that its permissions let it call, subscribe to its own subjects,\n" +
			"read its own replies, answer its callers, and nothing else. JetStream has an account of its own;\n" +
			"members use it from further accounts, which import what each of them needs.\n\n" +
			"Users are identified by nkeys: missing seeds are created in the folder of --keys, and the\n" +
			"configuration holds public keys only.\n\n" +
			"With --jwt it writes the same for a NATS system in operator mode: accounts, signed with the seed of\n" +
			"--signing-key, to that folder, and the users' credentials to the folder of --keys. With --push it sends\n" +
			"the accounts to the servers too, with AGENTD_NATS_CREDS of a user of the system account, so that no\n" +
			"server is restarted when an agent is new.",
		Example: "  agentd fleet nats-config > nats.conf\n  agentd broker --config nats.conf --store streams\n" +
			"  AGENTD_NATS_NKEY=keys/pr-reviewer.nk agentd run --agent pr-reviewer",
		Args: arguments(0),
		RunE: a.do(func(ctx context.Context, _ []string) error {
			if r.Keys = keys; r.Dir != "" {
				return fleetcli.NATSAccounts(ctx, &a.Env, r)
			}
			return fleetcli.NATSConfig(&a.Env, keys)
		}),
	}
	cmd.Flags().StringVar(&r.Dir, "jwt", "", "write accounts for operator mode to this folder")
	cmd.Flags().StringVar(&r.SigningKey, "signing-key", "", "with --jwt: file with the seed of the operator or of one of its signing keys")
	cmd.Flags().BoolVar(&r.Push, "push", false, "with --jwt: send the accounts to the servers")
	cmd.Flags().StringVar(&keys, "keys", "", "folder of the members' nkey seeds (default: nats in the fleet's state folder)")
	return cmd
}

// fleetProvisionCommand returns `agentd fleet provision`, which has an operator's rights.
func (a *app) fleetProvisionCommand() *cobra.Command {
	var r fleetcli.ProvisionRequest
	cmd := &cobra.Command{
		Use:   "provision",
		Short: "Make the streams, consumers and buckets that the members use in JetStream",
		Long: "Make the streams, consumers and key-value buckets that the members use in JetStream, and change\n" +
			"those that differ from what the fleet's files say. Under the rules of `agentd fleet nats-config`\n" +
			"members can make and change nothing there themselves. It may be repeated.\n\n" +
			"It connects with the credentials of AGENTD_NATS_NKEY or AGENTD_NATS_CREDS, or else with the\n" +
			"operator's key in the folder of --keys. With --check it changes nothing, and the exit status is 3\n" +
			"when something is missing or differs.",
		Example: "  agentd fleet provision\n  agentd fleet provision --check -o json",
		Args:    arguments(0),
		RunE:    a.do(func(ctx context.Context, _ []string) error { return fleetcli.Provision(ctx, &a.Env, r) }),
	}
	cmd.Flags().StringVar(&r.Keys, "keys", "", "folder of the keys (default: nats in the fleet's state folder)")
	cmd.Flags().BoolVar(&r.Check, "check", false, "change nothing, and say what differs")
	return cmd
}

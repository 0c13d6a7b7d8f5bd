package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/daemon/broker"
	"github.com/agentd/agentd/internal/cli/serve"
)

func (a *app) runCommand() *cobra.Command {
	var agent string
	var watching bool
	cmd := &cobra.Command{
		Use:   "run --agent <id>",
		Short: "Run one member of the fleet, until SIGINT or SIGTERM",
		Long: "Run one member of the fleet in this process.\n\n" +
			"SIGTERM stops it gracefully: it accepts no more calls, finishes those that are running within\n" +
			"the agent's shutdownTimeoutMs, and closes the audit log. A second signal kills it. SIGHUP\n" +
			"reloads the files, and so does a change of a file unless --watch=false: capabilities, skills,\n" +
			"peers and permissions are replaced, or, when a file is faulty, nothing is.\n\n" +
			"As a systemd service of Type=notify or notify-reload it reports when it is ready, and with WatchdogSec\n" +
			"that it is alive. The exit status is 1 when the NATS server closes its connection for good.",
		Example: "  agentd run --agent pr-reviewer\n  agentd run --agent pr-reviewer --listen 127.0.0.1:9464",
		Args:    arguments(0),
		RunE: a.do(func(ctx context.Context, _ []string) error {
			return serve.Agent(ctx, &a.Env, agent, watching)
		}),
	}
	cmd.Flags().StringVar(&agent, "agent", "", "id of the member to run (required)")
	cmd.Flags().BoolVar(&watching, "watch", true, "reload the files when they change")
	a.serviceFlags(cmd)
	required(cmd, "agent")
	return cmd
}

// logCallsFlag adds --log-calls. Without it, the environment decides.
func (a *app) logCallsFlag(cmd *cobra.Command) {
	var on bool
	cmd.Flags().BoolVar(&on, "log-calls", false, "log a line for each call, at both ends (default: $AGENTD_LOG_CALLS, then false)")
	cmd.PreRun = func(*cobra.Command, []string) {
		if cmd.Flags().Changed("log-calls") {
			a.LogCalls = &on
		}
	}
}

// serviceFlags adds --log-calls, --listen and --pprof. Without the first two, the environment
// decides.
func (a *app) serviceFlags(cmd *cobra.Command) {
	a.logCallsFlag(cmd)
	var listen string
	cmd.Flags().StringVar(&listen, "listen", "", "serve /livez, /readyz, /startupz and /metrics over HTTP at <host>:<port> (default: $AGENTD_LISTEN, then monitoring.listen of agent.yaml)")
	cmd.Flags().BoolVar(&a.Profiles, "pprof", false, "serve profiles there, too")
	calls := cmd.PreRun
	cmd.PreRun = func(c *cobra.Command, args []string) {
		calls(c, args)
		if cmd.Flags().Changed("listen") {
			a.Listen = &listen
		}
	}
}

// fleetRunCommand returns `agentd fleet run`, which stands here and not with the
// rest of `agentd fleet` because it shares all but the choice of agents with
// `agentd run`.
func (a *app) fleetRunCommand() *cobra.Command {
	var watching bool
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run every member of the fleet in this process, until SIGINT or SIGTERM",
		Long: "Run every member of the fleet in this process.\n\n" +
			"SIGTERM or SIGINT stops it gracefully; a second one kills it. SIGHUP reloads the files, and so\n" +
			"does a change of a file unless --watch=false: capabilities, skills, peers and permissions are\n" +
			"replaced, or, when a file is faulty, nothing is.",
		Args: arguments(0),
		RunE: a.do(func(ctx context.Context, _ []string) error {
			return serve.Fleet(ctx, &a.Env, watching)
		}),
	}
	cmd.Flags().BoolVar(&watching, "watch", true, "reload the files when they change")
	a.serviceFlags(cmd)
	return cmd
}

func (a *app) brokerCommand() *cobra.Command {
	var r serve.BrokerRequest
	var port uint16
	cmd := &cobra.Command{
		Use:   "broker",
		Short: "Run a NATS server in this process, until SIGINT or SIGTERM",
		Long: "Run a NATS server in this process, with JetStream, for development and for fleets on one\n" +
			"machine. It listens on loopback only, unless --host or the configuration file says otherwise,\n" +
			"and prints its URL on standard output once it accepts connections. To restrict which agent\n" +
			"may reach which, use the permissions that `agentd fleet nats-config` writes.",
		Example: "  agentd broker\n  agentd fleet nats-config > nats.conf && agentd broker --config nats.conf --store streams",
		Args:    arguments(0),
	}
	flags := cmd.Flags()
	flags.Uint16Var(&port, "port", broker.DefaultPort, "TCP port; 0 is any free one (default with --config: the file's)")
	flags.StringVar(&r.Host, "host", "", "address to listen on (default: the file's, then "+broker.DefaultHost+")")
	flags.StringVar(&r.Store, "store", "", "folder for streams, and JetStream (default: agentd/broker in $XDG_STATE_HOME; with --config: what the file says)")
	flags.StringVar(&r.ConfigFile, "config", "", "configuration file for nats-server")
	cmd.RunE = a.do(func(ctx context.Context, _ []string) error {
		// The flag's default must not override the port of a configuration file.
		if flags.Changed("port") || r.ConfigFile == "" {
			r.Port = &port
		}
		return serve.Broker(ctx, &a.Env, r)
	})
	return cmd
}

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/daemon/broker"
)

// brokerStopLimit bounds how long the broker may take to close its streams.
const brokerStopLimit = 10 * time.Second

func (a *app) brokerCommand() *cobra.Command {
	var port uint16
	var host, store, config string
	cmd := &cobra.Command{
		Use:   "broker",
		Short: "Run a NATS server in this process, until SIGINT or SIGTERM",
		Long: "Run a NATS server in this process, with JetStream, for development and for fleets on one\n" +
			"machine. It listens on loopback only, unless --host or the configuration file says otherwise,\n" +
			"and prints its URL on standard output once it takes connections. Who must not reach every\n" +
			"agent needs the permissions that `agentd fleet nats-config` writes.",
		Example: "  agentd broker\n  agentd fleet nats-config > nats.conf && agentd broker --config nats.conf",
		Args:    cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.Uint16Var(&port, "port", broker.DefaultPort, "TCP port; 0 is any free one (default with --config: the file's)")
	flags.StringVar(&host, "host", "", "address to listen on (default: the file's, then "+broker.DefaultHost+")")
	flags.StringVar(&store, "store", "", "folder for streams (default: the file's, then agentd/broker in $XDG_STATE_HOME)")
	flags.StringVar(&config, "config", "", "configuration file of nats-server's")
	cmd.RunE = a.do(func(ctx context.Context, _ []string) error {
		cfg := broker.Config{ConfigFile: config, Host: host, StoreDir: store}
		if flags.Changed("port") || config == "" {
			cfg.Port = int(port)
		}
		if cfg.Port == 0 && flags.Changed("port") {
			cfg.Port = broker.RandomPort
		}
		return a.runBroker(ctx, cfg)
	})
	return cmd
}

func (a *app) runBroker(ctx context.Context, cfg broker.Config) (err error) {
	if cfg.Logger, err = a.logger(); err != nil {
		return err
	}
	if cfg.StoreDir == "" && cfg.ConfigFile == "" {
		if cfg.StoreDir, err = broker.DefaultStoreDir(a.getenv); err != nil {
			return err
		}
	}
	b, err := broker.Start(ctx, cfg)
	if err != nil {
		return err
	}
	fmt.Fprintln(a.stdout, b.URL())
	if dir, on := b.JetStream(); on {
		fmt.Fprintf(a.stderr, "streams are kept in %s\n", dir)
	}
	fmt.Fprintln(a.stderr, "ready. press ctrl-c to stop.")
	<-ctx.Done()
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), brokerStopLimit)
	defer cancel()
	return b.Stop(stopCtx)
}

package serve

import (
	"context"
	"fmt"
	"time"

	"github.com/agentd/agentd/daemon/broker"
	"github.com/agentd/agentd/internal/cli"
)

// brokerStopTimeout bounds how long the broker may take to close its streams.
const brokerStopTimeout = 10 * time.Second

// A BrokerRequest is one `agentd broker`.
type BrokerRequest struct {
	// Port is the TCP port, 0 any free one. Nil means that of ConfigFile, else
	// [broker.DefaultPort].
	Port *uint16
	// Host and Store are "" for those of ConfigFile, else the defaults.
	Host, Store string
	ConfigFile  string
}

// Broker runs a NATS server in this process until ctx ends. It prints the URL on
// standard output once the server accepts connections, for scripts to wait for.
func Broker(ctx context.Context, env *cli.Env, r BrokerRequest) error {
	cfg := broker.Config{ConfigFile: r.ConfigFile, Host: r.Host, StoreDir: r.Store}
	switch {
	// broker.Config uses 0 for "not set", so a port of 0 from the command line
	// becomes RandomPort.
	case r.Port == nil:
	case *r.Port == 0:
		cfg.Port = broker.RandomPort
	default:
		cfg.Port = int(*r.Port)
	}
	logsForMachines(env)
	var err error
	if cfg.Logger, err = env.Logger(); err != nil {
		return err
	}
	conceal(cfg.Logger)
	// A configuration file decides by itself whether and where streams are kept.
	if cfg.StoreDir == "" && cfg.ConfigFile == "" {
		if cfg.StoreDir, err = broker.DefaultStoreDir(env.Getenv); err != nil {
			return err
		}
	}
	b, err := broker.Start(ctx, cfg)
	if err != nil {
		return err
	}
	// The URL is the only line on standard output; all that is meant for a person
	// goes to standard error.
	fmt.Fprintln(env.Stdout, b.URL())
	out := console{env, cfg.Logger}
	if dir, on := b.JetStream(); on {
		out.say("streams are kept in "+dir, "streams are kept", "folder", dir)
	}
	out.say("ready. press ctrl-c to stop.", "ready", "url", b.URL())
	<-ctx.Done()
	// ctx has ended, so the stop runs under its own bound.
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), brokerStopTimeout)
	defer cancel()
	return b.Stop(stopCtx)
}

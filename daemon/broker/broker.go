package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Defaults of Config.
const (
	DefaultHost = "127.0.0.1"
	DefaultPort = 4222
	// RandomPort asks for any free port.
	RandomPort = server.RANDOM_PORT
)

// startTimeout bounds a start whose context has no deadline.
const startTimeout = 30 * time.Second

// A Config describes where a broker listens and keeps its streams. The zero value
// is a broker on 127.0.0.1:4222 without streams.
type Config struct {
	// ConfigFile is a configuration file for nats-server; "" is none. The other fields
	// of Config override it.
	ConfigFile string
	// Host is the address to listen on. Default: the file's, else [DefaultHost],
	// which other machines cannot reach.
	Host string
	// Port is the TCP port, [RandomPort] for any. Default: the file's, else
	// [DefaultPort].
	Port int
	// StoreDir is the folder for JetStream's streams. Setting it enables JetStream,
	// which otherwise only the file can do.
	StoreDir string
	// Name is the name of the server in its log and monitoring. Default:
	// "agentd-broker".
	Name string
	// Logger receives what the server logs. Default: the log is discarded.
	Logger *slog.Logger
}

// A Broker is a running nats-server.
type Broker struct {
	server *server.Server
	addr   *net.TCPAddr
}

// Start starts a broker, and returns when it accepts connections. ctx bounds only
// the start.
func Start(ctx context.Context, cfg Config) (*Broker, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("broker: %w", context.Cause(ctx))
	}
	opts, err := options(cfg)
	if err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	// nats-server itself would retry for ten seconds before it reports the port.
	if err := canListen(ctx, opts); err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	log := newLogger(cfg.Logger)
	s.SetLoggerV2(log, opts.Debug, opts.Trace, opts.TraceVerbose)
	b := &Broker{server: s}
	s.Start()
	if err := b.awaitReady(ctx, log.fatal); err != nil {
		return nil, errors.Join(fmt.Errorf("broker: %w", err), b.Stop(context.WithoutCancel(ctx)))
	}
	return b, nil
}

// options merges cfg over the configuration file, and the defaults below both.
func options(cfg Config) (*server.Options, error) {
	opts := &server.Options{}
	if cfg.ConfigFile != "" {
		var err error
		if opts, err = server.ProcessConfigFile(cfg.ConfigFile); err != nil {
			return nil, fmt.Errorf("configuration %s: %w", cfg.ConfigFile, err)
		}
	}
	opts.NoSigs = true // the process handles its signals itself
	if cfg.StoreDir != "" {
		opts.JetStream, opts.StoreDir = true, cfg.StoreDir
	}
	for _, o := range []struct {
		value             *string
		configured, usual string
	}{
		{&opts.Host, cfg.Host, DefaultHost},
		{&opts.ServerName, cfg.Name, "agentd-broker"},
	} {
		if o.configured != "" {
			*o.value = o.configured
		} else if *o.value == "" {
			*o.value = o.usual
		}
	}
	if cfg.Port != 0 {
		opts.Port = cfg.Port
	} else if opts.Port == 0 {
		opts.Port = DefaultPort
	}
	return opts, nil
}

// canListen checks that the port is free. Another process may still take it before
// the server does, which awaitReady then reports.
func canListen(ctx context.Context, opts *server.Options) error {
	port := max(opts.Port, 0) // RandomPort is negative
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(opts.Host, strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("%w (choose another port)", err)
	}
	return l.Close()
}

// awaitReady polls the server: it reports a failed start through its log, and a
// successful one not at all.
func (b *Broker) awaitReady(ctx context.Context, fatal <-chan string) error {
	const interval = 50 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for !b.server.ReadyForConnections(interval) {
		select {
		case why := <-fatal:
			return fmt.Errorf("the server did not start: %s", why)
		case <-ctx.Done():
			return fmt.Errorf("the server did not start: %w", context.Cause(ctx))
		default:
		}
	}
	addr, ok := b.server.Addr().(*net.TCPAddr)
	if !ok {
		return fmt.Errorf("the server listens on %v, which is no TCP address", b.server.Addr())
	}
	b.addr = addr
	return nil
}

// Addr returns the host and port that the broker listens on.
func (b *Broker) Addr() string { return b.addr.String() }

// URL returns the address for clients on this machine.
func (b *Broker) URL() string {
	host := b.addr.IP
	// 0.0.0.0 is no address to connect to.
	if host.IsUnspecified() {
		host = net.IPv4(127, 0, 0, 1)
	}
	return "nats://" + net.JoinHostPort(host.String(), strconv.Itoa(b.addr.Port))
}

// JetStream reports whether the broker keeps streams, and where.
func (b *Broker) JetStream() (dir string, on bool) {
	if !b.server.JetStreamEnabled() {
		return "", false
	}
	return b.server.JetStreamConfig().StoreDir, true
}

// Stop closes every connection and then the store, and returns when the server has
// stopped. When ctx ends first, Stop returns its error, and the server continues
// to stop in the background. Stopping twice is harmless.
func (b *Broker) Stop(ctx context.Context) error {
	stopped := make(chan struct{})
	// nats-server cannot be interrupted while it stops. The goroutine ends when it
	// has stopped, even if Stop has returned before.
	go func() {
		b.server.Shutdown()
		b.server.WaitForShutdown()
		close(stopped)
	}()
	select {
	case <-stopped:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("broker: still stopping: %w", context.Cause(ctx))
	}
}

package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats"
	"github.com/agentd/agentd/transport/nats/natsauth"
)

// openTransports connects by the transports that the agent's files name and this
// version speaks. The memory transport is there only with a bus. With it NATS is
// left alone where memory goes everywhere, unless its servers are set
// explicitly: a fleet in one process needs no broker.
func (d *Daemon) openTransports(ctx context.Context) error {
	if d.cfg.Bus != nil {
		d.transports = append(d.transports, d.cfg.Bus.Connect())
	}
	specs := natsSpecs(d.Member())
	explicit := len(d.cfg.NATS.Servers) > 0 || d.cfg.NATS.Context != ""
	if len(specs) == 0 || d.cfg.Bus != nil && !explicit && memoryReaches(d.Member()) {
		return nil
	}
	opts := d.cfg.NATS.WithServers(specs[0].Servers)
	for _, spec := range specs[1:] {
		if !slices.Equal(spec.Servers, specs[0].Servers) {
			d.log.Warn("the agent's files name two NATS systems; this process connects to the first",
				"first", specs[0].Servers, "other", spec.Servers, "where", spec.Position)
		}
	}
	opts.Name = "agentd/" + d.Member().ID
	opts.InboxPrefix = natsauth.InboxPrefix(d.Member().ID)
	opts.Logger = d.log
	conn, err := d.connect(ctx, opts)
	if err != nil {
		return fmt.Errorf("nats: %w\n(start a server with `agentd broker`, name another one in AGENTD_NATS_URL, or run the whole fleet in one process with `agentd fleet run`)", err)
	}
	d.transports = append(d.transports, conn)
	return nil
}

// connect tries the key that `agentd fleet nats-config` has left for the agent,
// when nobody says who to be there and the server wants to know. It is not
// tried first: a server without users refuses a client that names one.
func (d *Daemon) connect(ctx context.Context, opts nats.Options) (*nats.Conn, error) {
	conn, err := nats.Connect(ctx, opts)
	key := natsauth.KeyFile(filepath.Join(d.cfg.Paths.State, "nats"), d.Member().ID)
	if !errors.Is(err, transport.Denied) || opts.Authenticates() {
		return conn, err
	}
	if _, missing := os.Stat(key); missing != nil {
		return conn, err
	}
	opts.NKeySeedFile = key
	return nats.Connect(ctx, opts)
}

// memoryReaches reports whether the member and all its peers list memory.
func memoryReaches(m *fleet.Member) bool {
	hasMemory := func(specs []capability.TransportSpec) bool {
		return slices.ContainsFunc(specs, func(s capability.TransportSpec) bool { return s.Kind == capability.Memory })
	}
	if m.Capabilities != nil && !hasMemory(m.Capabilities.Transports) {
		return false
	}
	return !slices.ContainsFunc(m.Peers, func(p *fleet.Peer) bool { return !hasMemory(p.Transports) })
}

// natsSpecs are the transports of kind nats by which the member is reached and
// reaches its peers, its own first.
func natsSpecs(m *fleet.Member) (specs []capability.TransportSpec) {
	add := func(all []capability.TransportSpec) {
		for _, spec := range all {
			if spec.Kind == capability.NATS {
				specs = append(specs, spec)
			}
		}
	}
	if m.Capabilities != nil {
		add(m.Capabilities.Transports)
	}
	for _, p := range m.Peers {
		add(p.Transports)
	}
	return specs
}

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
// version supports: memory if there is a bus, and NATS.
//
// With a bus NATS is skipped if memory reaches everybody, unless its servers are set
// explicitly: a fleet in one process then needs no broker.
func (d *Daemon) openTransports(ctx context.Context) error {
	if d.cfg.Bus != nil {
		d.transports = append(d.transports, d.cfg.Bus.Connect())
	}
	specs := natsSpecs(d.Member())
	if len(specs) == 0 || d.cfg.Bus != nil && NeedsNoBroker(d.Member(), d.cfg.NATS) {
		return nil
	}
	opts := d.cfg.NATS.WithServers(specs[0].Servers)
	// One connection for a process: a second system would need credentials and an
	// inbox of its own.
	for _, spec := range specs[1:] {
		if !slices.Equal(spec.Servers, specs[0].Servers) {
			d.log.Warn("the agent's files name two NATS systems; this process connects to the first",
				"first", specs[0].Servers, "other", spec.Servers, "where", spec.Position)
		}
	}
	opts.Name = "agentd/" + d.Member().ID
	opts.Logger = d.log
	err := d.awaitBroker(ctx, func(ctx context.Context) error {
		conn, with, err := connectNATS(ctx, d.cfg.Paths, d.Member().ID, opts)
		if err != nil {
			return err
		}
		if d.jetStream, err = connectJetStream(ctx, with); err != nil {
			return errors.Join(err, conn.Close())
		}
		d.transports = append(d.transports, conn)
		return nil
	})
	if _, ok := errors.AsType[*nats.TLSError](err); ok {
		return fmt.Errorf("nats: %w\n(the broker is there: mend its certificate, or the files of AGENTD_NATS_CA, AGENTD_NATS_CERT and AGENTD_NATS_KEY)", err)
	}
	if errors.Is(err, transport.Disconnected) {
		return fmt.Errorf("nats: %w\n(start a server with `agentd broker`, name another one in AGENTD_NATS_URL, or run the whole fleet in one process with `agentd fleet run`)", err)
	}
	if err != nil {
		return fmt.Errorf("nats: %w", err)
	}
	return nil
}

// NeedsNoBroker reports whether a member does without NATS in a process with the rest of its fleet:
// memory reaches all whom it calls, and nobody has named a server.
func NeedsNoBroker(m *fleet.Member, opts nats.Options) bool {
	return len(opts.Servers) == 0 && opts.Context == "" && memoryReaches(m)
}

// connectNATS connects a member, and tries again with the credentials that `agentd fleet
// nats-config` has left for the agent if the server demands credentials and none are configured.
// The key does not come first because a server without users refuses a client that
// presents one.
//
// The options that it returns are those with which it has connected.
func connectNATS(ctx context.Context, paths Paths, id string, opts nats.Options) (*nats.Conn, nats.Options, error) {
	// The permissions of `agentd fleet nats-config` allow replies below this prefix only.
	opts.InboxPrefix = natsauth.InboxPrefix(id)
	conn, err := nats.Connect(ctx, opts)
	if !errors.Is(err, transport.Denied) || opts.Authenticates() {
		return conn, opts, err
	}
	dir := filepath.Join(paths.State, "nats")
	// Without a file, the server's own refusal is the better error.
	if creds := natsauth.CredsFile(dir, id); exists(creds) {
		with := opts
		with.CredsFile = creds
		if conn, err = nats.Connect(ctx, with); !errors.Is(err, transport.Denied) {
			return conn, with, err
		}
	}
	if key := natsauth.KeyFile(dir, id); exists(key) {
		opts.NKeySeedFile = key
		conn, err = nats.Connect(ctx, opts)
	}
	return conn, opts, err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// connectJetStream makes a second connection where JetStream belongs to an operator: the
// agent then has credentials for the account that imports its part of JetStream, in a
// file beside those for calls. The two are apart because JetStream answers to any subject
// of the account that a request comes from, without a check.
func connectJetStream(ctx context.Context, opts nats.Options) (*nats.Conn, error) {
	credentials := &opts.NKeySeedFile
	if opts.CredsFile != "" {
		credentials = &opts.CredsFile
	}
	if *credentials == "" {
		return nil, nil
	}
	beside := natsauth.BesideKey(*credentials)
	if !exists(beside) {
		return nil, nil
	}
	*credentials = beside
	opts.Name += "/jetstream"
	opts.JetStreamPrefix = natsauth.APIPrefix
	conn, err := nats.Connect(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("the account for JetStream, with %s: %w", beside, err)
	}
	return conn, nil
}

// jetStreamConn returns the connection by which the agent uses JetStream, or nil.
func (d *Daemon) jetStreamConn() *nats.Conn {
	if d.jetStream != nil {
		return d.jetStream
	}
	return d.nats()
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

// natsSpecs are the NATS transports by which the member is reached, and then those
// by which it reaches its peers.
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

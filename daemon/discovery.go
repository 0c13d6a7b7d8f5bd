package daemon

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/transport/nats"
	"github.com/agentd/agentd/transport/nats/discovery"
	"github.com/agentd/agentd/transport/nats/natsauth"
)

// Metadata of an agent as a NATS service.
const (
	MetadataAgent   = "agent"   // its address
	MetadataFleet   = "fleet"   // the fleet's name
	MetadataDigest  = "digest"  // of its capabilities
	MetadataVersion = "version" // of agentd
	MetadataReady   = "ready"   // true or false
)

// announce makes the agent known to NATS tools, where it takes requests by NATS.
func (d *Daemon) announce() (err error) {
	conn, ok := d.transport(capability.NATS).(*nats.Conn)
	if !ok || d.inbox == nil {
		return nil
	}
	d.announcement, err = discovery.Announce(conn, natsauth.ServiceName(d.Member().ID), d.service)
	return err
}

// service is the agent in the terms of NATS, as it is now.
func (d *Daemon) service() discovery.Service {
	contract := d.Member().Capabilities
	s := discovery.Service{
		Version: d.cfg.Version, Description: fmt.Sprintf("%s of the fleet %s, by agentd", d.Member().Address, d.cfg.Fleet.Name),
		Metadata: map[string]string{
			MetadataAgent: string(d.Member().Address), MetadataFleet: d.cfg.Fleet.Name, MetadataDigest: contract.Digest(),
			MetadataVersion: d.cfg.Version, MetadataReady: fmt.Sprint(d.Ready() == nil),
		},
	}
	var subject string
	for _, spec := range contract.Transports {
		if spec.Kind == capability.NATS {
			subject = spec.Requests
			break
		}
	}
	for _, c := range contract.Capabilities {
		done := d.stats.of(c.Name)
		s.Endpoints = append(s.Endpoints, discovery.Endpoint{
			Name: c.Name, Subject: subject, Group: d.inbox.Group(),
			Metadata: map[string]string{"capability": c.Name, "digest": c.Digest, "description": c.Description},
			Requests: done.requests, Errors: done.errors, Busy: done.busy, LastError: done.lastError,
		})
	}
	return s
}

// quiet is how long no further agent must answer before all have.
const quiet = 300 * time.Millisecond

// FindAgents asks the NATS system that a fleet is on which of its agents run
// there. Without one in opts it is the first that the files name; without any,
// nobody is there. The answers are the agents' own words.
func FindAgents(ctx context.Context, f *fleet.Fleet, opts nats.Options) ([]control.Status, error) {
	for _, m := range f.Members {
		if specs := natsSpecs(m); len(specs) > 0 {
			opts = opts.WithServers(specs[0].Servers)
			break
		}
	}
	if len(opts.Servers) == 0 && opts.Context == "" {
		return nil, nil
	}
	opts.Name = "agentd/status"
	conn, err := nats.Connect(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("nats: %w", err)
	}
	defer func() { _ = conn.Close() }() // only answers were read
	found, err := discovery.Find(ctx, conn, "", quiet)
	var all []control.Status
	for _, i := range found {
		agent, perr := envelope.ParseAddress(i.Metadata[MetadataAgent])
		if perr != nil || i.Metadata[MetadataFleet] != f.Name {
			continue // somebody else's service
		}
		all = append(all, control.Status{
			Agent: agent, Fleet: f.Name, Instance: i.ID, Version: cmp.Or(i.Metadata[MetadataVersion], i.Version), Digest: i.Metadata[MetadataDigest],
			Started: i.Started, Ready: i.Metadata[MetadataReady] == "true", Transports: []string{nats.Kind}, Requests: i.Requests, Errors: i.Errors,
		})
	}
	return all, err
}

package daemon

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
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

// findQuiet is the quiet period of [discovery.Find]: once no further agent has
// answered for so long, all have.
const findQuiet = 300 * time.Millisecond

// announce makes the agent known to NATS tools, if it accepts requests by NATS.
func (d *Daemon) announce(context.Context) (err error) {
	conn := d.nats()
	if conn == nil || d.inbox == nil {
		return nil
	}
	var subjects []string
	// A broker with permissions does not let an agent subscribe to more, and keeps fleets apart.
	if !conn.Client().AuthRequired() {
		subjects = append(subjects, d.requestsSubject())
	}
	d.announcement, err = discovery.Announce(conn, natsauth.ServiceName(d.brokerName(d.Member().Address)), d.service, subjects...)
	return err
}

// requestsSubject is the subject of the agent's first NATS transport: a service has one.
func (d *Daemon) requestsSubject() string {
	for _, spec := range d.Member().Capabilities.Transports {
		if spec.Kind == capability.NATS {
			return spec.Requests
		}
	}
	return ""
}

// service describes the agent in the terms of NATS, as it is now: every capability
// is an endpoint, and all endpoints share the subject of requests.
func (d *Daemon) service() discovery.Service {
	member := d.Member()
	contract := member.Capabilities
	s := discovery.Service{
		Version: d.cfg.Version, Description: fmt.Sprintf("%s of the fleet %s, by agentd", member.Address, d.cfg.Fleet.Name),
		Metadata: map[string]string{
			MetadataAgent: string(member.Address), MetadataFleet: d.cfg.Fleet.Name, MetadataDigest: contract.Digest(),
			MetadataVersion: d.cfg.Version, MetadataReady: strconv.FormatBool(d.Ready() == nil),
		},
	}
	subject := d.requestsSubject()
	for _, c := range contract.Capabilities {
		counts := d.stats.calls.Served(c.Name)
		s.Endpoints = append(s.Endpoints, discovery.Endpoint{
			Name: c.Name, Subject: subject, Group: d.inbox.Group(),
			Metadata: map[string]string{"capability": c.Name, "digest": c.Digest, "description": c.Description},
			Requests: counts.Requests, Errors: counts.Errors, Busy: counts.Busy, LastError: counts.LastError,
		})
	}
	return s
}

// FindAgents asks the NATS system of a fleet which of the fleet's agents run there.
// Servers in opts take precedence over the first that the files name; with neither
// it finds nobody. The answers are the agents' own: nothing proves them.
func FindAgents(ctx context.Context, f *fleet.Fleet, opts nats.Options) ([]control.Status, error) {
	opts = ServersOf(f, opts)
	if len(opts.Servers) == 0 && opts.Context == "" {
		return nil, nil
	}
	opts.Name = "agentd/status"
	// Where the broker has permissions, agents answer below this prefix.
	opts.InboxPrefix = natsauth.InboxPrefix(natsauth.ObserverKey)
	conn, err := nats.Connect(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("nats: %w", err)
	}
	defer func() { _ = conn.Close() }() // nothing was written that could be lost
	found, err := discovery.Find(ctx, conn, "", findQuiet)
	var all []control.Status
	for _, i := range found {
		agent, perr := envelope.ParseAddress(i.Metadata[MetadataAgent])
		if perr != nil || i.Metadata[MetadataFleet] != f.Name {
			continue // a service of another fleet, or of another system
		}
		all = append(all, control.Status{
			Agent: agent, Fleet: f.Name, Instance: i.ID, Version: cmp.Or(i.Metadata[MetadataVersion], i.Version), Digest: i.Metadata[MetadataDigest],
			Started: i.Started, Ready: i.Metadata[MetadataReady] == "true", Transports: []string{nats.Kind}, Requests: i.Requests, Errors: i.Errors,
		})
	}
	return all, err
}

// ServersOf returns opts with the servers of a fleet's NATS system: the first that its
// files name, unless opts has some.
func ServersOf(f *fleet.Fleet, opts nats.Options) nats.Options {
	for _, m := range f.Members {
		if specs := natsSpecs(m); len(specs) > 0 {
			return opts.WithServers(specs[0].Servers)
		}
	}
	return opts
}

package daemon

import (
	"context"
	"fmt"
	"slices"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/transport/nats/discovery"
	"github.com/agentd/agentd/transport/nats/natsauth"
)

// A FleetConflictError means that an agent of another fleet takes requests on a subject
// of this agent: each would serve the other's calls.
type FleetConflictError struct {
	// Subject is the subject that both use.
	Subject string
	// Fleet is this agent's fleet, and Other the one of the agent that runs.
	Fleet, Other string
}

func (e *FleetConflictError) Error() string {
	return fmt.Sprintf("an agent of the fleet %q takes requests on %s already, and this one is of the fleet %q: "+
		"give each fleet subjects of its own, such as <fleet>.<agent>.requests, or accounts of its own (agentd fleet nats-config)", e.Other, e.Subject, e.Fleet)
}

// checkFleet refuses to take requests where an agent of another fleet does. It asks for
// services of the agent's own name; where the broker does not let it ask, the broker's
// permissions keep fleets apart. What agents say about themselves has no proof, so this
// protects against mistakes, not against attacks.
func (d *Daemon) checkFleet(ctx context.Context) error {
	conn := d.nats()
	if conn == nil || d.inbox == nil {
		return nil
	}
	found, err := discovery.Find(ctx, conn, natsauth.ServiceName(d.cfg.Fleet.BrokerName(d.Member().Address)), findQuiet)
	if err != nil {
		d.log.Debug("other fleets on the broker cannot be found", "error", err)
		return nil
	}
	for _, spec := range d.Member().Capabilities.Transports {
		for _, other := range found {
			name := other.Metadata[MetadataFleet]
			if spec.Kind == capability.NATS && name != "" && name != d.cfg.Fleet.Name && slices.Contains(other.Subjects, spec.Requests) {
				return &FleetConflictError{Subject: spec.Requests, Fleet: d.cfg.Fleet.Name, Other: name}
			}
		}
	}
	return nil
}

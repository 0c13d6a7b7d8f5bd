package daemon

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

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
	// Agent is the address of the agent that runs, as it announces itself. It may be "".
	Agent string
}

func (e *FleetConflictError) Error() string {
	return fmt.Sprintf("%s of the fleet %q takes requests on %s already, and this one is of the fleet %q: "+
		"give each fleet subjects of its own, such as <fleet>.<agent>.requests, or accounts of its own (agentd fleet nats-config)",
		cmp.Or(e.Agent, "an agent"), e.Other, e.Subject, e.Fleet)
}

// askFleets bounds how long an agent asks for those of other fleets, however long they
// go on answering.
const askFleets = 5 * time.Second

// checkFleet refuses to take requests where an agent of another fleet does. On a broker
// that knows its users it asks for services of the agent's own name alone, which is what
// the rules of `agentd fleet nats-config` let it ask; there permissions keep fleets apart.
// On an open one it asks the services on its own subjects, as an agent of any name may have
// been given one of them, and those of its own name: an agent of an older version answers to
// that alone. It never asks all services: each agent of a fleet would answer the
// start of each other one. What agents say about themselves has no proof, so this protects against
// mistakes, not against attacks.
func (d *Daemon) checkFleet(ctx context.Context) error {
	conn := d.nats()
	if conn == nil || d.inbox == nil {
		return nil
	}
	find := d.findNamesakes
	if !conn.Client().AuthRequired() {
		find = d.findOnSubjects
	}
	found, err := find(ctx)
	if err != nil {
		d.log.Debug("other fleets on the broker cannot be found", "error", err)
		return nil
	}
	d.judgeReplicas(found)
	for _, spec := range d.Member().Capabilities.Transports {
		for _, other := range found {
			name := other.Metadata[MetadataFleet]
			if spec.Kind == capability.NATS && name != "" && name != d.cfg.Fleet.Name && slices.Contains(other.Subjects, spec.Requests) {
				return &FleetConflictError{
					Subject: spec.Requests, Fleet: d.cfg.Fleet.Name, Other: name, Agent: truncateName(other.Metadata[MetadataAgent]),
				}
			}
		}
	}
	return nil
}

// findNamesakes returns the running services with the name of this agent: its replicas,
// itself, and agents of other fleets.
func (d *Daemon) findNamesakes(ctx context.Context) ([]discovery.Instance, error) {
	ctx, cancel := context.WithTimeout(ctx, askFleets)
	defer cancel()
	return discovery.Find(ctx, d.nats(), natsauth.ServiceName(d.brokerName(d.Member().Address)), findQuiet)
}

// findOnSubjects returns the running services on the subjects of this agent: those of any
// name that were announced with their subjects, and all of the agent's own name.
func (d *Daemon) findOnSubjects(ctx context.Context) (all []discovery.Instance, err error) {
	ctx, cancel := context.WithTimeout(ctx, askFleets)
	defer cancel()
	for _, spec := range d.Member().Capabilities.Transports {
		if spec.Kind != capability.NATS {
			continue
		}
		found, err := discovery.FindOn(ctx, d.nats(), spec.Requests, findQuiet, natsauth.ServiceName(d.brokerName(d.Member().Address)))
		if err != nil {
			return all, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// A fleetCheck asks a second time, in the background.
type fleetCheck struct {
	conflict chan error // gets the conflict, if there is one
	cancel   context.CancelFunc
	asking   sync.WaitGroup
}

// checkFleetAgain asks again once others can find this agent. Of two agents that start at
// the same moment neither finds the other before that; now the later one does. It does
// not hold up the start, which would take longer by the time that Find waits.
func (d *Daemon) checkFleetAgain(ctx context.Context) error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // which bounds the start alone
	d.fleetCheck.conflict, d.fleetCheck.cancel = make(chan error, 1), cancel
	d.fleetCheck.asking.Go(func() {
		if err := d.checkFleet(ctx); err != nil {
			d.fleetCheck.conflict <- err
		}
	})
	return nil
}

// close ends the check, if it has begun.
func (f *fleetCheck) close() {
	if f.cancel != nil {
		f.cancel()
		f.asking.Wait()
	}
}

// Conflict returns a channel that gets a [*FleetConflictError] if an agent of another
// fleet turns out to have started on this agent's subjects at the same moment. The agent
// should then be stopped: each serves the other's calls.
func (d *Daemon) Conflict() <-chan error { return d.fleetCheck.conflict }

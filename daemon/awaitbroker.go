package daemon

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"time"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats"
)

const (
	// firstConnect and lastConnect bound the time between two attempts to reach a broker that is
	// away when the agent starts. It doubles from one to the other.
	firstConnect = 250 * time.Millisecond
	lastConnect  = 5 * time.Second
	// startingShutdown bounds the end of the control API that answers meanwhile.
	startingShutdown = time.Second
)

// awaitBroker calls connect until it succeeds, fails for another reason than that no broker can be
// reached, or ctx ends. It calls it once where the configuration wants no wait.
//
// Hosts boot in any order: an agent that ends because its broker is not there yet is at the mercy
// of its supervisor, which waits longer each time and may give up. Meanwhile readiness, the log
// and the control API say what the agent waits for.
func (d *Daemon) awaitBroker(ctx context.Context, connect func(context.Context) error) error {
	err := connect(ctx)
	if !d.cfg.AwaitBroker || !errors.Is(err, transport.Disconnected) {
		return err
	}
	starting, listening := control.Listen(ctx, d.Socket(), d.operators().Only(control.NewStarting(d.startingStatus)), d.log)
	if listening != nil {
		return listening
	}
	for wait := firstConnect; errors.Is(err, transport.Disconnected); wait = min(2*wait, lastConnect) {
		d.conditions.Begin(brokerAway("no calls are made or taken yet", err))
		select {
		case <-time.After(wait/2 + rand.N(wait/2)): //nolint:gosec // not all agents of a fleet at once, which nobody needs to guess
			err = connect(ctx)
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	if err == nil {
		d.conditions.End(health.Broker, "")
	}
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startingShutdown)
	defer cancel()
	return errors.Join(err, starting.Shutdown(stopCtx))
}

// brokerAway is the condition of an agent that cannot reach its broker.
func brokerAway(effect string, err error) health.Condition {
	return health.Condition{
		Kind: health.Broker, Code: "away", Effect: effect, Cause: err.Error(),
		Remedy: "start the broker, name another one in AGENTD_NATS_URL, or open the way to it; agentd tries again at the latest every 5 s",
	}
}

// startingStatus is the status of an agent that waits for its broker.
func (d *Daemon) startingStatus() control.Status {
	m := d.Member()
	s := control.Status{
		Agent: m.Address, Fleet: d.cfg.Fleet.Name, Version: d.cfg.Version, PID: os.Getpid(), Started: d.started,
		Reason: d.Ready().Error(), Conditions: d.conditions.Active(),
		Transports: []string{nats.Kind},
	}
	if d.monitoring != nil {
		s.Monitoring = d.monitoring.URL()
	}
	return s
}

// brokerTrouble is that of brokers that were lost after the start. Calls meet it by the connection
// itself, and readiness names it from there.
func (d *Daemon) brokerTrouble() (all []health.Condition) {
	if !d.ready.Load() {
		return nil
	}
	if conn := d.nats(); conn != nil && conn.Err() != nil {
		all = append(all, brokerAway("calls fail, and no request arrives", conn.Err()))
	}
	if d.jetStream != nil && d.jetStream.Err() != nil {
		c := brokerAway("durable requests wait, and their answers", d.jetStream.Err())
		c.Subject = "jetstream"
		all = append(all, c)
	}
	return all
}

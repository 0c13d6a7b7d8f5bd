package daemon

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
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

// awaitBroker calls connect until it succeeds, fails for another reason than that there is no
// connection to a broker, or ctx ends. It calls it once where the configuration wants no wait. Other
// members of the fleet start meanwhile.
func (d *Daemon) awaitBroker(ctx context.Context, connect func(context.Context) error) error {
	d.turn.giveBack() // to members that do not wait for a network
	err := connect(ctx)
	if d.cfg.AwaitBroker && errors.Is(err, transport.Disconnected) {
		err = d.retryBroker(ctx, connect, err)
	}
	if err != nil {
		return err
	}
	return d.turn.take(ctx)
}

// retryBroker calls connect again and again.
//
// Hosts boot in any order: an agent that ends because its broker is not there yet is at the mercy
// of its supervisor, which waits longer each time and may give up. Certificates are mended as
// brokers are, without a restart of their clients: each attempt reads the files again. Meanwhile
// readiness, the log and the control API say what the agent waits for.
func (d *Daemon) retryBroker(ctx context.Context, connect func(context.Context) error, err error) error {
	waits := func() { d.conditions.Begin(brokerAway("no calls are made or taken yet", err)) }
	waits() // before anybody can ask why
	starting, listening := control.Listen(ctx, d.Socket(), d.operators().Only(control.NewStarting(d.startingStatus)), d.log)
	if listening != nil {
		return listening
	}
	for wait := firstConnect; awaited(err); wait = min(2*wait, lastConnect) {
		select {
		case <-time.After(wait/2 + rand.N(wait/2)): //nolint:gosec // not all agents of a fleet at once, which nobody needs to guess
			err = connect(ctx)
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		if awaited(err) {
			waits()
		}
	}
	if err == nil {
		d.conditions.End(health.Broker, "")
	}
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startingShutdown)
	defer cancel()
	return errors.Join(err, starting.Shutdown(stopCtx))
}

// awaited reports whether an error may pass while the agent waits. A file that was there when the
// wait began may be away for the moment in which somebody replaces it.
func awaited(err error) bool {
	_, wrong := errors.AsType[*nats.OptionError](err)
	return errors.Is(err, transport.Disconnected) || wrong && errors.Is(err, fs.ErrNotExist)
}

// ofCertificates reports whether TLS fails, or a file is away that it needs.
func ofCertificates(err error) bool {
	if _, ok := errors.AsType[*nats.TLSError](err); ok {
		return true
	}
	wrong, ok := errors.AsType[*nats.OptionError](err)
	return ok && slices.Contains([]string{"CAFile", "CertFile", "KeyFile"}, wrong.Option)
}

// brokerAway is the condition of an agent that has no connection to its broker: none can be
// reached, or TLS fails with the one that is there.
func brokerAway(effect string, err error) health.Condition {
	c := health.Condition{
		Kind: health.Broker, Code: "away", Effect: effect, Cause: err.Error(),
		Remedy: "start the broker, name another one in AGENTD_NATS_URL, or open the way to it; agentd tries again at the latest every 5 s",
	}
	if ofCertificates(err) {
		c.Code, c.Remedy = "tls", "the broker is there: mend its certificate, or the files of AGENTD_NATS_CA, AGENTD_NATS_CERT and AGENTD_NATS_KEY; agentd reads them again and tries at the latest every 5 s"
	}
	return c
}

// startingStatus is the status of an agent that waits for its broker.
func (d *Daemon) startingStatus() control.Status {
	m := d.Member()
	s := control.Status{
		Agent: m.Address, Fleet: d.cfg.Fleet.Name, Version: d.cfg.Version, PID: os.Getpid(), Started: d.started,
		Reason: d.Ready().Error(), Conditions: d.conditions.Active(),
		Transports: []string{nats.Kind},
	}
	s.Monitoring = d.monitoringURL()
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
	if c, is := d.denied(); is {
		all = append(all, c)
	}
	return all
}

// denied is the condition of an agent whose permissions at the broker have come to forbid
// what it listens to.
func (d *Daemon) denied() (c health.Condition, is bool) {
	conn := d.nats()
	if conn == nil {
		return c, false
	}
	topics := conn.Denied()
	if len(topics) == 0 {
		return c, false
	}
	return health.Condition{
		Kind: health.Broker, Code: "denied", Subject: "subscriptions", Effect: "nothing arrives from there",
		Cause:  "the NATS server's permissions forbid to subscribe to " + strings.Join(topics, ", "),
		Remedy: "mend the agent's permissions at the NATS server (agentd fleet nats-config); agentd tries again every few seconds",
	}, true
}

package daemon

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats"
	"github.com/agentd/agentd/transport/nats/durable"
)

// durableOptions are the settings of agent.yaml.
func (d *Daemon) durableOptions(conn *nats.Conn) durable.Options {
	opts := DurableOptions(d.cfg.Fleet, d.Member())
	opts.Conn, opts.Logger, opts.NameOf = conn, d.log, d.brokerName
	return opts
}

// brokerName is what names an agent on the broker. The rule is that of the files with
// which this agent was started, since its own streams have names by it; an agent that has
// joined the fleet since then was started with the files of the last reload.
func (d *Daemon) brokerName(a envelope.Address) string {
	if _, known := d.cfg.Fleet.Member(a.ID()); known {
		return d.cfg.Fleet.BrokerName(a)
	}
	return d.loaded.Load().BrokerName(a)
}

// DurableOptions are the settings that a member's agent.yaml has for its queues.
func DurableOptions(f *fleet.Fleet, m *fleet.Member) durable.Options {
	s := m.Agent.Durable
	return durable.Options{
		Agent: m.ID, Fleet: f.Name, NameOf: f.BrokerName, Replicas: s.Replicas, AckWait: s.AckWait, MaxDeliver: s.MaxDeliver,
		ResultTTL: s.ResultTTL, DeadTTL: s.DeadTTL, MaxBytes: s.MaxBytes,
	}
}

// queues are the queues that keep this agent's calls to durable capabilities, by
// transport. Opening them creates nothing on the broker.
func (d *Daemon) queues() (map[string]transport.CallQueue, error) {
	conn := d.jetStreamConn()
	if conn == nil {
		return nil, nil
	}
	calls, err := durable.NewCalls(d.durableOptions(conn))
	if err != nil {
		return nil, err
	}
	return map[string]transport.CallQueue{nats.Kind: calls}, nil
}

// openDurable opens the queue of requests, if one of the agent's capabilities is durable.
// Requests are taken from it once the agent listens.
func (d *Daemon) openDurable(ctx context.Context, subject string) (err error) {
	if !d.Member().Capabilities.KeepsRequests() {
		return nil
	}
	opts := d.durableOptions(d.jetStreamConn())
	opts.Trouble = d.judgeQueue
	d.mailbox, err = durable.OpenMailbox(ctx, subject, opts)
	d.mailboxSubject = subject
	return err
}

// judgeQueue shows whether requests can be taken from the queue. The agent is not ready
// meanwhile, as one that finds its queue so is not when it starts.
func (d *Daemon) judgeQueue(err error) {
	if err == nil {
		d.conditions.End(health.DurableQueue, "")
		return
	}
	c := health.Condition{
		Kind: health.DurableQueue, Code: "failed", Cause: err.Error(), Effect: "durable requests wait, or cannot be stored",
		Remedy: "check the JetStream of the NATS server and its log; agentd tries again every few seconds",
	}
	_, settings := errors.AsType[*durable.SettingError](err)
	switch {
	case settings:
		c.Code, c.Remedy = "settings", "" // the cause says it
	case errors.Is(err, durable.ErrNotProvisioned):
		c.Code, c.Remedy = "missing", "agentd fleet provision"
	case errors.Is(err, durable.ErrNoJetStream):
		c.Code, c.Remedy = "no-jetstream", "enable JetStream on the NATS server for this agent's account"
	}
	d.conditions.Begin(c)
}

// Await implements [control.Durable].
func (d *Daemon) Await(ctx context.Context, correlationID string) *rpc.Result {
	result, _ := d.client.Await(ctx, correlationID) // the error is in the result
	return result
}

// openMailbox returns the queue of requests to this agent. The control API answers
// before start has opened it, hence the check that the agent is ready.
func (d *Daemon) openMailbox() (*durable.Mailbox, error) {
	switch {
	case !d.ready.Load():
		return nil, errNotReady
	case d.mailbox == nil:
		return nil, fmt.Errorf("%s keeps no requests: none of its capabilities says `delivery: durable`, or it is not on NATS", d.Member().Address)
	}
	return d.mailbox, nil
}

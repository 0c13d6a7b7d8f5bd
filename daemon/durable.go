package daemon

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats"
	"github.com/agentd/agentd/transport/nats/durable"
)

// durableOptions are those of the agent's file.
func (d *Daemon) durableOptions(conn *nats.Conn) durable.Options {
	s := d.Member().Agent.Durable
	return durable.Options{
		Conn: conn, Agent: d.Member().ID, Replicas: s.Replicas, AckWait: s.AckWait, MaxDeliver: s.MaxDeliver,
		ResultTTL: s.ResultTTL, DeadTTL: s.DeadTTL, MaxBytes: s.MaxBytes, Logger: d.log,
	}
}

// queues are where calls of this agent are kept that must outlive it.
func (d *Daemon) queues() (map[string]transport.CallQueue, error) {
	conn, ok := d.transport(capability.NATS).(*nats.Conn)
	if !ok {
		return nil, nil
	}
	calls, err := durable.NewCalls(d.durableOptions(conn))
	if err != nil {
		return nil, err
	}
	return map[string]transport.CallQueue{nats.Kind: calls}, nil
}

// listenDurable takes the requests that the broker keeps for this agent.
func (d *Daemon) listenDurable(ctx context.Context, conn *nats.Conn, topic string) (err error) {
	if !d.Member().Capabilities.KeepsRequests() {
		return nil
	}
	if d.mailbox, err = durable.OpenMailbox(ctx, topic, d.durableOptions(conn)); err != nil {
		return err
	}
	d.mailTopic = topic
	return d.inbox.ListenDurable(conn, d.mailbox, topic)
}

// Await implements [control.Durable].
func (d *Daemon) Await(ctx context.Context, correlationID string) *rpc.Result {
	result, _ := d.client.Await(ctx, correlationID) // the error is in the result
	return result
}

// mail is where requests to this agent are kept. The control API answers before it
// is opened.
func (d *Daemon) mail() (*durable.Mailbox, error) {
	switch {
	case !d.ready.Load():
		return nil, errNotRunning
	case d.mailbox == nil:
		return nil, fmt.Errorf("%s keeps no requests: none of its capabilities says `delivery: durable`, or it is not on NATS", d.Member().Address)
	}
	return d.mailbox, nil
}

// Letters implements [control.Durable].
func (d *Daemon) Letters(ctx context.Context) ([]control.Letter, error) {
	mail, err := d.mail()
	if err != nil {
		return nil, err
	}
	const most = 1000
	all := []control.Letter{}
	for l, err := range mail.Letters(ctx) {
		if err != nil {
			return nil, err
		}
		if all = append(all, letterOf(&l)); len(all) == most {
			break
		}
	}
	return all, nil
}

// Letter implements [control.Durable].
func (d *Daemon) Letter(ctx context.Context, number uint64) (control.Letter, error) {
	mail, err := d.mail()
	if err != nil {
		return control.Letter{}, err
	}
	l, err := mail.Letter(ctx, number)
	shown := letterOf(&l)
	if shown.Body = json.RawMessage(l.Data); !json.Valid(l.Data) {
		shown.Body, _ = json.Marshal(string(l.Data)) // a string always marshals
	}
	return shown, err
}

// Redrive implements [control.Durable].
func (d *Daemon) Redrive(ctx context.Context, number uint64, by string) (control.Letter, error) {
	return d.changeLetter(ctx, "dead-letter-redriven", by, number, func() (durable.Letter, error) {
		return d.mailbox.Redrive(ctx, d.mailTopic, number)
	})
}

// Drop implements [control.Durable].
func (d *Daemon) Drop(ctx context.Context, number uint64, by string) (control.Letter, error) {
	return d.changeLetter(ctx, "dead-letter-dropped", by, number, func() (durable.Letter, error) {
		return d.mailbox.Drop(ctx, number)
	})
}

// letterBody is the body of the lifecycle record of a change.
type letterBody struct {
	Event         string `json:"event"`
	Number        uint64 `json:"number"`
	By            string `json:"by"`
	PeerID        string `json:"peerId,omitempty"`
	Capability    string `json:"capabilityName,omitempty"`
	CorrelationID string `json:"correlationId,omitempty"`
}

// changeLetter records a change and makes it, in this order: no letter is gone
// without a record.
func (d *Daemon) changeLetter(ctx context.Context, event, by string, number uint64, change func() (durable.Letter, error)) (control.Letter, error) {
	mail, err := d.mail()
	if err != nil {
		return control.Letter{}, err
	}
	l, err := mail.Letter(ctx, number)
	if err != nil {
		return control.Letter{}, err
	}
	shown := letterOf(&l)
	if err := d.audit.append(ctx, auditchain.KindLifecycle, "", letterBody{
		Event: event, Number: number, By: by, PeerID: string(shown.From), Capability: shown.Capability, CorrelationID: shown.CorrelationID,
	}); err != nil {
		return shown, err
	}
	_, err = change()
	return shown, err
}

func letterOf(l *durable.Letter) control.Letter {
	shown := control.Letter{Number: l.Number, Time: l.Time, Reason: l.Reason, Attempts: l.Attempts, Bytes: len(l.Data)}
	if l.Request != nil {
		shown.From, shown.Capability, shown.CorrelationID = l.Request.From, l.Request.Capability, l.Request.CorrelationID
		shown.Deadline = l.Request.Deadline
	}
	return shown
}

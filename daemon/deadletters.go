package daemon

import (
	"context"
	"encoding/json"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/transport/nats/durable"
)

// maxLetters bounds one list of dead letters.
const maxLetters = 1000

// Letters implements [control.Durable].
func (d *Daemon) Letters(ctx context.Context) ([]control.Letter, error) {
	mailbox, err := d.openMailbox()
	if err != nil {
		return nil, err
	}
	all := []control.Letter{} // not nil: the API answers with a list
	for l, err := range mailbox.Letters(ctx) {
		if err != nil {
			return nil, err
		}
		if all = append(all, letterStatus(&l)); len(all) == maxLetters {
			break
		}
	}
	return all, nil
}

// Letter implements [control.Durable].
func (d *Daemon) Letter(ctx context.Context, number uint64) (control.Letter, error) {
	mailbox, err := d.openMailbox()
	if err != nil {
		return control.Letter{}, err
	}
	l, err := mailbox.Letter(ctx, number)
	shown := letterStatus(&l)
	// A dead letter need not be a request: what is no JSON is shown as a string.
	if shown.Body = json.RawMessage(l.Data); !json.Valid(l.Data) {
		shown.Body, _ = json.Marshal(string(l.Data)) // a string always marshals
	}
	return shown, err
}

// Redrive implements [control.Durable].
func (d *Daemon) Redrive(ctx context.Context, number uint64, by string) (control.Letter, error) {
	return d.changeLetter(ctx, "dead-letter-redriven", by, number, func(m *durable.Mailbox) (durable.Letter, error) {
		return m.Redrive(ctx, d.mailboxSubject, number)
	})
}

// Drop implements [control.Durable].
func (d *Daemon) Drop(ctx context.Context, number uint64, by string) (control.Letter, error) {
	return d.changeLetter(ctx, "dead-letter-dropped", by, number, func(m *durable.Mailbox) (durable.Letter, error) {
		return m.Drop(ctx, number)
	})
}

// A letterBody is the body of the lifecycle record about a change.
type letterBody struct {
	Event         string `json:"event"`
	Number        uint64 `json:"number"`
	By            string `json:"by"`
	PeerID        string `json:"peerId,omitempty"`
	Capability    string `json:"capabilityName,omitempty"`
	CorrelationID string `json:"correlationId,omitempty"`
	// Actor is the process that asked for it; By has its user in words.
	Actor *auditchain.Actor `json:"actor"`
}

// changeLetter records a change and then makes it, in this order, so that no dead
// letter disappears without a record. A change that fails leaves a record of the
// attempt.
func (d *Daemon) changeLetter(
	ctx context.Context, event, by string, number uint64, change func(*durable.Mailbox) (durable.Letter, error),
) (control.Letter, error) {
	mailbox, err := d.openMailbox()
	if err != nil {
		return control.Letter{}, err
	}
	l, err := mailbox.Letter(ctx, number)
	if err != nil {
		return control.Letter{}, err
	}
	shown := letterStatus(&l)
	if err := d.audit.append(ctx, auditchain.KindLifecycle, shown.TenantID, letterBody{
		Event: event, Number: number, By: by, PeerID: string(shown.From), Capability: shown.Capability, CorrelationID: shown.CorrelationID, Actor: auditchain.ActorOf(ctx),
	}); err != nil {
		return shown, err
	}
	_, err = change(mailbox)
	return shown, err
}

// letterStatus is what a list shows of a dead letter: everything but its body.
func letterStatus(l *durable.Letter) control.Letter {
	shown := control.Letter{Number: l.Number, Time: l.Time, Reason: l.Reason, Attempts: l.Attempts, Bytes: len(l.Data)}
	if l.Request != nil {
		shown.From, shown.Capability, shown.CorrelationID = l.Request.From, l.Request.Capability, l.Request.CorrelationID
		shown.Deadline = l.Request.Deadline
		// A name that no call may have is one reason for dead letters, and belongs to no tenant.
		if envelope.CheckTenant(l.Request.TenantID) == nil {
			shown.TenantID = l.Request.TenantID
		}
	}
	return shown
}

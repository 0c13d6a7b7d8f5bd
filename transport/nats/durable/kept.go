package durable

import (
	"context"
	"fmt"

	"github.com/agentd/agentd/transport/nats/natsauth"
)

// A Kept is how much a mailbox keeps.
type Kept struct {
	// Waiting requests are not delivered, InFlight ones are and wait for their end; Redelivered
	// are those of the latter that were delivered before.
	Waiting, InFlight, Redelivered uint64
	// Dead is the number of dead letters.
	Dead uint64
}

// Kept asks JetStream. Requests of an agent that has not taken any yet all wait.
func (m *Mailbox) Kept(ctx context.Context) (s Kept, err error) {
	name := m.opts.name()
	consumer, err := m.js.Consumer(ctx, natsauth.RequestsStream(name), natsauth.ConsumerName)
	if err != nil {
		return s, fmt.Errorf("durable: %w", err)
	}
	info := consumer.CachedInfo()
	s.Waiting, s.InFlight, s.Redelivered = info.NumPending, uint64(max(info.NumAckPending, 0)), uint64(max(info.NumRedelivered, 0))
	dead, err := m.js.Stream(ctx, natsauth.DeadStream(name))
	if err != nil {
		return s, fmt.Errorf("durable: %w", err)
	}
	s.Dead = dead.CachedInfo().State.Msgs
	return s, nil
}

package durable

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats/natsauth"
)

// Headers of a request that was put back. The broker counts deliveries, and a
// put-back is a delivery but no attempt. So putting back replaces the request by a
// copy that says how many attempts are used up; the broker counts the deliveries of
// the copy from 1.
const (
	// headerUsed is the number of attempts that earlier copies have used up.
	headerUsed = "Agentd-Attempts-Used"
	// headerNotBefore is the Unix time in ms before which the copy is not to be
	// served. The broker cannot hold a message back when it stores it, only when it
	// has delivered it: so the first delivery of such a copy is always refused, with
	// the rest of the delay, and counts as no attempt.
	headerNotBefore = "Agentd-Not-Before"
)

// A delivery is one attempt at a request.
type delivery struct {
	mailbox  *Mailbox
	message  jetstream.Msg
	attempt  int    // from 1; beyond MaxDeliver when all of them ended without an outcome
	sequence uint64 // in the stream
}

var _ transport.Delivery = (*delivery)(nil)

// maxCount bounds counts that come from the broker.
const maxCount = 1 << 20

// newDelivery reads what the broker knows of a delivery. held is how much longer a
// copy must be held back; the delivery is then no attempt.
func newDelivery(m *Mailbox, message jetstream.Msg, now time.Time) (d *delivery, held time.Duration) {
	d = &delivery{mailbox: m, message: message}
	delivered := 1
	if meta, err := message.Metadata(); err == nil {
		delivered, d.sequence = int(min(meta.NumDelivered, maxCount)), meta.Sequence.Stream
	}
	used, _ := strconv.Atoi(message.Headers().Get(headerUsed))
	d.attempt = min(max(used, 0), maxCount) + delivered
	notBefore, err := strconv.ParseInt(message.Headers().Get(headerNotBefore), 10, 64)
	if err != nil {
		return d, 0
	}
	d.attempt--
	if delivered == 1 {
		// No delay of ours is longer than maxDelay, whatever the header says.
		return d, min(max(time.UnixMilli(notBefore).Sub(now), time.Millisecond), maxDelay)
	}
	return d, 0
}

func (d *delivery) Data() []byte { return d.message.Data() }
func (d *delivery) Attempt() int { return min(d.attempt, d.mailbox.opts.MaxDeliver) }
func (d *delivery) Last() bool   { return d.attempt >= d.mailbox.opts.MaxDeliver }
func (d *delivery) Spent() bool  { return d.attempt > d.mailbox.opts.MaxDeliver }

// Answered implements [transport.Delivery].
func (d *delivery) Answered(ctx context.Context, key transport.CallKey) (bool, error) {
	answered := false
	err := insist(ctx, func(ctx context.Context) error {
		_, err := lastFor(ctx, d.mailbox.opts.Conn, natsauth.ResultsStream(d.mailbox.opts.name()), d.mailbox.opts.resultSubject(key))
		answered = err == nil
		if errors.Is(err, transport.ErrNotStored) {
			return nil
		}
		return err
	})
	return answered, err
}

// Answer implements [transport.Delivery].
func (d *delivery) Answer(ctx context.Context, key transport.CallKey, answer []byte) error {
	first := jetstream.WithExpectLastSequencePerSubject(0)
	err := publish(ctx, d.mailbox.opts.Conn, d.mailbox.js, natsauth.ResultsStream(d.mailbox.opts.name()), d.mailbox.opts.resultSubject(key), answer, nil, first)
	if hasCode(err, jetstream.JSErrCodeStreamWrongLastSequence) {
		return nil // the answer that exists counts
	}
	return err
}

// Done implements [transport.Delivery].
func (d *delivery) Done(ctx context.Context) error {
	err := insist(ctx, d.message.DoubleAck)
	if errors.Is(err, jetstream.ErrMsgAlreadyAckd) { // by an earlier try
		return nil
	}
	return err
}

// Retry implements [transport.Delivery].
func (d *delivery) Retry() error {
	return d.message.NakWithDelay(d.mailbox.opts.delay(d.attempt))
}

// PutBack implements [transport.Delivery]. A full queue takes no copy: then the
// request stays as it is and the put-back costs an attempt, unless it is the last.
func (d *delivery) PutBack(ctx context.Context, after time.Duration) error {
	header := natsgo.Header{}
	header.Set(headerUsed, strconv.Itoa(d.attempt-1))
	if after > 0 {
		header.Set(headerNotBefore, strconv.FormatInt(time.Now().Add(after).UnixMilli(), 10))
	}
	// The id makes sure that one delivery leaves one copy, even if the broker does not
	// hear of its end and this process puts it back once more.
	id := jetstream.WithMsgID(fmt.Sprintf("again/%d", d.sequence))
	err := publish(ctx, d.mailbox.opts.Conn, d.mailbox.js, natsauth.RequestsStream(d.mailbox.opts.name()), d.message.Subject(), d.message.Data(), header, id)
	switch {
	case err == nil:
		return d.Done(ctx)
	case !errors.Is(err, transport.ErrQueueFull) || d.Last():
		return err
	}
	return d.message.NakWithDelay(max(after, time.Millisecond))
}

// DeadLetter implements [transport.Delivery].
func (d *delivery) DeadLetter(ctx context.Context, reason string) error {
	header := natsgo.Header{}
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "") + "…"
	}
	header.Set(headerReason, reason)
	header.Set(headerAttempts, strconv.Itoa(d.Attempt()))
	// One delivery leaves one letter, however often its end is not heard.
	id := jetstream.WithMsgID(fmt.Sprintf("%s/%d", natsauth.RequestsStream(d.mailbox.opts.name()), d.sequence))
	stream, subject := natsauth.DeadStream(d.mailbox.opts.name()), natsauth.DeadSubject(d.mailbox.opts.name())
	err := publish(ctx, d.mailbox.opts.Conn, d.mailbox.js, stream, subject, d.message.Data(), header, id)
	if errors.Is(err, natsgo.ErrMaxPayload) {
		// A foreign client left no room for the reason: the body is worth more.
		err = publish(ctx, d.mailbox.opts.Conn, d.mailbox.js, stream, subject, d.message.Data(), nil)
	}
	if err != nil {
		return err
	}
	return d.Done(ctx)
}

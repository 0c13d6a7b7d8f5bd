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
	"github.com/nats-io/nuid"

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
	// headerMark is the number of the message whose mark says that the last attempt has
	// begun, see Begin. It is on copies of which nobody has looked for that.
	headerMark = "Agentd-Mark"
)

// maxReason bounds the reason of a dead letter, in bytes.
const maxReason = 1 << 10

// A delivery is one attempt at a request.
type delivery struct {
	mailbox  *Mailbox
	message  message
	attempt  int    // from 1; beyond MaxDeliver when as many deliveries ended without an outcome
	sequence uint64 // in the stream
	stored   time.Time
	mark     uint64 // sequence of the message whose mark counts for this one
}

var _ transport.Delivery = (*delivery)(nil)

// maxCount bounds counts that come from the broker.
const maxCount = 1 << 20

// newDelivery reads what the broker knows of a delivery. held is how much longer a
// copy must be held back; the delivery is then no attempt.
func newDelivery(m *Mailbox, delivered *natsgo.Msg, now time.Time) (d *delivery, held time.Duration) {
	d = &delivery{mailbox: m, message: message{Msg: delivered, conn: m.opts.Conn}}
	deliveries := 1
	if meta, err := delivered.Metadata(); err == nil {
		deliveries, d.sequence, d.stored = int(min(meta.NumDelivered, maxCount)), meta.Sequence.Stream, meta.Timestamp
	}
	used, _ := strconv.Atoi(delivered.Header.Get(headerUsed))
	d.attempt = min(max(used, 0), maxCount) + deliveries
	d.mark = d.sequence
	if of, err := strconv.ParseUint(delivered.Header.Get(headerMark), 10, 64); err == nil {
		d.mark = of
	}
	notBefore, err := strconv.ParseInt(delivered.Header.Get(headerNotBefore), 10, 64)
	if err != nil {
		return d, 0
	}
	d.attempt--
	if deliveries == 1 {
		// No delay of ours is longer than maxDelay, whatever the header says.
		return d, min(max(time.UnixMilli(notBefore).Sub(now), time.Millisecond), maxDelay)
	}
	return d, 0
}

func (d *delivery) Data() []byte { return d.message.Data }
func (d *delivery) Attempt() int { return min(d.attempt, d.mailbox.opts.MaxDeliver) }
func (d *delivery) Last() bool   { return d.attempt >= d.mailbox.opts.MaxDeliver }

// The broker counts a delivery that nobody saw as well: to a replica that was paused, cut
// off, or about to end. So a request is not given up by that count alone. The last attempt
// leaves a mark in the stream of answers when it begins, and the request is given up only
// if that mark is there. The mark is that of one message, since a put-back leaves another.

// Begin implements [transport.Delivery].
func (d *delivery) Begin(ctx context.Context, key transport.CallKey) (first bool, err error) {
	if !d.Last() {
		return true, nil
	}
	subject, mark := d.markSubject(key), nuid.Next()
	err = d.mailbox.publish(ctx, natsauth.ResultsStream(d.mailbox.opts.name()), subject, []byte(mark), nil, jetstream.WithExpectLastSequencePerSubject(0))
	if !hasCode(err, jetstream.JSErrCodeStreamWrongLastSequence) {
		return err == nil, err
	}
	// The mark that is there may be ours, if its acknowledgement was lost.
	err = insist(ctx, func(ctx context.Context) error {
		found, err := lastFor(ctx, d.mailbox.opts.Conn, natsauth.ResultsStream(d.mailbox.opts.name()), subject)
		first = string(found) == mark
		return err
	})
	return first, err
}

// Spent implements [transport.Delivery].
func (d *delivery) Spent(ctx context.Context, key transport.CallKey) (bool, error) {
	if d.attempt <= d.mailbox.opts.MaxDeliver {
		return false, nil
	}
	spent, err := d.mailbox.isStored(ctx, d.markSubject(key))
	if err == nil && !spent {
		d.attempt = d.mailbox.opts.MaxDeliver
	}
	return spent, err
}

func (d *delivery) markSubject(key transport.CallKey) string {
	return fmt.Sprintf("%s.begun.%d", d.mailbox.opts.resultSubject(key), d.mark)
}

// Answered implements [transport.Delivery].
func (d *delivery) Answered(ctx context.Context, key transport.CallKey) (bool, error) {
	return d.mailbox.isStored(ctx, d.mailbox.opts.resultSubject(key))
}

// Answer implements [transport.Delivery].
func (d *delivery) Answer(ctx context.Context, key transport.CallKey, answer []byte) error {
	first := jetstream.WithExpectLastSequencePerSubject(0)
	err := d.mailbox.publish(ctx, natsauth.ResultsStream(d.mailbox.opts.name()), d.mailbox.opts.resultSubject(key), answer, nil, first)
	if hasCode(err, jetstream.JSErrCodeStreamWrongLastSequence) {
		return nil // the answer that exists counts
	}
	return err
}

// Done implements [transport.Delivery].
func (d *delivery) Done(ctx context.Context) error { return insist(ctx, d.message.done) }

// Retry implements [transport.Delivery].
func (d *delivery) Retry() error { return d.message.refuse(d.mailbox.opts.delay(d.attempt)) }

// PutBack implements [transport.Delivery]. A full queue takes no copy: then the
// request stays as it is and the put-back costs an attempt, unless it is the last.
func (d *delivery) PutBack(ctx context.Context, after time.Duration) error {
	header := natsgo.Header{}
	header.Set(headerUsed, strconv.Itoa(d.attempt-1))
	if d.attempt > d.mailbox.opts.MaxDeliver {
		header.Set(headerMark, strconv.FormatUint(d.mark, 10))
	}
	if after > 0 {
		header.Set(headerNotBefore, strconv.FormatInt(time.Now().Add(after).UnixMilli(), 10))
	}
	// The id makes sure that one delivery leaves one copy, even if the broker does not
	// hear of its end and this process puts it back once more.
	id := jetstream.WithMsgID(fmt.Sprintf("again/%d", d.sequence))
	err := d.mailbox.publish(ctx, natsauth.RequestsStream(d.mailbox.opts.name()), d.message.Subject, d.message.Data, header, id)
	switch {
	case err == nil:
		return d.Done(ctx)
	case !errors.Is(err, transport.ErrQueueFull) || d.Last():
		return err
	}
	return d.message.refuse(max(after, time.Millisecond))
}

// DeadLetter implements [transport.Delivery].
func (d *delivery) DeadLetter(ctx context.Context, reason string) error {
	header := natsgo.Header{}
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "") + "…"
	}
	header.Set(headerReason, reason)
	header.Set(headerAttempts, strconv.Itoa(d.Attempt()))
	// One request leaves one letter, however often its end is not heard. A stream of requests
	// that is made again counts from 1 once more, and the letters know the numbers of the last.
	id := jetstream.WithMsgID(fmt.Sprintf("%s/%d/%d", natsauth.RequestsStream(d.mailbox.opts.name()), d.stored.UnixNano(), d.sequence))
	stream, subject := natsauth.DeadStream(d.mailbox.opts.name()), natsauth.DeadSubject(d.mailbox.opts.name())
	err := d.mailbox.publish(ctx, stream, subject, d.message.Data, header, id)
	if errors.Is(err, natsgo.ErrMaxPayload) {
		// A foreign client left no room for the reason: the body is worth more.
		err = d.mailbox.publish(ctx, stream, subject, d.message.Data, nil)
	}
	if err != nil {
		return err
	}
	return d.Done(ctx)
}

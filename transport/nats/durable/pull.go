package durable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/agentd/agentd/transport/nats"
	"github.com/agentd/agentd/transport/nats/natsauth"
)

const (
	pullTime  = 10 * time.Second
	heartbeat = time.Second
	// silence is how long a pull request may have no sign of life. It dies with the
	// server that leads the consumer, and nobody says so.
	silence = 2 * heartbeat
	// maxArrived is more than one pull request can bring: a heartbeat a second, and its end.
	// A process that was stopped for a while finds all of them at once.
	maxArrived = 8 * int(pullTime/heartbeat)
)

// Errors of [puller.next].
var (
	// errNoConsumer: nobody takes pull requests, or not any more.
	errNoConsumer = errors.New("the consumer is not there")
	// errSilent: the pull request that was made is lost.
	errSilent = errors.New("the server is silent")
)

// A puller asks the broker for one request after another (ADR-37). It is not safe for
// concurrent use.
//
// The iterator of nats.go is not used: its queue has room for as many messages as are
// asked for, and heartbeats take that room, too. With one request at a time it would drop
// the request that arrives behind a heartbeat which nobody has taken out yet. The broker
// counts such a delivery, and repeats it only after AckWait.
type puller struct {
	conn    *nats.Conn
	topic   string // of the consumer, in the JetStream API
	inbox   string
	sub     *natsgo.Subscription
	arrived chan *natsgo.Msg
	ended   chan struct{} // closed when nothing more arrives
	again   <-chan struct{}

	alive    func() // called where a pull request has succeeded, or waits for a request
	requests int    // pull requests so far
	asked    bool   // the last of them has not ended yet
}

// newPuller makes a puller. next calls alive.
func newPuller(conn *nats.Conn, stream string, alive func()) (*puller, error) {
	p := &puller{
		conn: conn, alive: alive, topic: conn.JetStreamAPI() + ".CONSUMER.MSG.NEXT." + stream + "." + natsauth.ConsumerName, inbox: conn.Client().NewInbox(),
		arrived: make(chan *natsgo.Msg, maxArrived), ended: make(chan struct{}), again: conn.NextReconnect(),
	}
	var err error
	if p.sub, err = conn.Client().ChanSubscribe(p.inbox+".*", p.arrived); err != nil {
		return nil, err
	}
	var end sync.Once // both the drain and the unsubscription may call the handler
	p.sub.SetClosedHandler(func(string) { end.Do(func() { close(p.ended) }) })
	return p, nil
}

// next returns the next request. It waits until there is one, ctx ends, or the pull
// request has failed; then it may be called again.
func (p *puller) next(ctx context.Context) (*natsgo.Msg, error) {
	silent := time.NewTimer(silence)
	defer silent.Stop()
	for {
		if !p.asked && len(p.arrived) == 0 {
			if err := p.ask(); err != nil {
				return nil, err
			}
			silent.Reset(silence)
		}
		select {
		case m := <-p.arrived:
			silent.Reset(silence)
			request, err := p.judge(m)
			if request || err != nil {
				return m, err
			}
		case <-p.again: // what the server knew of the last connection is gone
			p.again, p.asked = p.conn.NextReconnect(), false
		case <-silent.C:
			p.asked = false
			return nil, errSilent
		case <-p.ended:
			return nil, natsgo.ErrConnectionClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// ask makes a pull request.
func (p *puller) ask() error {
	data, err := json.Marshal(struct {
		Batch     int           `json:"batch"`
		Expires   time.Duration `json:"expires"`
		Heartbeat time.Duration `json:"idle_heartbeat"`
	}{1, pullTime, heartbeat})
	if err == nil {
		p.requests++
		err = p.conn.Client().PublishRequest(p.topic, p.inbox+"."+strconv.Itoa(p.requests), data)
	}
	p.asked = err == nil
	return err
}

// judge reports whether m is a request. Otherwise it is a status of a pull request, which
// may be that it has failed.
func (p *puller) judge(m *natsgo.Msg) (request bool, err error) {
	// Whoever sends a request may write what it likes into its header, but each is delivered
	// with a subject to acknowledge it.
	if m.Reply != "" {
		p.asked = false
		p.alive()
		return true, nil
	}
	status := m.Header.Get("Status")
	if number, ok := strings.CutPrefix(m.Subject, p.inbox+"."); ok && number != strconv.Itoa(p.requests) {
		return false, nil // of one that was given up
	}
	switch status {
	case "100": // a heartbeat
		p.alive()
		return false, nil
	case "404", "408": // its time has passed
		p.asked = false
		p.alive()
		return false, nil
	}
	p.asked = false
	why := m.Header.Get("Description")
	if status == "503" || strings.EqualFold(why, "Consumer Deleted") {
		return false, errNoConsumer
	}
	return false, fmt.Errorf("pull request: %s %s", status, why)
}

// drain has the server send no more, and returns what it had sent: when the server has
// complied, or ctx ends.
func (p *puller) drain(ctx context.Context) (requests []*natsgo.Msg) {
	if p.sub.Drain() != nil { // there is no connection, and so nothing more will arrive
		_ = p.sub.Unsubscribe()
	}
	for {
		select {
		case m := <-p.arrived:
			if request, _ := p.judge(m); request {
				requests = append(requests, m)
			}
			continue
		default:
		}
		select {
		case <-p.ended:
			if len(p.arrived) == 0 {
				return requests
			}
		case m := <-p.arrived:
			if request, _ := p.judge(m); request {
				requests = append(requests, m)
			}
		case <-ctx.Done():
			_ = p.sub.Unsubscribe()
			return requests
		}
	}
}

// A message is a request as the broker delivers it.
type message struct {
	*natsgo.Msg
	conn *nats.Conn
}

// done removes the request from the queue. It returns once the broker says so.
func (m message) done(ctx context.Context) error {
	_, err := m.conn.Client().RequestWithContext(ctx, m.Reply, []byte("+ACK"))
	return err
}

// refuse has the request delivered again, after a delay.
func (m message) refuse(after time.Duration) error {
	return m.conn.Client().Publish(m.Reply, fmt.Appendf(nil, `-NAK {"delay": %d}`, max(after, 1).Nanoseconds()))
}

// working says that the request is being worked on.
func (m message) working() error { return m.conn.Client().Publish(m.Reply, []byte("+WPI")) }

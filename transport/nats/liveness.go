package nats

import (
	"context"
	"errors"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/agentd/agentd/transport"
)

// probeToken is the reply token of every inbox that probes use. Correlation ids, which
// are the tokens of calls, are longer, so no reply has it.
const probeToken = "alive"

// probeTimeout is how long the server has to report that nobody listens. An inbox that
// is there does not answer: to wait for the whole timeout is the good case.
const probeTimeout = time.Second

// Listening reports whether somebody still listens at the inbox of a reply topic; the
// process that opened it may have died. It publishes a probe to the inbox: if nobody
// subscribes to it, the server answers at once with "no responders" (ADR-4). Where
// that cannot be known it returns true: another kind of topic, a server that does not
// let this client probe, a lost connection.
func (c *Conn) Listening(ctx context.Context, topic string) bool {
	last := strings.LastIndexByte(topic, '.')
	if !strings.HasPrefix(topic, "_INBOX.") || last < len("_INBOX.") || c.probeDenied.Load() || !c.connected.Load() {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	_, err := c.nc.RequestWithContext(ctx, topic[:last+1]+probeToken, nil)
	return !errors.Is(err, natsgo.ErrNoResponders)
}

// isProbe reports whether a message on topic is a probe of [Conn.Listening].
func isProbe(topic string) bool { return strings.HasSuffix(topic, "."+probeToken) }

// withoutProbes keeps probes from the handler of an inbox. They need no reply: that
// the server could deliver them is the answer.
func withoutProbes(h transport.Handler) transport.Handler {
	return func(m transport.Message) {
		if m.Err != nil || !isProbe(m.Topic) {
			h(m)
		}
	}
}

package nats

import (
	"context"
	"errors"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/agentd/agentd/transport"
)

// aliveToken is the token of every inbox under which nothing arrives but the
// question whether somebody listens there. No correlation id is as short.
const aliveToken = "alive"

// noWord is how long the server has to say that nobody listens. That somebody does,
// nobody says.
const noWord = time.Second

// Listening reports whether somebody listens at an inbox, given a topic of it: the
// process that opened it may have died. Where that cannot be known (another kind of
// topic, a server that does not let this client ask, a lost connection) it is true.
func (c *Conn) Listening(ctx context.Context, topic string) bool {
	last := strings.LastIndexByte(topic, '.')
	if !strings.HasPrefix(topic, "_INBOX.") || last < len("_INBOX.") || c.mayNotAsk.Load() || !c.up.Load() {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, noWord)
	defer cancel()
	_, err := c.nc.RequestWithContext(ctx, topic[:last+1]+aliveToken, nil)
	return !errors.Is(err, natsgo.ErrNoResponders)
}

// asksAlive reports a question of [Conn.Listening] by its topic.
func asksAlive(topic string) bool { return strings.HasSuffix(topic, "."+aliveToken) }

// withoutQuestions keeps questions whether somebody listens from the handler of an
// inbox: that they arrive is the answer.
func withoutQuestions(h transport.Handler) transport.Handler {
	return func(m transport.Message) {
		if m.Err != nil || !asksAlive(m.Topic) {
			h(m)
		}
	}
}

package callee

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/wire"
	"github.com/agentd/agentd/transport"
)

// A Service answers other agents' agentd: it is no capability, but something that
// agentd itself does for the fleet, and for no tenant of it. It is called by many
// goroutines at once. request and answer are JSON. The inbox logs an error, and its
// caller learns only that there was one. The service decides who may call it: from is
// proven if the inbox has an [rpc.Identity].
type Service func(ctx context.Context, from envelope.Address, request json.RawMessage) (answer json.RawMessage, err error)

// serviceTimeout bounds one answer.
const serviceTimeout = 30 * time.Second

// receiveService takes one request to a service. It counts among those that run.
func (in *Inbox) receiveService(t transport.Transport, m transport.Message, name string, service Service) {
	c := in.decodeFor(wire.ServiceName(name), t, m)
	if c == nil || !c.verify() || !c.findReplyTopic(m) {
		return
	}
	c.deadline = c.start.Add(serviceTimeout)
	c.ctx.root, c.ctx.deadline = in.root, c.deadline
	for _, check := range [...]func(*call) *rpc.Error{(*call).checkNames, (*call).checkVersion, (*call).checkAddressee, (*call).register} {
		if err := check(c); err != nil {
			_ = c.reply(wire.Failure(c.refuse(err))) // reply has logged what went wrong
			return
		}
	}
	go func() { // counted by register; Shutdown waits for it
		defer in.requests.serving.Done()
		defer c.ctx.end(nil)
		defer in.unregister(c)
		_ = c.reply(c.serviceAnswer(service)) // as above
	}()
}

func (c *call) serviceAnswer(service Service) wire.Reply {
	answer, err := service(&c.ctx, c.request.From, c.request.Payload)
	if err != nil {
		c.log().Error("service failed", "error", err)
		return wire.Failure(c.refuse(rpc.NewError(rpc.CodeHandlerError, nil, "%s could not answer", c.inbox.cfg.Self)))
	}
	return wire.Answer(answer)
}

// receiveCapabilities answers a request for what the agent serves now, which is the same
// for all tenants. That has no effect, so a replayed request does no harm.
func (in *Inbox) receiveCapabilities(t transport.Transport, m transport.Message) {
	c := in.decodeFor(wire.CapabilitiesName, t, m)
	if c == nil || !c.verifySender() || !c.findReplyTopic(m) {
		return
	}
	for _, check := range [...]func(*call) *rpc.Error{(*call).checkNames, (*call).checkVersion, (*call).checkAddressee} {
		if err := check(c); err != nil {
			_ = c.reply(wire.Failure(c.refuse(err))) // reply has logged what went wrong
			return
		}
	}
	_ = c.reply(wire.Answer(in.served.Load().published))
}

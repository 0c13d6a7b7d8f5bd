package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/transport"
)

// A Service answers what other agents' agentd asks this one's: not a capability,
// but what agentd itself does for the fleet. It is called by many goroutines at
// once. question and answer are JSON; an error is the inbox's to log, and the
// one who asks learns only that there was one. The service says who may ask:
// from is proven where the inbox has an [Identity].
type Service func(ctx context.Context, from envelope.Address, question json.RawMessage) (answer json.RawMessage, err error)

// serviceTimeout bounds one answer.
const serviceTimeout = 30 * time.Second

// serviceName is what a request for a service has for a capability. It is none:
// their names hold no dots.
func serviceName(name string) string { return "agentd." + name }

// serviceTopic is where an agent takes the questions to one of its services.
func serviceTopic(requests, name string) string { return requests + "." + name }

// subscribeServices opens a topic for each service. After an error none is open.
func (in *Inbox) subscribeServices(t transport.Transport, topic string) (all []transport.Subscription, err error) {
	for name, service := range in.cfg.Services {
		s, err := t.Subscribe(serviceTopic(topic, name), queueGroup(in.cfg.Self), func(m transport.Message) { in.ask(t, m, name, service) })
		if err != nil {
			errs := []error{fmt.Errorf("rpc: inbox: %w", err)}
			for _, s := range all {
				errs = append(errs, s.Close())
			}
			return nil, errors.Join(errs...)
		}
		all = append(all, s)
	}
	return all, nil
}

// ask takes one question. It counts among the requests that run.
func (in *Inbox) ask(t transport.Transport, m transport.Message, name string, service Service) {
	e, err := envelope.Decode(m.Data)
	if err != nil || e.Kind != envelope.Request || e.Capability != serviceName(name) {
		in.cfg.Logger.Warn("message ignored", "topic", m.Topic, "reason", "not a question for "+name)
		return
	}
	call := &inboundCall{inbox: in, transport: t, request: e, start: time.Now()}
	if !call.prove() {
		return
	}
	if why := call.findReplyTopic(m.Reply); why != "" {
		in.cfg.Logger.Warn("request ignored", "from", e.From, "correlationId", e.CorrelationID, "reason", why)
		return
	}
	call.ctx.root, call.ctx.deadline = in.root, call.start.Add(serviceTimeout)
	refusal := call.addressed()
	if refusal == nil {
		refusal = in.start(call)
	}
	if refusal != nil {
		call.ctx.end(nil)
		_ = call.reply(errorReply(call.refuse(refusal))) // reply has logged what went wrong
		return
	}
	go func() {
		defer in.done.Done()
		defer call.ctx.end(nil)
		defer in.forget(call)
		_ = call.reply(call.serviceAnswer(service)) // as above
	}()
}

func (c *inboundCall) serviceAnswer(service Service) reply {
	answer, err := service(&c.ctx, c.request.From, c.request.Payload)
	if err != nil {
		c.logFailure("", err)
		return errorReply(c.refuse(newError(CodeHandlerError, nil, "%s could not answer", c.inbox.cfg.Self)))
	}
	return okReply(answer)
}

// Ask asks a service of a peer's agentd, within the timeout of ctx or 30 s. The
// path of a call has no part in it: no permission, no limit, no access record.
// The error is nil or an [*Error].
func (c *Client) Ask(ctx context.Context, to envelope.Address, service string, question json.RawMessage) (json.RawMessage, error) {
	peer, ok := c.cfg.Peers.Peer(to)
	if !ok {
		return nil, newError(CodeNoPeer, nil, "no peer registered for %q", to)
	}
	peer.Topic = serviceTopic(peer.Topic, service)
	answer, err := c.askPeer(ctx, peer, serviceName(service), question)
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// askPeer sends one question to the topic of peer, and waits for the answer.
func (c *Client) askPeer(ctx context.Context, peer Peer, name string, question json.RawMessage) (json.RawMessage, *Error) {
	call := newOutboundCall(c, Request{To: peer.Address, Capability: name, Payload: question}, c.newIDs())
	call.peer = peer
	var ok bool
	if call.line, ok = c.lines[peer.Transport]; !ok {
		return nil, newError(CodeNoTransport, nil, "%s is reached by %s, which this process does not speak", peer.Address, peer.Transport)
	}
	call.setDeadline(ctx)
	reply, err := call.exchange(ctx)
	if err != nil {
		return nil, err
	}
	return parseReply(reply.Payload)
}

package main

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	rpccallee "github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats"
)

const (
	callerAddr = envelope.Address("agent://caller")
	calleeAddr = envelope.Address("agent://callee")
)

func document() (*capability.Document, error) {
	src := map[string]any{
		"version": 1, "agent": calleeAddr,
		"transports": []any{map[string]any{
			"kind": "nats", "servers": []string{"nats://127.0.0.1:4222"}, "subjects": map[string]string{"requests": subject},
		}},
		"capabilities": []any{map[string]any{
			"name": "review", "inputSchema": json.RawMessage(reviewSchema), "outputSchema": json.RawMessage(reviewSchema),
		}},
	}
	data, err := json.Marshal(src)
	if err != nil {
		return nil, err
	}
	return capability.Parse("capabilities.json", data, capability.LoadOptions{ValidateSchemas: true})
}

// noAudit refuses: no payload of the benchmark violates anything.
type noAudit struct{}

func (noAudit) RecordSchemaViolation(context.Context, rpc.SchemaViolation) error {
	return errors.New("a schema violation in a benchmark")
}

// echoSkill is the skill of every agentd system.
func echoSkill() map[string]rpc.Handler {
	return map[string]rpc.Handler{"review": rpc.HandlerFunc(echoPayload)}
}

func echoPayload(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
	return inv.Payload, nil
}

// inlineSkill is echoSkill with the promise that it is quick.
func inlineSkill() map[string]rpc.Handler {
	return map[string]rpc.Handler{"review": rpc.Inline(rpc.HandlerFunc(echoPayload))}
}

// serveInbox serves on a transport until stopped.
func serveInbox(doc *capability.Document, on transport.Transport, skills map[string]rpc.Handler) (stop func() error, err error) {
	inbox, err := rpccallee.New(rpccallee.Config{
		Self: calleeAddr, Contract: doc, Records: rpc.Records{Auditor: noAudit{}}, Limits: rpccallee.Limits{MaxInFlight: 1024},
		Handlers: skills,
	})
	if err != nil {
		return nil, err
	}
	if err := inbox.Listen(on, subject); err != nil {
		return nil, errors.Join(err, inbox.Shutdown(context.Background()))
	}
	return func() error { return inbox.Shutdown(context.Background()) }, nil
}

func serveRPC(target string) (*callee, error) { return serveSkills(target, echoSkill()) }

func serveInline(target string) (*callee, error) { return serveSkills(target, inlineSkill()) }

func serveSkills(target string, skills map[string]rpc.Handler) (*callee, error) {
	doc, err := document()
	if err != nil {
		return nil, err
	}
	conn, err := nats.Connect(context.Background(), nats.Options{Servers: []string{target}})
	if err != nil {
		return nil, err
	}
	stop, err := serveInbox(doc, conn, skills)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &callee{address: target, stop: func() error { return errors.Join(stop(), conn.Close()) }}, nil
}

// An rpcClient calls by the package rpc/caller.
type rpcClient struct {
	client *caller.Client
	closes func() error
}

// dialOn calls over a transport, which close closes.
func dialOn(on transport.Transport, kind string, closes func() error) (client, error) {
	doc, err := document()
	if err != nil {
		return nil, errors.Join(err, closes())
	}
	c, err := caller.New(caller.Config{
		Self: callerAddr, Records: rpc.Records{Auditor: noAudit{}}, Transports: []transport.Transport{on},
		Peers: rpc.Peers{calleeAddr: {Address: calleeAddr, Transport: kind, Topic: subject, Contract: doc}},
	})
	if err != nil {
		return nil, errors.Join(err, closes())
	}
	return rpcClient{c, func() error { return errors.Join(c.Close(), closes()) }}, nil
}

func dialRPC(address string) (client, error) {
	conn, err := nats.Connect(context.Background(), nats.Options{Servers: []string{address}})
	if err != nil {
		return nil, err
	}
	return dialOn(conn, nats.Kind, conn.Close)
}

// review calls the capability.
func review(c *caller.Client, payload []byte) error {
	res, err := c.RequestAgent(context.Background(), rpc.Request{To: calleeAddr, Capability: "review", Payload: payload, Timeout: callLimit})
	if err != nil {
		return err
	}
	if len(res.Response) != len(payload) {
		return errWrongReply
	}
	return nil
}

func (c rpcClient) call(payload []byte) error { return review(c.client, payload) }

func (c rpcClient) close() error { return c.closes() }

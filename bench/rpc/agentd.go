package main

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats"
)

const (
	callerAddr = envelope.Address("agent://caller")
	calleeAddr = envelope.Address("agent://callee")
)

// reviewSchema types both sides of the call: four validations a call.
const reviewSchema = `{
  "type": "object",
  "properties": {
    "prUrl": {"type": "string", "minLength": 1, "maxLength": 2048},
    "severity": {"enum": ["low", "med", "high"]},
    "findings": {"type": "array", "maxItems": 1000, "items": {
      "type": "object",
      "properties": {
        "file": {"type": "string", "minLength": 1},
        "line": {"type": "integer", "minimum": 1},
        "rule": {"type": "string", "pattern": "^[a-z][a-z0-9-]*$"},
        "message": {"type": "string"}
      },
      "required": ["file", "line", "rule", "message"],
      "additionalProperties": false}}
  },
  "required": ["prUrl", "severity", "findings"],
  "additionalProperties": false}`

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

func serveAgentd(target string) (string, func() error, error) {
	doc, err := document()
	if err != nil {
		return "", nil, err
	}
	conn, err := nats.Connect(context.Background(), nats.Options{Servers: []string{target}})
	if err != nil {
		return "", nil, err
	}
	inbox, err := callee.New(callee.Config{
		Self: calleeAddr, Contract: doc, Records: rpc.Records{Auditor: noAudit{}}, Limits: callee.Limits{MaxInFlight: 1024},
		Handlers: map[string]rpc.Handler{"review": rpc.HandlerFunc(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
			return inv.Payload, nil
		})},
	})
	if err != nil {
		return "", nil, errors.Join(err, conn.Close())
	}
	stop := func() error { return errors.Join(inbox.Shutdown(context.Background()), conn.Close()) }
	return target, stop, inbox.Listen(conn, subject)
}

type agentdClient struct {
	conn   *nats.Conn
	client *caller.Client
}

func dialAgentd(address string) (client, error) {
	doc, err := document()
	if err != nil {
		return nil, err
	}
	conn, err := nats.Connect(context.Background(), nats.Options{Servers: []string{address}})
	if err != nil {
		return nil, err
	}
	c, err := caller.New(caller.Config{
		Self: callerAddr, Records: rpc.Records{Auditor: noAudit{}}, Transports: []transport.Transport{conn},
		Peers: rpc.Peers{calleeAddr: {Address: calleeAddr, Transport: nats.Kind, Topic: subject, Contract: doc}},
	})
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return agentdClient{conn, c}, nil
}

func (c agentdClient) call(ctx context.Context, payload []byte) error {
	res, err := c.client.RequestAgent(ctx, rpc.Request{To: calleeAddr, Capability: "review", Payload: payload})
	if err != nil {
		return err
	}
	if len(res.Response) != len(payload) {
		return errWrongReply
	}
	return nil
}

func (c agentdClient) close() error { return errors.Join(c.client.Close(), c.conn.Close()) }

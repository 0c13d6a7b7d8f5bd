package main

import (
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
)

const subject = "agents.callee.requests"

// serveOn connects to the broker and serves what subscribe subscribes to.
func serveOn(target string, subscribe func(*natsgo.Conn) error) (*callee, error) {
	nc, err := natsgo.Connect(target)
	if err != nil {
		return nil, err
	}
	if err = subscribe(nc); err == nil {
		err = nc.Flush()
	}
	if err != nil {
		nc.Close()
		return nil, err
	}
	return &callee{address: target, stop: func() error { nc.Close(); return nil }}, nil
}

func serveRaw(target string) (*callee, error) {
	return serveOn(target, func(nc *natsgo.Conn) error {
		_, err := nc.QueueSubscribe(subject, "g", func(m *natsgo.Msg) { _ = m.Respond(m.Data) })
		return err
	})
}

func serveMicro(target string) (*callee, error) {
	return serveOn(target, func(nc *natsgo.Conn) error {
		_, err := micro.AddService(nc, micro.Config{
			Name: "callee", Version: "1.0.0",
			Endpoint: &micro.EndpointConfig{Subject: subject, Handler: micro.HandlerFunc(func(r micro.Request) { _ = r.Respond(r.Data()) })},
		})
		return err
	})
}

type rawClient struct{ nc *natsgo.Conn }

func dialRaw(address string) (client, error) {
	nc, err := natsgo.Connect(address)
	if err != nil {
		return nil, err
	}
	return rawClient{nc}, nil
}

func (c rawClient) call(payload []byte) error {
	m, err := c.nc.Request(subject, payload, callLimit)
	if err != nil {
		return err
	}
	if len(m.Data) != len(payload) {
		return errWrongReply
	}
	return nil
}

func (c rawClient) close() error { c.nc.Close(); return nil }

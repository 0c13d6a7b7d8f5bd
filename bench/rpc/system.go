package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
)

// callLimit bounds every call: reached only when something is broken.
const callLimit = 20 * time.Second

// errWrongReply says that a callee answered something else than it was sent.
var errWrongReply = errors.New("the reply is not the request's payload")

// A system is one way to call another process, which answers with what it was
// sent.
type system struct {
	name string
	// direct systems have no broker between.
	direct bool
	// serve starts a callee; target is the broker's URL. address is what callers
	// dial.
	serve func(target string) (address string, stop func() error, err error)
	// dial opens one connection, which all callers share.
	dial func(address string) (client, error)
}

// A client makes calls; it is safe for concurrent use.
type client interface {
	call(ctx context.Context, payload []byte) error
	close() error
}

func systems() []system {
	return []system{
		{name: "raw", serve: serveRaw, dial: dialRaw},
		{name: "micro", serve: serveMicro, dial: dialRaw},
		{name: "grpc", direct: true, serve: serveGRPC, dial: dialGRPC},
		{name: "agentd", serve: serveAgentd, dial: dialAgentd},
	}
}

// payload is a JSON object of about a size: a list of findings, as a review
// would hold.
func payload(size int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"prUrl":"https://example.com/acme/shop/pull/1742","severity":"high","findings":[`)
	const finding = `{"file":"cart/total.go","line":%d,"rule":"no-float-money","message":"%s"}`
	for line := 1; ; line++ {
		next := fmt.Sprintf(finding, line*7, "money as float64")
		if line > 1 && b.Len()+len(next)+3 > size {
			break
		}
		if line > 1 {
			b.WriteByte(',')
		}
		b.WriteString(next)
	}
	b.WriteString(`]}`)
	return b.Bytes()
}

const subject = "agents.callee.requests"

func serveRaw(target string) (string, func() error, error) {
	nc, err := natsgo.Connect(target)
	if err != nil {
		return "", nil, err
	}
	_, err = nc.QueueSubscribe(subject, "g", func(m *natsgo.Msg) { _ = m.Respond(m.Data) })
	if err == nil {
		err = nc.Flush()
	}
	return target, func() error { nc.Close(); return nil }, err
}

func serveMicro(target string) (string, func() error, error) {
	nc, err := natsgo.Connect(target)
	if err != nil {
		return "", nil, err
	}
	_, err = micro.AddService(nc, micro.Config{
		Name: "callee", Version: "1.0.0",
		Endpoint: &micro.EndpointConfig{Subject: subject, Handler: micro.HandlerFunc(func(r micro.Request) { _ = r.Respond(r.Data()) })},
	})
	if err == nil {
		err = nc.Flush()
	}
	return target, func() error { nc.Close(); return nil }, err
}

type rawClient struct{ nc *natsgo.Conn }

func dialRaw(address string) (client, error) {
	nc, err := natsgo.Connect(address)
	if err != nil {
		return nil, err
	}
	return rawClient{nc}, nil
}

func (c rawClient) call(ctx context.Context, payload []byte) error {
	m, err := c.nc.RequestWithContext(ctx, subject, payload)
	if err != nil {
		return err
	}
	if len(m.Data) != len(payload) {
		return errWrongReply
	}
	return nil
}

func (c rawClient) close() error { c.nc.Close(); return nil }

package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/mcpauth"
)

// closeTimeout bounds the end of a session by HTTP, which the server is told of.
const closeTimeout = 5 * time.Second

// A link is one connection to the server. Its process or web is the way to it.
type link struct {
	session *mcp.ClientSession
	era     string
	process *process
	web     *web
	opened  mcp.Connection // what the library has of it
	listed  int64          // what Client.generation was before the first list
	ended   chan struct{}  // closed when the session has ended

	// Calls end with it.
	calls context.Context
	quit  context.CancelCauseFunc
}

// unreached is the error of an attempt in which the server was not reached: it says
// nothing about the era.
type unreached struct{ error }

func (u unreached) Unwrap() error { return u.error }

// connect makes a connection, in the era of the server where that is known. A server that
// fails or does not answer in one is tried in the other with a fresh process: not every
// server survives a question that it does not know.
func (c *Client) connect(ctx context.Context) (*link, listing, error) {
	eras := []string{Era2026, Era2025}
	if known := c.knownEra(); known != "" {
		eras = []string{known}
	}
	var last error
	for _, era := range eras {
		l, tools, err := c.connectIn(ctx, era, len(eras) > 1)
		if err == nil {
			c.rememberEra(l.era)
			return l, tools, nil
		}
		last = err
		denied := (*mcpauth.Error)(nil)
		if unreached := (unreached{}); errors.As(err, &unreached) || errors.As(err, &denied) || ctx.Err() != nil {
			return nil, nil, err
		}
	}
	c.rememberEra("") // it may have changed
	return nil, nil, last
}

// connectIn makes a connection in one era, and reads the first list of tools.
func (c *Client) connectIn(ctx context.Context, era string, probing bool) (_ *link, _ listing, err error) {
	limits := c.opts.Limits
	ctx, cancel := context.WithTimeoutCause(ctx, limits.StartTimeout, errNoAnswer)
	defer cancel()
	l := &link{ended: make(chan struct{})}
	l.calls, l.quit = context.WithCancelCause(context.Background())
	transport, err := l.open(ctx, c)
	if err != nil {
		return nil, nil, unreached{err}
	}
	defer func() {
		if err != nil {
			err = l.redact(l.close(err))
		}
	}()
	handshake := ctx
	if probing && era == Era2026 {
		var end context.CancelFunc
		handshake, end = context.WithTimeoutCause(ctx, limits.ProbeTimeout, errNoAnswer)
		defer end()
	}
	// The library waits for some answers without a bound.
	stop := context.AfterFunc(handshake, l.abort)
	l.session, err = c.mcp.Connect(handshake, keeping{transport, l}, &mcp.ClientSessionOptions{ProtocolVersion: era})
	// The library may return before the function that stop ends has begun.
	if inTime := stop(); !inTime || err != nil && handshake.Err() != nil {
		err = context.Cause(handshake)
	}
	if err != nil {
		if l.web != nil {
			if denied := l.web.denied.Load(); denied != nil { // which the library does not pass on
				err = denied
			}
		}
		return nil, nil, classify(err)
	}
	go func() {
		defer close(l.ended)
		_ = l.session.Wait() // the way to the server says more about why
	}()
	l.era = Era2025
	if l.session.InitializeResult().ProtocolVersion >= Era2026 {
		l.era = Era2026
	}
	l.listed = c.generation.Load()
	tools, err := l.list(ctx)
	return l, tools, err
}

// classify marks errors that say nothing about the era.
func classify(err error) error {
	if f := failure.As(err); f != nil {
		if f.Code == failure.NotAllowed || f.Code == failure.InvalidArgument {
			return unreached{err}
		}
		if op := (*net.OpError)(nil); errors.As(err, &op) && op.Op == "dial" {
			return unreached{err}
		}
	}
	return err
}

// open opens the way to the server.
func (l *link) open(ctx context.Context, c *Client) (mcp.Transport, error) {
	o := &c.opts
	if o.Command != nil {
		p, err := startProcess(ctx, o, c.log)
		if err != nil {
			return nil, err
		}
		l.process = p
		return opened{p}, nil
	}
	w, err := openWeb(o)
	if err != nil {
		return nil, err
	}
	l.web = w
	return &mcp.StreamableClientTransport{Endpoint: o.URL.URL, HTTPClient: w.client(), MaxEventSize: o.Limits.MessageBytes}, nil
}

// opened is the transport of a connection that is there already.
type opened struct{ conn mcp.Connection }

// Connect implements [mcp.Transport].
func (o opened) Connect(context.Context) (mcp.Connection, error) { return o.conn, nil }

// keeping is a transport whose connection the link keeps: the library does not close it
// after each of its errors.
type keeping struct {
	mcp.Transport
	link *link
}

// Connect implements [mcp.Transport].
func (k keeping) Connect(ctx context.Context) (conn mcp.Connection, err error) {
	conn, err = k.Transport.Connect(ctx)
	k.link.opened = conn
	return conn, err
}

// abort ends the way to the server at once.
func (l *link) abort() {
	if l.process != nil {
		l.process.kill()
		return
	}
	l.web.close()
}

// close ends the connection with its calls, and returns when nothing is left of it. The
// error is why the connection has ended, for which err is what is known so far.
func (l *link) close(err error) error {
	l.quit(errClosed)
	if l.process != nil {
		l.process.close()
		if l.session != nil {
			_ = l.session.Close() // its end has been read
		}
		if cause := l.process.cause(); cause != nil && !errors.Is(err, errNoAnswer) && !errors.Is(err, errClosed) {
			return cause
		}
		return err // the exit is what came of it
	}
	end := time.AfterFunc(closeTimeout, l.web.close)
	defer end.Stop()
	if l.session != nil {
		_ = l.session.Close() // a server that is away has ended it already
	} else if l.opened != nil {
		_ = l.opened.Close()
	}
	l.web.close()
	return err
}

// refuseRequests answers what a server asks, unless that was allowed.
func (c *Client) refuseRequests(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		allowed := true
		switch method {
		case "roots/list":
			allowed = len(c.opts.Roots) > 0
		case "sampling/createMessage":
			allowed = false
		case "elicitation/create":
			allowed = c.opts.Elicit != nil
		}
		if allowed {
			return next(ctx, method, req)
		}
		if c.asked.CompareAndSwap(false, true) {
			c.log.Warn("an MCP server asks for what it may not have, and is refused", "method", method)
		}
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("%s is not available here", method)}
	}
}

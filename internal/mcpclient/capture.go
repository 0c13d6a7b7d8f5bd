package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// A capture takes the result of one request out of its answer, before the protocol's
// library decodes it. The context of the request carries it down to the connection.
type capture struct {
	mu     sync.Mutex
	sent   bool
	result json.RawMessage
	wire   *jsonrpc.Error // in place of a result
	err    error          // why the answer could not be read
}

type captureKey struct{}

func withCapture(ctx context.Context) (context.Context, *capture) {
	c := &capture{}
	return context.WithValue(ctx, captureKey{}, c), c
}

// captureOf returns the capture of a request, or nil. Its methods do nothing if it is nil.
func captureOf(ctx context.Context) *capture {
	c, _ := ctx.Value(captureKey{}).(*capture)
	return c
}

// goesOut notes that the request may have reached the server from now on. The library may
// send several in one call, the last of which has its result.
func (c *capture) goesOut() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent, c.result, c.wire = true, nil, nil
}

// take keeps what a response has. The first one counts, as it does for the library.
func (c *capture) take(r *jsonrpc.Response) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.result != nil || c.wire != nil {
		return
	}
	if r.Error == nil {
		c.result = r.Result
	} else if !errors.As(r.Error, &c.wire) {
		c.wire = &jsonrpc.Error{Message: r.Error.Error()}
	}
}

// fail notes why the answer could not be read.
func (c *capture) fail(err error) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
}

// turnedBack notes that the server did not let the request in, and why there is no other one.
func (c *capture) turnedBack(err error) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent, c.err = false, err
}

// captured is what a capture has at the end.
type captured struct {
	sent   bool
	result json.RawMessage
	wire   *jsonrpc.Error
	err    error
}

// outcome returns what was captured.
func (c *capture) outcome() captured {
	c.mu.Lock()
	defer c.mu.Unlock()
	return captured{c.sent, c.result, c.wire, c.err}
}

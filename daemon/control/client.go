package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"time"

	"github.com/agentd/agentd/daemon/internal/callapi"
	"github.com/agentd/agentd/rpc"
)

// A Client calls the control API of one agent. It is safe for concurrent use.
type Client struct {
	api    *callapi.Client
	socket string
}

// NewClient returns a client for the API on a Unix socket. It does not connect yet.
func NewClient(socket string) *Client {
	return &Client{socket: socket, api: callapi.NewClient(callapi.Endpoint{
		// HTTP wants a host in every URL. This one is looked up nowhere: Dial
		// connects to the socket, and the API ignores the Host header.
		URL: "http://agentd",
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			conn, err := d.DialContext(ctx, "unix", socket)
			if errors.Is(err, fs.ErrPermission) {
				err = fmt.Errorf("the agent is another user's: run this as the user that agentd runs as: %w", err)
			}
			return conn, err
		},
		Unreachable: func(err error) error { return &NotRunningError{Socket: socket, Err: err} },
	})}
}

// Close closes idle connections.
func (c *Client) Close() { c.api.Close() }

// A NotRunningError means that no process serves a socket.
type NotRunningError struct {
	// Socket is the path.
	Socket string
	// Err is the error of connecting.
	Err error
}

func (e *NotRunningError) Error() string {
	return fmt.Sprintf("no agentd answers on %s: start it with `agentd fleet run` or `agentd run --agent <id>`", e.Socket)
}

// Unwrap returns Err.
func (e *NotRunningError) Unwrap() error { return e.Err }

// A RefusedError is a response other than a result: no call was made.
type RefusedError = callapi.RefusedError

// RequestAgent makes one call as the agent. A call that was made returns a result and
// no error, whatever its status. Errors are [*NotRunningError], [*RefusedError], or the
// connection's. r.OnProgress is called on this goroutine.
func (c *Client) RequestAgent(ctx context.Context, r rpc.Request) (*rpc.Result, error) {
	return c.api.RequestAgent(ctx, r)
}

// Await waits for the result of an asynchronous call of the agent, at most timeout,
// from 1 ms to an hour. Errors are [*NotRunningError], [*RefusedError], or the
// connection's.
func (c *Client) Await(ctx context.Context, correlationID string, timeout time.Duration) (*rpc.Result, error) {
	return c.api.Await(ctx, correlationID, timeout)
}

// Capabilities returns the published form of the agent's capabilities, as JSON.
func (c *Client) Capabilities(ctx context.Context) ([]byte, error) {
	return c.do(ctx, http.MethodGet, "/v1/agent/capabilities", nil)
}

// Ready returns nil while the agent accepts calls.
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.do(ctx, http.MethodGet, "/readyz", nil)
	return err
}

// do makes one HTTP request and returns the body of a response with status 200.
func (c *Client) do(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	return c.api.Do(ctx, method, path, body)
}

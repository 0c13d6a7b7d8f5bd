package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"

	"github.com/agentd/agentd/rpc"
)

// maxResponseBytes bounds a response: a result holds at most a payload as large as
// [MaxRequestBytes], and what surrounds it.
const maxResponseBytes = 64 << 20

// A Client calls the control API of one agent. It is safe for concurrent use.
type Client struct {
	socket string
	http   *http.Client
}

// NewClient returns a client for the API on a Unix socket. It does not connect yet.
func NewClient(socket string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}
	return &Client{socket: socket, http: &http.Client{Transport: &http.Transport{DialContext: dial}}}
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

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
type RefusedError struct {
	// HTTPStatus is the HTTP status.
	HTTPStatus int
	// Code is the text of an [rpc.Code], or a code of this API only.
	Code string
	// Message describes the fault.
	Message string
}

func (e *RefusedError) Error() string { return e.Code + ": " + e.Message }

// RequestAgent makes one call as the agent. If parent is not empty, it is the
// token of a running call, and this one is nested in it. A call that was made
// returns a result and no error, whatever its status. Errors are
// [*NotRunningError], [*RefusedError], or the connection's. r.OnProgress is called
// on this goroutine.
func (c *Client) RequestAgent(ctx context.Context, r rpc.Request, parent string) (*rpc.Result, error) {
	body, err := r.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	if r.OnProgress != nil {
		resp, err := c.open(ctx, http.MethodPost, "/v1/request", body, http.Header{"Accept": {ndjson}, HeaderCall: {parent}})
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		return follow(resp.Body, r.OnProgress)
	}
	data, err := c.do(ctx, http.MethodPost, "/v1/request", body, parent)
	if err != nil {
		return nil, err
	}
	var result rpc.Result
	if err := json.Unmarshal(data, &result); err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	return &result, nil
}

// Capabilities returns the published form of the agent's capabilities, as JSON.
func (c *Client) Capabilities(ctx context.Context) ([]byte, error) {
	return c.do(ctx, http.MethodGet, "/v1/agent/capabilities", nil, "")
}

// Ready returns nil while the agent accepts calls.
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.do(ctx, http.MethodGet, "/readyz", nil, "")
	return err
}

// do makes one HTTP request and returns the body of a response with status 200.
func (c *Client) do(ctx context.Context, method, path string, body []byte, parent string) ([]byte, error) {
	resp, err := c.open(ctx, method, path, body, http.Header{HeaderCall: {parent}})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxResponseBytes))
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	return data, nil
}

// open makes one HTTP request and returns a response with status 200, whose body
// the caller closes. Other statuses are errors.
func (c *Client) open(ctx context.Context, method, path string, body []byte, header http.Header) (*http.Response, error) {
	// The host is a placeholder: the dialer ignores it.
	req, err := http.NewRequestWithContext(ctx, method, "http://agentd"+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	req.Header = header
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if req.Header.Get(HeaderCall) == "" {
		req.Header.Del(HeaderCall)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		// No socket, or one that a killed process left behind.
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
			return nil, &NotRunningError{Socket: c.socket, Err: err}
		}
		return nil, fmt.Errorf("control: %w", err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxResponseBytes))
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	var f fault
	if json.Unmarshal(data, &f) != nil || f.Error.Code == "" {
		// Not from the handlers of this package, such as the mux's own 404 from an
		// older agent.
		f.Error = faultBody{Code: "http", Message: resp.Status}
	}
	return nil, &RefusedError{HTTPStatus: resp.StatusCode, Code: f.Error.Code, Message: f.Error.Message}
}

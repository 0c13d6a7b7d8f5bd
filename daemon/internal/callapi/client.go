package callapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"time"

	"github.com/agentd/agentd/rpc"
)

// maxResponseBytes bounds a response: a result holds at most a payload as large as
// [MaxRequestBytes], and what surrounds it.
const maxResponseBytes = 64 << 20

// A client keeps so many connections, for so long, for calls to come.
const (
	maxIdle     = 256
	idleTimeout = 90 * time.Second
)

// An Endpoint is where an API is.
type Endpoint struct {
	// URL is that of the API, without a path.
	URL string
	// Dial connects; nil is TCP, to the host of URL.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Header is sent with each request.
	Header http.Header
	// Unreachable returns the error for an endpoint where nobody listens.
	Unreachable func(err error) error
}

// A Client calls an API. It is safe for concurrent use.
type Client struct {
	at   Endpoint
	http *http.Client
}

// NewClient returns a client for the API at an endpoint. It does not connect yet, asks
// no proxy and follows no redirects: the API is on this machine.
func NewClient(at Endpoint) *Client {
	return &Client{at: at, http: &http.Client{
		// By default two connections stay, and each of more calls at once would open one anew.
		Transport:     &http.Transport{DialContext: at.Dial, MaxIdleConnsPerHost: maxIdle, IdleConnTimeout: idleTimeout},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

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

// RequestAgent makes one call. A call that was made returns a result and no error,
// whatever its status. Errors are that of [Endpoint.Unreachable], [*RefusedError], or
// the connection's. r.OnProgress is called on this goroutine.
func (c *Client) RequestAgent(ctx context.Context, r rpc.Request) (*rpc.Result, error) {
	body, err := r.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	if r.OnProgress != nil {
		resp, err := c.open(ctx, http.MethodPost, "/v1/request", body, http.Header{"Accept": {ndjson}})
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		return follow(resp.Body, r.OnProgress)
	}
	var result rpc.Result
	if err := c.Decode(ctx, http.MethodPost, "/v1/request", body, &result); err != nil {
		return nil, err
	}
	return &result, nil
}

// Await waits for the result of an asynchronous call of the agent, at most timeout,
// from 1 ms to an hour. Errors are those of [Client.RequestAgent].
func (c *Client) Await(ctx context.Context, correlationID string, timeout time.Duration) (*rpc.Result, error) {
	var result rpc.Result
	path := fmt.Sprintf("/v1/results/%s?timeoutMs=%d", url.PathEscape(correlationID), timeout.Milliseconds())
	if err := c.Decode(ctx, http.MethodGet, path, nil, &result); err != nil {
		return nil, err
	}
	return &result, nil
}

// Decode makes one HTTP request and decodes the body of a response with status 200.
func (c *Client) Decode(ctx context.Context, method, path string, body []byte, into any) error {
	data, err := c.Do(ctx, method, path, body)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("control: %w", err)
	}
	return nil
}

// Do makes one HTTP request and returns the body of a response with status 200.
func (c *Client) Do(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	resp, err := c.open(ctx, method, path, body, http.Header{})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxResponseBytes))
	if err != nil {
		return nil, lost(err)
	}
	return data, nil
}

// lost says of an error after a request was sent what that means for the request.
func lost(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) {
		return fmt.Errorf("control: the agent has ended without an answer; what was asked of it may have been done or not: %w", err)
	}
	return fmt.Errorf("control: %w", err)
}

// open makes one HTTP request and returns a response with status 200, whose body
// the caller closes. Other statuses are errors.
func (c *Client) open(ctx context.Context, method, path string, body []byte, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.at.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	req.Header = header
	for name, values := range c.at.Header {
		req.Header[name] = values
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		// No socket, or one that a killed process left behind.
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
			return nil, c.at.Unreachable(err)
		}
		return nil, lost(err)
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
		// Not from agentd's own handlers, such as the 404 of another program's.
		f.Error = faultBody{Code: "http", Message: resp.Status}
	}
	return nil, &RefusedError{HTTPStatus: resp.StatusCode, Code: f.Error.Code, Message: f.Error.Message}
}

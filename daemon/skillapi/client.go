package skillapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/agentd/agentd/daemon/internal/callapi"
	"github.com/agentd/agentd/rpc"
)

// A Client asks a skill's agent in the name of the call that the skill serves. It is safe
// for concurrent use.
type Client struct{ api *callapi.Client }

// NewClient returns a client for the API at url, the skill's AGENTD_URL, in the name of
// the call with a token, its AGENTD_CALL. It does not connect yet.
func NewClient(url, call string) *Client {
	return &Client{callapi.NewClient(callapi.Endpoint{
		URL: url, Header: http.Header{HeaderCall: {call}},
		Unreachable: func(err error) error {
			return fmt.Errorf("the agent does not answer on %s any more: the skill's call has ended: %w", url, err)
		},
	})}
}

// Close closes idle connections.
func (c *Client) Close() { c.api.Close() }

// A RefusedError is a response other than a result: no call was made.
type RefusedError = callapi.RefusedError

// RequestAgent makes one nested call. A call that was made returns a result and no
// error, whatever its status. Errors are [*RefusedError] or the connection's.
// r.OnProgress is called on this goroutine.
func (c *Client) RequestAgent(ctx context.Context, r rpc.Request) (*rpc.Result, error) {
	return c.api.RequestAgent(ctx, r)
}

// Await waits for the result of an asynchronous call of the agent for the tenant of the
// skill's call, at most timeout, from 1 ms to an hour. Errors are those of
// [Client.RequestAgent].
func (c *Client) Await(ctx context.Context, correlationID string, timeout time.Duration) (*rpc.Result, error) {
	return c.api.Await(ctx, correlationID, timeout)
}

// Progress reports the progress of the skill's call to its caller. wanted is false when
// the caller does not listen. Errors are those of [Client.RequestAgent].
func (c *Client) Progress(ctx context.Context, value json.RawMessage) (wanted bool, err error) {
	var answer struct {
		Wanted bool `json:"wanted"`
	}
	err = c.api.Decode(ctx, http.MethodPost, "/v1/agent/progress", value, &answer)
	return answer.Wanted, err
}

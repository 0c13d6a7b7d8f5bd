package control

import (
	"context"
	"io"
	"net/http"

	"github.com/agentd/agentd/action"
	"github.com/agentd/agentd/daemon/internal/callapi"
	"github.com/agentd/agentd/rpc"
)

// runAction handles POST /v1/actions/run. Whatever becomes of the action is its outcome;
// only a body that is no invocation is an error of the API.
func (a Agent) runAction(w http.ResponseWriter, r *http.Request) {
	const form = "the request is not {capability_id, parameters?, trace_id?, timeout_ms?}"
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxRequestBytes))
	if err != nil {
		refuseBody(w, callapi.BodyCode(err).String(), form, err)
		return
	}
	inv, err := action.ParseInvocation(body)
	if err != nil {
		refuseBody(w, rpc.CodeInvalidRequest.String(), form, err)
		return
	}
	if a.RunAction == nil {
		writeFault(w, http.StatusNotFound, rpc.CodeNoCapability.String(), "this agent only calls others; it has no actions")
		return
	}
	writeJSON(w, http.StatusOK, a.RunAction(r.Context(), inv))
}

// RunAction has the agent execute one of its actions. Errors are those of [Client.Status];
// what becomes of the action is the outcome.
func (c *Client) RunAction(ctx context.Context, inv action.Invocation) (action.Outcome, error) {
	var out action.Outcome
	err := c.post(ctx, "/v1/actions/run", inv, &out)
	return out, err
}

package control

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/agentd/agentd/daemon/internal/callapi"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
)

// A Letter is a dead letter: a request to the agent that could not be served.
type Letter struct {
	// Number identifies it.
	Number uint64 `json:"number"`
	// Time is when it was dead-lettered, Reason why, and Attempts the number of
	// deliveries before that.
	Time     time.Time `json:"time"`
	Reason   string    `json:"reason"`
	Attempts int       `json:"attempts"`
	// From, Capability, CorrelationID and TenantID are the call's, and "" when the message was
	// no valid request.
	From          envelope.Address `json:"from,omitempty"`
	Capability    string           `json:"capability,omitempty"`
	CorrelationID string           `json:"correlationId,omitempty"`
	TenantID      string           `json:"tenantId,omitempty"`
	// Deadline is the call's, in Unix milliseconds. After it, redriving is pointless.
	Deadline int64 `json:"deadline,omitempty"`
	// Bytes is the size of the body.
	Bytes int `json:"bytes"`
	// Body is the whole request. Lists leave it out.
	Body json.RawMessage `json:"body,omitempty"`
}

// Durable holds those calls of an agent that outlive its process. Implementations
// must be safe for concurrent use.
type Durable interface {
	// Await waits for the answer to an asynchronous call of the agent, until ctx ends.
	Await(ctx context.Context, correlationID string) *rpc.Result
	// Letters returns the dead letters, the oldest first, at most 1000.
	Letters(ctx context.Context) ([]Letter, error)
	// Letter returns one of them, with its body.
	Letter(ctx context.Context, number uint64) (Letter, error)
	// Redrive puts a letter back into the queue, and Drop removes it for good. by is
	// the user who does so, for the audit log.
	Redrive(ctx context.Context, number uint64, by string) (Letter, error)
	Drop(ctx context.Context, number uint64, by string) (Letter, error)
}

// codeLetter is a fault code of this API; [rpc.Code] has none for it.
const codeLetter = "dead-letter"

// await handles GET /v1/results/{id}. No answer in time is a result with code
// timeout, not an HTTP error.
func (a Agent) await(w http.ResponseWriter, r *http.Request) {
	wait, ok := callapi.ReadWait(w, r)
	if !ok {
		return
	}
	if a.Durable == nil {
		writeFault(w, http.StatusNotFound, rpc.CodeNeedsDurable.String(), "this agent keeps no calls")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	writeJSON(w, http.StatusOK, a.Durable.Await(ctx, r.PathValue("id")))
}

// letters handles a path below /v1/dlq: it parses the number, if the path has one,
// and responds with what change returns.
func (a Agent) letters(change func(ctx context.Context, d Durable, number uint64, by string) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var number uint64
		if text := r.PathValue("number"); text != "" {
			var err error
			if number, err = strconv.ParseUint(text, 10, 64); err != nil {
				writeFault(w, http.StatusBadRequest, codeLetter, "a letter's number is a number")
				return
			}
		}
		if a.Durable == nil {
			writeFault(w, http.StatusNotFound, codeLetter, "this agent keeps no calls")
			return
		}
		answer, err := change(r.Context(), a.Durable, number, userFrom(r.Context()))
		if err != nil {
			writeFault(w, http.StatusConflict, codeLetter, err.Error())
			return
		}
		writeJSON(w, http.StatusOK, answer)
	}
}

// registerDurable adds the paths of durable calls.
func (a Agent) registerDurable(mux *http.ServeMux) {
	mux.HandleFunc("GET /v1/results/{id}", a.await)
	mux.HandleFunc("GET /v1/dlq", a.letters(func(ctx context.Context, d Durable, _ uint64, _ string) (any, error) { return d.Letters(ctx) }))
	mux.HandleFunc("GET /v1/dlq/{number}", a.letters(func(ctx context.Context, d Durable, n uint64, _ string) (any, error) { return d.Letter(ctx, n) }))
	mux.HandleFunc("POST /v1/dlq/{number}/redrive", a.letters(func(ctx context.Context, d Durable, n uint64, by string) (any, error) { return d.Redrive(ctx, n, by) }))
	mux.HandleFunc("DELETE /v1/dlq/{number}", a.letters(func(ctx context.Context, d Durable, n uint64, by string) (any, error) { return d.Drop(ctx, n, by) }))
}

// Letters returns the dead letters, without their bodies. Errors are those of
// [Client.Await].
func (c *Client) Letters(ctx context.Context) (all []Letter, err error) {
	err = c.get(ctx, http.MethodGet, "/v1/dlq", &all)
	return all, err
}

// Letter returns one dead letter, with its body. Errors are those of [Client.Await].
func (c *Client) Letter(ctx context.Context, number uint64) (l Letter, err error) {
	err = c.get(ctx, http.MethodGet, fmt.Sprintf("/v1/dlq/%d", number), &l)
	return l, err
}

// Redrive puts a dead letter back into the queue. Errors are those of [Client.Await].
func (c *Client) Redrive(ctx context.Context, number uint64) (l Letter, err error) {
	err = c.get(ctx, http.MethodPost, fmt.Sprintf("/v1/dlq/%d/redrive", number), &l)
	return l, err
}

// Drop removes a dead letter for good. Errors are those of [Client.Await].
func (c *Client) Drop(ctx context.Context, number uint64) (l Letter, err error) {
	err = c.get(ctx, http.MethodDelete, fmt.Sprintf("/v1/dlq/%d", number), &l)
	return l, err
}

// get makes a request without a body and decodes the response.
func (c *Client) get(ctx context.Context, method, path string, into any) error {
	return c.api.Decode(ctx, method, path, nil, into)
}

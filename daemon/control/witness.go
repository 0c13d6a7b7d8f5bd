package control

import (
	"context"
	"net/http"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/envelope"
)

// Witnesses gives access to the checkpoints that witnesses hold of audit logs.
// Implementations must be safe for concurrent use.
type Witnesses interface {
	// Witnessed returns the newest signed checkpoint of the log called origin that
	// the agent by holds as a witness, or nil if it holds none. by is a peer, or ""
	// for the agent itself.
	Witnessed(ctx context.Context, by envelope.Address, origin string) ([]byte, error)
}

// witnessedRequest is the body of POST /v1/audit/witnessed.
type witnessedRequest struct {
	Witness envelope.Address `json:"witness"`
	Origin  string           `json:"origin"`
}

type witnessedAnswer struct {
	// Checkpoint is "" when the witness has none.
	Checkpoint string `json:"checkpoint"`
}

func (a Agent) witnessed(w http.ResponseWriter, r *http.Request) {
	var request witnessedRequest
	if err := decodeStrict(http.MaxBytesReader(w, r.Body, maxAuditRequestBytes), &request); err != nil {
		refuseBody(w, auditchain.CodeInvalid.String(), "the request is not {witness, origin}", err)
		return
	}
	if a.Witnesses == nil {
		writeFault(w, http.StatusNotFound, auditchain.CodeNotFound.String(), "this agent can ask no witness")
		return
	}
	note, err := a.Witnesses.Witnessed(r.Context(), request.Witness, request.Origin)
	if err != nil {
		writeFault(w, http.StatusBadGateway, auditchain.CodeIO.String(), err.Error())
		return
	}
	writeJSON(w, http.StatusOK, witnessedAnswer{Checkpoint: string(note)})
}

// Witnessed returns what by, or with "" the agent itself, holds as a witness of a
// log, see [Witnesses]. Errors are [*NotRunningError], [*RefusedError], or the
// connection's.
func (c *Client) Witnessed(ctx context.Context, by envelope.Address, origin string) ([]byte, error) {
	var answer witnessedAnswer
	if err := c.post(ctx, "/v1/audit/witnessed", witnessedRequest{Witness: by, Origin: origin}, &answer); err != nil {
		return nil, err
	}
	if answer.Checkpoint == "" {
		return nil, nil
	}
	return []byte(answer.Checkpoint), nil
}

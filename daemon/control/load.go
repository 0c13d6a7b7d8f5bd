package control

import (
	"context"
	"net/http"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
)

// A Breaker is the circuit breaker of the agent's calls to one capability of a peer.
type Breaker struct {
	Peer       envelope.Address    `json:"peer"`
	Capability string              `json:"capability"`
	State      policy.BreakerState `json:"state"`
	// Since is when it got into the state. Until is when it lets the next calls through.
	Since time.Time `json:"since"`
	Until time.Time `json:"until,omitzero"`
	// Calls and Failed are what its state rests on, and Cause is the code of the last
	// failure.
	Calls  int    `json:"calls"`
	Failed int    `json:"failed"`
	Cause  string `json:"cause,omitempty"`
	// Refused counts the calls that it has refused since it opened, and Opened how
	// often it has opened.
	Refused int `json:"refused"`
	Opened  int `json:"opened"`
}

// A CapabilityLoad is what the agent serves of one of its capabilities.
type CapabilityLoad struct {
	Capability string `json:"capability"`
	// Running is the number of requests whose skill runs, Waiting of those that wait for
	// their turn, and Bytes counts the messages of the latter.
	Running int `json:"running"`
	Waiting int `json:"waiting"`
	Bytes   int `json:"bytes"`
	// Refused counts the requests that found the queue full. Full is set while it is,
	// and Since is from when on.
	Refused int       `json:"refused"`
	Full    bool      `json:"full"`
	Since   time.Time `json:"since,omitzero"`
}

// resetRequest is the body of POST /v1/breakers/reset. What is left out means all.
type resetRequest struct {
	Peer       envelope.Address `json:"peer,omitempty"`
	Capability string           `json:"capability,omitempty"`
}

// resetBreakers handles POST /v1/breakers/reset. The response lists the breakers that
// were not closed, as they were.
func (a Agent) resetBreakers(w http.ResponseWriter, r *http.Request) {
	var request resetRequest
	if err := decodeStrict(http.MaxBytesReader(w, r.Body, maxAuditRequestBytes), &request); err != nil {
		refuseBody(w, rpc.CodeInvalidRequest.String(), "the request is not {peer?, capability?}", err)
		return
	}
	if a.ResetBreakers == nil {
		writeFault(w, http.StatusNotFound, rpc.CodeInvalidRequest.String(), "this agent has no breakers")
		return
	}
	reset, err := a.ResetBreakers(r.Context(), envelope.AddressFor(string(request.Peer)), request.Capability)
	if err != nil {
		writeFault(w, http.StatusInternalServerError, rpc.CodeAuditFailed.String(), "the reset could not be recorded, and no breaker was closed: "+err.Error())
		return
	}
	writeJSON(w, http.StatusOK, reset)
}

// ResetBreakers closes the agent's circuit breakers of a peer, or of all if peer is "",
// and of one of its capabilities or of all if capability is "". It returns those that
// were not closed, as they were. Errors are those of [Client.Status].
func (c *Client) ResetBreakers(ctx context.Context, peer envelope.Address, capability string) ([]Breaker, error) {
	var reset []Breaker
	err := c.post(ctx, "/v1/breakers/reset", resetRequest{Peer: peer, Capability: capability}, &reset)
	return reset, err
}

package control

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
)

// An Activity is what an agent does: the response to GET /v1/agent/activity. Its counts are since
// the agent started. Two activities, one after the other, give rates and recent latencies.
type Activity struct {
	// Status is the agent at a glance.
	Status Status `json:"status"`
	// Calls count the calls that have ended, at both ends, by role, peer and capability.
	Calls []CallCounts `json:"calls,omitempty"`
	// Models are the tokens of language models, where skills report them.
	Models []ModelTokens `json:"models,omitempty"`
	// InFlight are the calls that have not ended.
	InFlight []InFlight `json:"inFlight,omitempty"`
	// RoundTrips are those to the brokers that answer.
	RoundTrips []RoundTrip `json:"roundTrips,omitempty"`
	// Queue is how JetStream keeps the agent's requests; nil for an agent without durable
	// capabilities, and where the broker does not say.
	Queue *Queue `json:"queue,omitempty"`
}

// CallCounts count the calls that have ended between the agent and one peer, of one capability.
type CallCounts struct {
	// Role is the agent's in them.
	Role rpc.Role `json:"role"`
	// Peer and Capability are "other" for names that are in none of the agent's files.
	Peer       envelope.Address `json:"peer"`
	Capability string           `json:"capability"`
	// Calls is their number, and Failed counts those that did not end with ok, by code.
	Calls  uint64            `json:"calls"`
	Failed map[string]uint64 `json:"failed,omitempty"`
	// Retries is the number of attempts after the first ones, and RateLimited that of attempts
	// and requests that a rate limit has refused.
	Retries     uint64 `json:"retries,omitempty"`
	RateLimited uint64 `json:"rateLimited,omitempty"`
	// Latencies are those of all of them, whatever came of them.
	Latencies []LatencyBucket `json:"latencies,omitempty"`
}

// ModelTokens count what one language model has used for the calls of one capability, by the word of
// its skill. The counts of a model that was not used for an hour may begin again.
type ModelTokens struct {
	Capability string `json:"capability"`
	// Provider, Model and Operation are the skill's words, and "other" where a capability has used
	// too many.
	Provider  string `json:"provider"`
	Model     string `json:"model"`
	Operation string `json:"operation"`
	// Requests is the number of requests with tokens; Input and Output are the tokens.
	Requests uint64 `json:"requests"`
	Input    uint64 `json:"input"`
	Output   uint64 `json:"output"`
}

// A LatencyBucket counts the calls that took no longer than UpTo seconds, and longer than the
// largest possible bound below that: bounds are the powers of 2^(1/8). The last one, 2048 s, has all
// that took longer as well. Buckets without calls are left out.
type LatencyBucket struct {
	UpTo  float64 `json:"upTo"`
	Calls uint64  `json:"calls"`
}

// InFlight counts the calls of one peer and one capability that have not ended.
type InFlight struct {
	Role       rpc.Role         `json:"role"`
	Peer       envelope.Address `json:"peer"`
	Capability string           `json:"capability"`
	// Running ones wait for a reply of the peer, or have the agent's skill running.
	Running int `json:"running"`
	// Waiting requests wait for their turn in this process.
	Waiting int `json:"waiting,omitempty"`
}

// A RoundTrip is what a message to a broker and back takes.
type RoundTrip struct {
	// Broker is that of [Broker].
	Broker       string  `json:"broker"`
	Milliseconds float64 `json:"milliseconds"`
}

// A Queue is how JetStream keeps an agent's requests.
type Queue struct {
	// Waiting ones are not delivered, InFlight ones not acknowledged, of which Redelivered were
	// delivered before. On Dead ones the queue has given up.
	Waiting     uint64 `json:"waiting"`
	InFlight    uint64 `json:"inFlight"`
	Redelivered uint64 `json:"redelivered"`
	Dead        uint64 `json:"dead"`
}

// activity handles GET /v1/agent/activity.
func (a Agent) activity(w http.ResponseWriter, r *http.Request) {
	if a.Activity == nil {
		writeFault(w, http.StatusNotFound, rpc.CodeInvalidRequest.String(), "this agent reports no activity")
		return
	}
	writeJSON(w, http.StatusOK, a.Activity(r.Context()))
}

// Activity returns what the agent does. Errors are those of [Client.Status].
func (c *Client) Activity(ctx context.Context) (Activity, error) {
	var a Activity
	data, err := c.do(ctx, http.MethodGet, "/v1/agent/activity", nil)
	if err == nil {
		if err = json.Unmarshal(data, &a); err != nil {
			err = fmt.Errorf("control: %w", err)
		}
	}
	return a, err
}

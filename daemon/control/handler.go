package control

import (
	"context"
	"net/http"

	"github.com/agentd/agentd/action"
	"github.com/agentd/agentd/daemon/internal/callapi"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
)

// headerCall is that of a skill's requests, which this API does not take.
const headerCall = "Agentd-Call"

// MaxRequestBytes bounds the body of a request. The agent's own limit on payloads
// is smaller, and is applied by its [Caller].
const MaxRequestBytes = callapi.MaxRequestBytes

// A Caller makes calls.
type Caller interface {
	RequestAgent(context.Context, rpc.Request) (*rpc.Result, error)
}

// An Agent is what the API gives access to.
type Agent struct {
	// Caller makes the calls of POST /v1/request.
	Caller Caller
	// Capabilities returns the published form as JSON. It is nil for an agent that
	// offers none.
	Capabilities func() ([]byte, error)
	// Ready returns nil while the agent accepts calls, and otherwise why it does not.
	Ready func() error
	// Approvals are the calls that wait for a person. It may be nil.
	Approvals Approvals
	// Warnings returns what somebody should look at although the agent accepts calls.
	// It may be nil.
	Warnings func() []string
	// Witnesses give access to checkpoints that witnesses hold. It may be nil.
	Witnesses Witnesses
	// Status returns the agent at a glance. It may be nil.
	Status func() Status
	// Activity returns what the agent does. It may be nil.
	Activity func(context.Context) Activity
	// VerifyPeers asks peers what they serve. It may be nil.
	VerifyPeers func(ctx context.Context, only []envelope.Address) []PeerStatus
	// ResetBreakers closes circuit breakers, see [Client.ResetBreakers]. It may be nil.
	ResetBreakers func(ctx context.Context, peer envelope.Address, capability string) ([]Breaker, error)
	// Tools lists what the agent may use, in the order of its file. It may be nil.
	Tools func() ([]ToolSet, error)
	// RunAction executes an action of the agent for its operator. It may be nil.
	RunAction func(ctx context.Context, inv action.Invocation) action.Outcome
	// MCP serves clients of the Model Context Protocol. It may be nil.
	MCP MCP
	// Durable are the calls that outlive the process. It may be nil.
	Durable Durable
	// Audit is the agent's audit log. It may be nil.
	Audit AuditKeeper
}

// NewHandler returns the handler for the API of a.
func NewHandler(a Agent) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/request", a.request)
	mux.HandleFunc("GET /v1/agent/capabilities", a.capabilities)
	mux.HandleFunc("GET /v1/agent/status", a.status)
	mux.HandleFunc("GET /v1/agent/activity", a.activity)
	mux.HandleFunc("GET /v1/agent/tools", a.tools)
	mux.HandleFunc("POST /v1/actions/run", a.runAction)
	mux.HandleFunc("POST /v1/peers/verify", a.verifyPeers)
	mux.HandleFunc("POST /v1/breakers/reset", a.resetBreakers)
	mux.HandleFunc("POST /v1/audit/redact", a.redactAudit)
	mux.HandleFunc("POST /v1/audit/prune", a.pruneAudit)
	mux.HandleFunc("POST /v1/audit/rotate-key", a.rotateAuditKey)
	mux.HandleFunc("POST /v1/audit/witnessed", a.witnessed)
	mux.HandleFunc("GET /v1/approvals", a.listApprovals)
	mux.HandleFunc("POST /v1/approvals/{id}", a.decideApproval)
	mux.HandleFunc("POST "+mcpStdio, a.mcpStream)
	mux.HandleFunc("POST "+mcpListen, a.mcpListener)
	a.registerDurable(mux)
	mux.HandleFunc("GET /v1/openapi.json", openapi)
	mux.HandleFunc("GET /healthz", healthy)
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := a.Ready(); err != nil {
			writeFault(w, http.StatusServiceUnavailable, codeNotReady, err.Error())
			return
		}
		var warnings []string
		if a.Warnings != nil {
			warnings = a.Warnings()
		}
		writeJSON(w, http.StatusOK, struct {
			Status   string   `json:"status"`
			Warnings []string `json:"warnings,omitempty"`
		}{"ready", warnings})
	})
	return refuseSkills(router{mux})
}

// NewStarting returns the handler for an agent that waits for something before it can start:
// it serves its health and status, and refuses everything else with the reason.
func NewStarting(status func() Status) http.Handler {
	mux := http.NewServeMux()
	a := Agent{Status: status, Activity: func(context.Context) Activity { return Activity{Status: status()} }}
	mux.HandleFunc("GET /v1/agent/status", a.status)
	mux.HandleFunc("GET /v1/agent/activity", a.activity)
	mux.HandleFunc("GET /healthz", healthy)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern == "" {
			writeFault(w, http.StatusServiceUnavailable, codeNotReady, status().Reason)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// healthy answers that the process works.
func healthy(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

// refuseSkills refuses requests that are part of a running call. An older client of a
// skill's makes them here; a call of its own is not what it asks for.
func refuseSkills(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(headerCall) != "" {
			writeFault(w, http.StatusForbidden, rpc.CodeInvalidRequest.String(),
				"this API is for operators and serves no nested calls: a skill's requests, with the header "+headerCall+", go to $AGENTD_URL; generate the client again that made this one")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// request handles POST /v1/request.
func (a Agent) request(w http.ResponseWriter, r *http.Request) {
	if request, ok := callapi.ReadRequest(w, r, MaxRequestBytes); ok {
		callapi.Call(r.Context(), w, r, a.Caller, request)
	}
}

// capabilities handles GET /v1/agent/capabilities. It passes the JSON on as it is.
func (a Agent) capabilities(w http.ResponseWriter, _ *http.Request) {
	if a.Capabilities == nil {
		writeFault(w, http.StatusNotFound, rpc.CodeNoCapability.String(), "this agent only calls others; it offers no capabilities")
		return
	}
	data, err := a.Capabilities()
	if err != nil {
		writeFault(w, http.StatusInternalServerError, rpc.CodeInternal.String(), err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(data, '\n'))
}

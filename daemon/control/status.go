package control

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
)

// A Status describes one running agent: the response to GET /v1/agent/status.
type Status struct {
	// Agent is its address, Fleet the name of its fleet.
	Agent envelope.Address `json:"agent"`
	Fleet string           `json:"fleet"`
	// Instance distinguishes it from its replicas on NATS; "" for an agent that is
	// not on NATS.
	Instance string `json:"instance,omitempty"`
	// Version is the version of agentd.
	Version string `json:"version"`
	// Digest covers its capabilities; "" for an agent that only calls others.
	Digest string `json:"digest,omitempty"`
	// PID is the id of its process.
	PID int `json:"pid"`
	// Started is when it began.
	Started time.Time `json:"started"`
	// Ready is whether it accepts calls, and Reason why it does not.
	Ready  bool   `json:"ready"`
	Reason string `json:"reason,omitempty"`
	// Warnings are what somebody should look at.
	Warnings []string `json:"warnings,omitempty"`
	// Conditions are what is wrong now: what lasts, oldest first, and then open circuits
	// and full queues. Those that are not advisory are in Reason as well, the others
	// among the Warnings.
	Conditions []health.Condition `json:"conditions,omitempty"`
	// Transports are the kinds of its transports.
	Transports []string `json:"transports"`
	// Requests is the number of requests answered, and Errors of those among them
	// that failed.
	Requests int `json:"requests"`
	Errors   int `json:"errors"`
	// Capabilities are those of its capabilities that have been called.
	Capabilities []CapabilityLoad `json:"capabilities,omitempty"`
	// Tools are what it may use: the capabilities of its agent.yaml, in that order.
	Tools []Tools `json:"tools,omitempty"`
	// MCP are the clients of the Model Context Protocol that it serves at present.
	MCP []MCPClient `json:"mcp,omitempty"`
	// MCPServers are the URLs where it serves such clients over HTTP.
	MCPServers []string `json:"mcpServers,omitempty"`
	// ControlClients are the clients of its control API that have calls at present, and
	// ControlServers the URLs where it serves them.
	ControlClients []MCPClient `json:"controlClients,omitempty"`
	ControlServers []string    `json:"controlServers,omitempty"`
	// Tenants are those that its agent.yaml lists; none where it has no such list.
	Tenants []TenantLoad `json:"tenants,omitempty"`
	// Dropped is the number of requests and replies that came faster than they could be
	// taken or refused.
	Dropped uint64 `json:"dropped,omitempty"`
	// DescendantsEnded is the number of processes that skills have left running when their
	// call had ended, and that agentd has ended.
	DescendantsEnded int64 `json:"descendantsEnded,omitempty"`
	// Workers are its skills that stay.
	Workers []Worker `json:"workers,omitempty"`
	// Breakers are those of the capabilities that it has called.
	Breakers []Breaker `json:"breakers,omitempty"`
	// Pending is the number of its calls that wait for a reply.
	Pending int `json:"pending,omitempty"`
	// Approvals counts its calls that wait for a person, by its role in them.
	Approvals []ApprovalsWaiting `json:"approvals,omitempty"`
	// Slow are its capabilities of whose requests too many take long.
	Slow []SlowRequests `json:"slow,omitempty"`
	// Drift is what the drift gate knows of the peers that it has called.
	Drift []DriftVerdicts `json:"drift,omitempty"`
	// Audit is how its audit log is.
	Audit *AuditStatus `json:"audit,omitempty"`
	// Brokers are its connections to brokers.
	Brokers []Broker `json:"brokers,omitempty"`
	// Monitoring is the URL where it serves probes and metrics.
	Monitoring string `json:"monitoring,omitempty"`
	// Processes are the programs of its skills, with those that have ended.
	Processes []Processes `json:"processes,omitempty"`
}

// Tools are one capability that an agent may use.
type Tools struct {
	// Key is its name in agent.yaml, and Tools the names of the tools that the agent has.
	Key   string   `json:"key"`
	Tools []string `json:"tools"`
	// Skipped says why the agent has none of them; "" where it has.
	Skipped string `json:"skipped,omitempty"`
}

// A Worker describes the processes of a skill that stays.
type Worker struct {
	// Skill is its name in agent.yaml.
	Skill string `json:"skill"`
	// Instances is how many processes there should be, and Serving how many serve. One that
	// waits for its first call has none, as has one whose instances have ended for lack of calls: it is Idle.
	Instances int  `json:"instances"`
	Serving   int  `json:"serving"`
	Idle      bool `json:"idle,omitempty"`
	// Running calls are served now, and Waiting ones wait for a process.
	Running int64 `json:"running"`
	Waiting int64 `json:"waiting"`
	// Restarts counts the processes that were replaced after a fault since the files were
	// loaded, and Recycled those that had served long enough.
	Restarts int64 `json:"restarts"`
	Recycled int64 `json:"recycled"`
	// Down says why no process serves; "" where one does, or is about to.
	Down string `json:"down,omitempty"`
}

// A TenantLoad counts what an agent has served for one tenant.
type TenantLoad struct {
	// Tenant is its name, and [envelope.NoTenant] for calls that name none.
	Tenant string `json:"tenant"`
	// Requests is the number of requests answered, and Errors of those that failed.
	Requests int `json:"requests"`
	Errors   int `json:"errors"`
}

// A PeerState is the outcome of asking a peer what it offers.
type PeerState string

// The states of a peer. Their texts are those of the reference runtime, except for
// PeerDrifted, which it does not have.
const (
	// PeerNotProbed means that the peer was not asked.
	PeerNotProbed PeerState = "not-yet-probed"
	// PeerExternal means that it was not asked, and is no member of the fleet.
	PeerExternal PeerState = "external"
	// PeerReachable means that it offers what the caller was built against, or what is
	// proven compatible with it; or that there is nothing that could differ.
	PeerReachable PeerState = "reachable"
	// PeerDrifted means that it offers something else.
	PeerDrifted PeerState = "drifted"
	// PeerUnreachable means that it did not answer.
	PeerUnreachable PeerState = "unreachable"
)

// A PeerStatus is one peer of an agent.
type PeerStatus struct {
	// Peer is its address.
	Peer envelope.Address `json:"peer"`
	// Transport and Subject are where requests to it go.
	Transport string `json:"transport"`
	Subject   string `json:"subject"`
	// External is set for a peer that is no member of the fleet.
	External bool `json:"external"`
	// State is the outcome of asking it.
	State PeerState `json:"status"`
	// LatencyMs is how long the answer took; 0 for a peer that was not asked.
	LatencyMs float64 `json:"latencyMs,omitempty"`
	// Instances is the number of its replicas, and Version the version of agentd that
	// they run, or several, separated by commas. Only NATS services report them.
	Instances int    `json:"instances,omitempty"`
	Version   string `json:"version,omitempty"`
	// Digest covers what it offers now, or for a peer that was not asked, what its
	// file offers.
	Digest string `json:"digest,omitempty"`
	// Differ are the capabilities whose contract does not agree with the one that the
	// caller was built against.
	Differ []string `json:"differ,omitempty"`
	// Drifts are what is wrong with these, a reason and, where there is one, a witness
	// for each.
	Drifts []PeerDrift `json:"drifts,omitempty"`
	// Unusable are the capabilities that it offers, and the agent's copy of its file
	// lacks.
	Unusable []string `json:"unusable,omitempty"`
	// Contracts counts its replicas by the digest of what they offer, where that
	// differs.
	Contracts map[string]int `json:"contracts,omitempty"`
	// NoContract is set for a peer that answers and publishes no contract.
	NoContract bool `json:"noContract,omitempty"`
	// Error is why it is unreachable, or what is wrong with its answer.
	Error string `json:"error,omitempty"`
	// ClockSkewMs is how far its clock is ahead of this host's; behind it, that is negative. It is 0
	// where the time of the answer explains the difference, and for peers that do not tell.
	ClockSkewMs int64 `json:"clockSkewMs,omitempty"`
}

// WrongClock reports whether the clock of the peer differs from this host's by more than what is tolerated
// and a few seconds, so that calls between them lose their deadlines.
func (s *PeerStatus) WrongClock(tolerated time.Duration) bool {
	return s.clockSkew().Abs() > wrongClock+tolerated
}

// ClockText says how the clock of the peer differs, and what that means.
func (s *PeerStatus) ClockText() string {
	where := "ahead of"
	if s.ClockSkewMs < 0 {
		where = "behind"
	}
	return fmt.Sprintf("its clock is %s %s this host's: calls between hosts with such clocks lose as much of their deadline", s.clockSkew().Abs().Round(time.Second), where)
}

func (s *PeerStatus) clockSkew() time.Duration {
	return time.Duration(s.ClockSkewMs) * time.Millisecond
}

// wrongClock is what clocks may differ without being worth a word.
const wrongClock = 5 * time.Second

// A PeerDrift is one capability of a peer to which calls are refused.
type PeerDrift struct {
	// Capability is its name.
	Capability string `json:"capability"`
	// Reason is what is wrong, in words.
	Reason string `json:"reason"`
	// Details are those of the error that a call meets: {error, side?, witness?, …}.
	Details json.RawMessage `json:"details,omitempty"`
}

// status handles GET /v1/agent/status.
func (a Agent) status(w http.ResponseWriter, _ *http.Request) {
	if a.Status == nil {
		writeFault(w, http.StatusNotFound, rpc.CodeInvalidRequest.String(), "this agent reports no status")
		return
	}
	writeJSON(w, http.StatusOK, a.Status())
}

// verifyRequest is the body of POST /v1/peers/verify.
type verifyRequest struct {
	// Peers are those to ask; none means all.
	Peers []envelope.Address `json:"peers"`
}

func (a Agent) verifyPeers(w http.ResponseWriter, r *http.Request) {
	var request verifyRequest
	if err := decodeStrict(http.MaxBytesReader(w, r.Body, maxAuditRequestBytes), &request); err != nil {
		refuseBody(w, rpc.CodeInvalidRequest.String(), "the request is not {peers?}", err)
		return
	}
	if a.VerifyPeers == nil {
		writeFault(w, http.StatusNotFound, rpc.CodeInvalidRequest.String(), "this agent asks no peers")
		return
	}
	for i, p := range request.Peers {
		request.Peers[i] = envelope.AddressFor(string(p))
	}
	writeJSON(w, http.StatusOK, a.VerifyPeers(r.Context(), request.Peers))
}

// Status returns the agent at a glance. Errors are [*NotRunningError],
// [*RefusedError], or the connection's.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var s Status
	data, err := c.do(ctx, http.MethodGet, "/v1/agent/status", nil)
	if err == nil {
		if err = json.Unmarshal(data, &s); err != nil {
			err = fmt.Errorf("control: %w", err)
		}
	}
	return s, err
}

// VerifyPeers has the agent ask its peers, or those given, what they serve now.
// Errors are those of [Client.Status].
func (c *Client) VerifyPeers(ctx context.Context, only []envelope.Address) ([]PeerStatus, error) {
	var all []PeerStatus
	err := c.post(ctx, "/v1/peers/verify", verifyRequest{Peers: only}, &all)
	return all, err
}

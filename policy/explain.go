package policy

import (
	"fmt"
	"strings"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
)

// An Explanation is how the files of a fleet decide about one call, at both ends.
type Explanation struct {
	From       envelope.Address `json:"from"`
	To         envelope.Address `json:"to"`
	Capability string           `json:"capability"`
	// Target is what the caller's rules are matched against.
	Target string `json:"target"`
	// Allowed is whether both ends allow the call, as far as is known.
	Allowed bool `json:"allowed"`
	// Caller is the decision of the calling end about the agent's own calls.
	Caller Decision `json:"caller"`
	// MCPClient is the client of the agent's face for MCP whose call it is, or "". Client is
	// then the decision about it.
	MCPClient string    `json:"mcpClient,omitempty"`
	Client    *Decision `json:"client,omitempty"`
	// ControlClient is the same for a client of the agent's control API.
	ControlClient string `json:"controlClient,omitempty"`
	// Callee is the decision of the called end, or nil when its files are not part
	// of this fleet.
	Callee *Decision `json:"callee,omitempty"`
	// Notes are other obstacles, and what is not known here.
	Notes []string `json:"notes,omitempty"`
}

// An UnknownMemberError reports that a fleet has no such agent.
type UnknownMemberError struct {
	// ID is the id that was asked for.
	ID string
	// Members are the ids of the agents that the fleet has.
	Members []string
}

func (e *UnknownMemberError) Error() string {
	return fmt.Sprintf("the fleet has no agent %q; it has %s", e.ID, strings.Join(e.Members, ", "))
}

// Explain returns how a call would be decided. from must be a member of the fleet,
// to need not be. The error is an [*UnknownMemberError], or names the place of a
// malformed pattern.
func Explain(f *fleet.Fleet, from, to envelope.Address, capability string) (*Explanation, error) {
	return ExplainFor(f, from, "", to, capability)
}

// Origin is what records and rules call the client whose call it is, or "".
func (e *Explanation) Origin() string {
	switch {
	case e.MCPClient != "":
		return OriginMCP(e.MCPClient)
	case e.ControlClient != "":
		return OriginClient(e.ControlClient)
	}
	return ""
}

// ExplainFor is [Explain] for a call that somebody else asks from for, see [OriginMCP] and
// [OriginClient]. No origin, "", stands for the agent itself.
func ExplainFor(f *fleet.Fleet, from envelope.Address, origin string, to envelope.Address, capability string) (*Explanation, error) {
	caller, ok := f.Member(from.ID())
	if !ok {
		unknown := &UnknownMemberError{ID: from.ID()}
		for _, m := range f.Members {
			unknown.Members = append(unknown.Members, m.ID)
		}
		return nil, unknown
	}
	rules, err := NewCallerRules(caller)
	if err != nil {
		return nil, err
	}
	e := &Explanation{From: from, To: to, Capability: capability, Target: Target(to, capability), Caller: rules.Decide(to, capability)}
	decision := e.Caller
	if origin != "" {
		decision = rules.DecideFor(origin, to, capability)
		e.Client, e.Target = &decision, ClientTarget(origin, to, capability)
		if !e.serves(&caller.Agent.MCP, &caller.Agent.Control, origin) {
			decision.Allowed = false
		}
	}
	e.Allowed = decision.Allowed
	if _, listed := caller.Peer(to); !listed && e.Caller.Reason != PeerNotListed {
		e.Allowed = false
		e.Notes = append(e.Notes, fmt.Sprintf("the peers file of %s does not list %s: the call ends before any permission (EAGENTRPC_NO_PEER)", from, to))
	}
	if decision.Reason == AskRule {
		e.Notes = append(e.Notes, "a person decides about each such call (agentd approvals): without a word in time it is denied")
	}
	return e, e.explainCallee(f)
}

// serves notes whose call it is, and reports whether the agent serves that client.
func (e *Explanation) serves(mcp *fleet.MCP, control *fleet.Control, origin string) bool {
	list := "mcp.clients"
	client, ok := strings.CutPrefix(origin, fleet.ClientTool)
	if ok {
		e.ControlClient, list = client, "control.clients"
		_, ok = control.Client(client)
	} else {
		client = strings.TrimPrefix(origin, fleet.MCPTool)
		e.MCPClient, ok = client, mcp.Serves(client)
	}
	if !ok {
		e.Notes = append(e.Notes, fmt.Sprintf("%s of %s does not list %q: it is not served", list, e.From, client))
	}
	return ok
}

func (e *Explanation) explainCallee(f *fleet.Fleet) error {
	callee, ok := f.Member(e.To.ID())
	switch {
	case !ok:
		e.Notes = append(e.Notes, fmt.Sprintf("%s is no member of the fleet: what it allows is not known here", e.To))
		return nil
	case callee.ClientOnly():
		e.Callee = &Decision{Reason: NoCapability}
	default:
		rules, err := NewCalleeRules(callee)
		if err != nil {
			return err
		}
		decision := rules.Decide(e.From, e.Capability)
		e.Callee = &decision
		if decision.Reason == AskRule {
			e.Notes = append(e.Notes, fmt.Sprintf("a person decides about each such call where %s runs (agentd approvals), within the caller's time", e.To))
		}
	}
	e.Allowed = e.Allowed && e.Callee.Allowed
	return nil
}

package mcpbridge

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
)

// A Client is who uses the face, as the operator names it: a host of a model, such as
// claude-code. It is a caller of its own in permissions, limits and records, where it is
// MCP:<name>.
type Client struct {
	// Name is 1 to 32 of a-z, 0-9 and -.
	Name string
}

// maxClientName bounds what stands in rules and records.
const maxClientName = 32

// String is the client as rules and records name it.
func (c Client) String() string { return "MCP:" + c.Name }

// Validate reports a name that no rule could have.
func (c Client) Validate() error {
	for _, r := range c.Name {
		if r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') {
			return fmt.Errorf("the name %.64q of an MCP client has other characters than a-z, 0-9 and -", c.Name)
		}
	}
	if len(c.Name) == 0 || len(c.Name) > maxClientName {
		return fmt.Errorf("the name %.64q of an MCP client does not have 1 to %d characters", c.Name, maxClientName)
	}
	return nil
}

// A Callable is a capability of a peer that a client may call.
type Callable struct {
	// Address is the peer's.
	Address envelope.Address
	// Capability is what a file declares of it. It must not be changed.
	Capability *capability.Capability
	// Asks is set where a permission holds the client's calls until a person has decided.
	Asks bool
}

// A Backend is the agent in whose name clients call. It is safe for concurrent use.
//
// What else it can do, it says by further interfaces: [Awaiter], [Canceller], [Mapper],
// [Recorder].
type Backend interface {
	// Callables lists what a client may call now, at once or after a person's approval.
	Callables(c Client) ([]Callable, error)
	// RequestAgent makes a whole call in the agent's name for a client: permissions,
	// limits, contracts, drift and records apply. It ends soon after ctx.
	RequestAgent(ctx context.Context, c Client, r rpc.Request) (*rpc.Result, error)
}

// An Awaiter is a [Backend] that finds the answers to asynchronous calls. Without it,
// durable calls are neither tasks nor to be awaited by their handles.
type Awaiter interface {
	// Await waits for the answer to a call that the client made in [rpc.ModeAsync], until
	// ctx ends. An error before that is the outcome of the call, but for
	// [rpc.CodeDisconnected]: then nobody can say yet.
	Await(ctx context.Context, c Client, correlationID string) (*rpc.Result, error)
}

// A Canceller is an [Awaiter] that gives up asynchronous calls. Without it, the cancellation of
// a durable call is taken, and has no effect.
type Canceller interface {
	// Cancel gives up a call that the client made in [rpc.ModeAsync]: it is ended, or does not
	// run, and Await ends with [rpc.CodeCancelled]. A call that has been answered keeps its
	// answer, which is no error. [rpc.CodeInvalidRequest] is for a call that is not known.
	Cancel(ctx context.Context, c Client, correlationID string) error
}

// A Mapper is a [Backend] that shows its fleet.
type Mapper interface {
	// FleetMap returns JSON: the agents that the client may know of, and what they are for.
	FleetMap(ctx context.Context, c Client) (json.RawMessage, error)
}

// A Recorder is a [Backend] that shows what it has recorded of a client's own calls.
type Recorder interface {
	// Records returns JSON: this agent's records of one call that the client has made. ok
	// is false where there are none, and for calls of others.
	Records(ctx context.Context, c Client, correlationID string) (records json.RawMessage, ok bool, err error)
}

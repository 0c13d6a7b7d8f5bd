package drift

import (
	"encoding/json"
	"fmt"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/schema"
)

// A SchemaDriftError says that a peer's contract and the caller's disagree, and
// shows a value on which they do.
type SchemaDriftError struct {
	// Peer is the agent that was to be called.
	Peer envelope.Address
	// Capability is the name of the function.
	Capability string
	// Side is the half of the call that has drifted; "" when the peer no longer
	// offers the capability, or offers one that is too old.
	Side rpc.Side
	// Witness is a JSON value that one end may send and the other refuses. Nil without Side.
	Witness json.RawMessage
	// Reason is the drift in words.
	Reason string
	// Built and Live are the digests of the caller's contract and the peer's.
	// Live is "" when the peer no longer offers the capability.
	Built, Live string
}

func (e *SchemaDriftError) Error() string {
	s := fmt.Sprintf("schema drift: %s %s: %s", e.Peer, e.Capability, e.Reason)
	if e.Witness != nil {
		s += fmt.Sprintf("; counterexample: %s", truncate.String(string(e.Witness), maxWitnessShown))
	}
	return s
}

// maxWitnessShown bounds what a message shows of a counterexample. The schemas
// determine it: it holds no payload.
const maxWitnessShown = 1024

// Details implements [caller.DetailedError].
func (e *SchemaDriftError) Details() json.RawMessage {
	return details(struct {
		Error   string          `json:"error"`
		Side    rpc.Side        `json:"side,omitempty"`
		Witness json.RawMessage `json:"witness,omitempty"`
		Built   string          `json:"built,omitempty"`
		Live    string          `json:"live,omitempty"`
	}{"SchemaDriftError", e.Side, e.Witness, e.Built, e.Live})
}

// An UnsupportedSchemaError says that it could not be decided whether two
// contracts agree. The gate fails closed.
type UnsupportedSchemaError struct {
	// Peer and Capability say which call it was.
	Peer envelope.Address
	// Capability is the name of the function.
	Capability string
	// Side is the half of the call that is undecided.
	Side rpc.Side
	// Reason is why; "" when the peer's schema is not in the subset at all, and
	// Err says how.
	Reason schema.Reason
	// Pointer is where the proof got stuck (RFC 6901).
	Pointer string
	// Err is why a schema did not compile, or nil.
	Err error
}

func (e *UnsupportedSchemaError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("schema drift: %s %s: the peer's %s schema is not one that agentd can check: %s", e.Peer, e.Capability, e.Side, e.Err)
	}
	return fmt.Sprintf("schema drift: %s %s: it cannot be decided whether the %s schemas agree (%s, at %q)", e.Peer, e.Capability, e.Side, e.Reason, e.Pointer)
}

// Unwrap returns Err.
func (e *UnsupportedSchemaError) Unwrap() error { return e.Err }

// Details implements [caller.DetailedError].
func (e *UnsupportedSchemaError) Details() json.RawMessage {
	return details(struct {
		Error   string        `json:"error"`
		Side    rpc.Side      `json:"side"`
		Reason  schema.Reason `json:"reason,omitempty"`
		Pointer string        `json:"pointer"`
	}{"UnsupportedSchemaError", e.Side, e.Reason, e.Pointer})
}

// A CapabilitiesContractError says that a peer's answer to the question what it
// offers is malformed, or of a newer major version.
type CapabilitiesContractError struct {
	// Peer is the agent that answered.
	Peer envelope.Address
	// Err is what is wrong with the answer.
	Err error
}

func (e *CapabilitiesContractError) Error() string {
	return fmt.Sprintf("schema drift: %s: %s", e.Peer, e.Err)
}

// Unwrap returns Err.
func (e *CapabilitiesContractError) Unwrap() error { return e.Err }

// Details implements [caller.DetailedError].
func (e *CapabilitiesContractError) Details() json.RawMessage {
	return details(struct {
		Error string `json:"error"`
	}{"CapabilitiesContractError"})
}

func details(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		return nil // a witness that is not JSON; the error's text has the rest
	}
	return data
}

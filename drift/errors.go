package drift

import (
	"encoding/json"
	"fmt"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/schema/contain"
)

// A SchemaDriftError reports that the contracts of the caller and of a peer
// disagree, with a value on which they do.
type SchemaDriftError struct {
	// Peer is the agent that was to be called.
	Peer envelope.Address
	// Capability is the name of the function.
	Capability string
	// Side is the half of the call that has drifted. It is "" when the peer no
	// longer offers the capability, or offers a version that is too old.
	Side rpc.Side
	// Witness is a JSON value that one end may send and the other rejects; nil
	// without a Side. It is derived from the schemas and contains no payload.
	Witness json.RawMessage
	// Reason is the drift in words.
	Reason string
	// Built and Live are the digests of the contract that the caller was built
	// against and of the one that the peer serves. Live is "" when the peer no
	// longer offers the capability.
	Built, Live string
}

func (e *SchemaDriftError) Error() string {
	s := fmt.Sprintf("schema drift: %s %s: %s", e.Peer, e.Capability, e.Reason)
	if e.Witness != nil {
		s += fmt.Sprintf("; counterexample: %s", truncate.String(string(e.Witness), maxWitnessShown))
	}
	return s
}

// maxWitnessShown bounds the part of a counterexample that an error message shows.
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

// An UnsupportedCloudToolSchema reports that it cannot be decided whether two contracts
// agree. The gate fails closed: such a call is refused.
//
//nolint:errname // the specification's name
type UnsupportedCloudToolSchema struct {
	// Peer is the agent that was to be called.
	Peer envelope.Address
	// Capability is the name of the function.
	Capability string
	// Side is the half of the call that is undecided.
	Side rpc.Side
	// Reason is why the proof stopped. It is "" when the peer's schema did not
	// compile; Err is the reason then.
	Reason contain.Reason
	// Pointer is where in the schema the proof stopped (RFC 6901).
	Pointer string
	// Err is why the peer's schema did not compile, or nil.
	Err error
}

func (e *UnsupportedCloudToolSchema) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("schema drift: %s %s: the peer's %s schema is not one that agentd can check: %s", e.Peer, e.Capability, e.Side, e.Err)
	}
	return fmt.Sprintf("schema drift: %s %s: it cannot be decided whether the %s schemas agree (%s, at %q)", e.Peer, e.Capability, e.Side, e.Reason, e.Pointer)
}

// Unwrap returns Err.
func (e *UnsupportedCloudToolSchema) Unwrap() error { return e.Err }

// Details implements [caller.DetailedError].
func (e *UnsupportedCloudToolSchema) Details() json.RawMessage {
	return details(struct {
		Error   string         `json:"error"`
		Side    rpc.Side       `json:"side"`
		Reason  contain.Reason `json:"reason,omitempty"`
		Pointer string         `json:"pointer"`
	}{"UnsupportedCloudToolSchema", e.Side, e.Reason, e.Pointer})
}

// A CapabilitiesContractError reports that a peer described its capabilities, or one
// of them, in a malformed way, or in a newer major version of the format.
type CapabilitiesContractError struct {
	// Peer is the agent that answered.
	Peer envelope.Address
	// Capability is the one that is described in a malformed way; "" for the whole
	// answer.
	Capability string
	// Err is what is wrong with the answer.
	Err error
}

func (e *CapabilitiesContractError) Error() string {
	if e.Capability != "" {
		return fmt.Sprintf("schema drift: %s %s: %s", e.Peer, e.Capability, e.Err)
	}
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
		return nil // a witness that is not JSON; the error's text describes the drift
	}
	return data
}

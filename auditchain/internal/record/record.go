package record

import "encoding/json"

const (
	// DefaultTenant is the tenant of a record that does not name one.
	DefaultTenant = "default"
	// MaxBodyBytes bounds a record's body in its canonical form.
	MaxBodyBytes = 1 << 20
	// MaxColumnBytes bounds the tenant and each searchable column, each of which
	// is stored once more in an index.
	MaxColumnBytes = 1024
)

// A Side is the direction of the payload that a record is about.
type Side string

// The sides of a call.
const (
	SideRequest  Side = "request"
	SideResponse Side = "response"
)

// A Record is what a caller appends. The log adds sequence number, time and
// hashes.
type Record struct {
	// Kind is required, and must not be reserved for the log itself (see
	// [Kind.Reserved]).
	Kind Kind
	// Tenant defaults to [DefaultTenant].
	Tenant string
	// Body is a JSON object (I-JSON, RFC 7493), stored in canonical form
	// (RFC 8785). It must not have members kind, ts or tenantId, which are
	// columns of their own. An empty Body stands for {}.
	Body json.RawMessage

	// The searchable columns. An empty one is copied from the body's member
	// peerId, capabilityName, side, correlationId or sessionId, if that member
	// is a string of at most [MaxColumnBytes].

	// Peer is the other agent's address.
	Peer string
	// Capability is the name of the capability.
	Capability string
	// Side is the direction of the payload.
	Side Side
	// Correlation is the correlation id of the call.
	Correlation string
	// Session is the session that caused the call.
	Session string
}

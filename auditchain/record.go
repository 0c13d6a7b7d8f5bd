package auditchain

import (
	"context"

	"github.com/agentd/agentd/auditchain/internal/record"
)

// The model of a log. The types are defined in a package below the ones that
// store, query and verify records, and named here for callers.
type (
	// A Record is what a caller appends. The log adds sequence number, time and
	// hashes.
	Record = record.Record
	// An Entry is a record as the log stores it, with its number, time and hash.
	// Its JSON form is the shape that its kind documents.
	Entry = record.Entry
	// A Kind is what a record is about. The set is closed.
	Kind = record.Kind
	// A Side is the direction of the payload that a record is about.
	Side = record.Side
	// A SchemaViolation is the record of one envelope whose payload broke its
	// schema.
	SchemaViolation = record.SchemaViolation
	// A Violation is one way in which a payload broke its schema. It carries no
	// value of the payload.
	Violation = record.Violation
	// A PayloadCapture is the payload of an envelope that broke its schema, for
	// operators who ask for it.
	PayloadCapture = record.PayloadCapture
	// An Actor is who changed something that the log protects.
	Actor = record.Actor
)

// The kinds of records.
const (
	// KindSchemaViolation is an envelope whose payload broke its schema; see
	// [SchemaViolation].
	KindSchemaViolation = record.KindSchemaViolation
	// KindPayloadCapture is the payload of such an envelope; see
	// [PayloadCapture].
	KindPayloadCapture = record.KindPayloadCapture
	// KindRPCCall is one call, at either end: outcome, latency, trace id.
	KindRPCCall = record.KindRPCCall
	// KindAuthCheck is the verdict on one envelope's authentication.
	KindAuthCheck = record.KindAuthCheck
	// KindPermissionDenied is a call that the permissions rejected.
	KindPermissionDenied = record.KindPermissionDenied
	// KindApproval is a person's decision about a call, or the lack of one.
	KindApproval = record.KindApproval
	// KindRateLimited is a call that a rate limit rejected.
	KindRateLimited = record.KindRateLimited
	// KindValidationExceeded is a payload that takes more work to check than it may.
	KindValidationExceeded = record.KindValidationExceeded
	// KindSchemaDrift is a peer whose live schema is no longer compatible.
	KindSchemaDrift = record.KindSchemaDrift
	// KindToolCall is one call of a tool by what runs in the agent: outcome, latency, and
	// a digest of the arguments.
	KindToolCall = record.KindToolCall
	// KindLifecycle is a start, a stop, or an event of the log itself.
	KindLifecycle = record.KindLifecycle
	// KindRedaction authorises erased bodies. Only [Log.Redact] writes it.
	KindRedaction = record.KindRedaction
	// KindPrune authorises removed records. Only [Log.Prune] writes it.
	KindPrune = record.KindPrune
	// KindCheckpoint is a change of the signing key. Only [Log.RotateKey] and a
	// replaced key write it.
	KindCheckpoint = record.KindCheckpoint
)

// The sides of a call.
const (
	SideRequest  = record.SideRequest
	SideResponse = record.SideResponse
)

// Limits and defaults of a record.
const (
	// DefaultTenant is the tenant of a record that does not name one.
	DefaultTenant = record.DefaultTenant
	// MaxBodyBytes bounds a record's body in its canonical form.
	MaxBodyBytes = record.MaxBodyBytes
	// MaxColumnBytes bounds the tenant and each searchable column.
	MaxColumnBytes = record.MaxColumnBytes
)

// Kinds returns every kind, in the order of the constants.
func Kinds() []Kind { return record.Kinds() }

// WithActor returns a context in which redactions, prunings, changes of keys and
// quarantines are recorded as those of whom who returns. Without it they are recorded as
// this process's own. who is called for each change, maybe by several goroutines.
func WithActor(ctx context.Context, who func() Actor) context.Context {
	return record.WithActor(ctx, who)
}

// ActorOf returns who makes the changes of a context: whom [WithActor] has named, or this
// process.
func ActorOf(ctx context.Context) *Actor { return record.ActorOf(ctx) }

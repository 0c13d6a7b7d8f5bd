package once

import (
	"context"
	"errors"
	"fmt"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// The causes of an [Error].
const (
	// CauseAway is a server that cannot be reached, or does not answer.
	CauseAway = "unreachable"
	// CauseMissing is a bucket that is not there, or that this agent may not use.
	CauseMissing = "missing"
	// CauseFull is a server, an account or a bucket without room.
	CauseFull = "disk-full"
	// CauseSettings is a bucket that forgets too early.
	CauseSettings = "settings"
	// CauseOther is any other refusal of the server.
	CauseOther = "io"
)

// An Error is a failure of a bucket.
type Error struct {
	// Bucket is its name.
	Bucket string
	// Cause is one of the causes, or "" where the bucket works: the call's context has
	// ended, or the failure concerns one entry.
	Cause string
	// Doing is what failed.
	Doing string
	// Err is why.
	Err error
}

func (e *Error) Error() string { return fmt.Sprintf("bucket %s: %s: %v", e.Bucket, e.Doing, e.Err) }

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Error codes of JetStream without a constant in the client.
const (
	codeNoMemory      = 10023 // insufficient resources
	codeNoRoom        = 10047 // insufficient storage resources available
	codeStoreFailed   = 10077 // the message could not be stored, for one because of a limit
	codeAccountLimits = 10002 // resource limits exceeded for account
)

// causeOf returns why an operation failed that was to end with ctx at the latest.
func causeOf(ctx context.Context, err error) string {
	if ctx.Err() != nil { // the caller's time is up, which says nothing of the bucket
		return ""
	}
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		switch api.ErrorCode {
		case codeNoMemory, codeNoRoom, codeStoreFailed, codeAccountLimits:
			return CauseFull
		case jetstream.JSErrCodeStreamNotFound, jetstream.JSErrCodeJetStreamNotEnabledForAccount, jetstream.JSErrCodeJetStreamNotEnabled:
			return CauseMissing
		}
		return CauseOther
	}
	switch {
	case errors.Is(err, errForgetsEarly):
		return CauseSettings
	case errors.Is(err, jetstream.ErrBucketNotFound), errors.Is(err, natsgo.ErrPermissionViolation):
		return CauseMissing
	case errors.Is(err, jetstream.ErrNoStreamResponse), errors.Is(err, natsgo.ErrNoResponders),
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, natsgo.ErrTimeout),
		errors.Is(err, natsgo.ErrConnectionClosed), errors.Is(err, natsgo.ErrDisconnected), errors.Is(err, natsgo.ErrReconnectBufExceeded):
		return CauseAway
	}
	return CauseOther
}

// isConflict reports whether an entry is no longer, or not, as it was expected.
func isConflict(err error) bool {
	return errors.Is(err, jetstream.ErrKeyExists) || errors.Is(err, jetstream.ErrKeyRevisionMismatch)
}

// isAnswered reports whether an error is the server's own: what was asked for has not
// happened. After another error, it may have.
func isAnswered(err error) bool {
	_, ok := errors.AsType[*jetstream.APIError](err)
	return ok
}

package approval

import (
	"errors"
	"fmt"
)

// A Reason is why a signed decision does not count. The set is closed.
type Reason uint8

// The reasons.
const (
	// Unsigned: there is no signature, and there must be one.
	Unsigned Reason = iota + 1
	// MalformedStatement: the statement is not one in its canonical form.
	MalformedStatement
	// MalformedSignature: the signature is not an armored SSH signature.
	MalformedSignature
	// WrongNamespace: it was made for another purpose.
	WrongNamespace
	// UnusableKey: the key, or the way in which it signed, is too weak or of no kind
	// that is accepted.
	UnusableKey
	// UnknownSigner: the key is no approver's, or no longer.
	UnknownSigner
	// BadSignature: it is not that key's signature of the statement.
	BadSignature
	// OtherCall: the statement is about another call or wait than the one it is for.
	OtherCall
	// Expired: its time is over.
	Expired
)

// String returns the reason as records have it.
func (r Reason) String() string {
	//exhaustive:enforce
	switch r {
	case Unsigned:
		return "unsigned"
	case MalformedStatement:
		return "malformed-statement"
	case MalformedSignature:
		return "malformed-signature"
	case WrongNamespace:
		return "wrong-namespace"
	case UnusableKey:
		return "unusable-key"
	case UnknownSigner:
		return "unknown-signer"
	case BadSignature:
		return "bad-signature"
	case OtherCall:
		return "other-call"
	case Expired:
		return "expired"
	}
	return fmt.Sprintf("reason(%d)", uint8(r))
}

// MarshalText returns what String does.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// An Error is why a signed decision, or a key, is refused.
type Error struct {
	Reason Reason
	// Detail is a sentence without its full stop.
	Detail string
	// Err is what another package found, or nil.
	Err error
}

func (e *Error) Error() string {
	if e.Err != nil {
		return e.Detail + ": " + e.Err.Error()
	}
	return e.Detail
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// ReasonOf returns the reason of an [*Error], or 0.
func ReasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return 0
}

func refuse(r Reason, err error, format string, args ...any) *Error {
	return &Error{Reason: r, Detail: fmt.Sprintf(format, args...), Err: err}
}

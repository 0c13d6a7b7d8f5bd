package typed

import (
	"encoding/json"
	"errors"
	"strings"
)

// A ValueError describes why a value does not fit a generated type.
type ValueError struct {
	// Path is an RFC 6901 pointer to the value; "" is the root.
	Path string
	// Message is what is wrong. It holds no part of the value but, for a
	// surplus member, its name.
	Message string
}

func (e *ValueError) Error() string {
	if e.Path == "" {
		return "typed: " + e.Message
	}
	return "typed: " + e.Path + ": " + e.Message
}

// fault makes an error about the value at hand.
func fault(message string) error { return &ValueError{Message: message} }

// invalid makes the error for what is not JSON. Its text, of package ijson,
// says where and why, and repeats nothing of the value.
func invalid(err error) error { return fault(err.Error()) }

// at puts the member or element name in front of an error's path. Errors gain
// their path as they return from inner values to outer ones.
func at(name string, err error) error {
	var e *ValueError
	if !errors.As(err, &e) {
		return err
	}
	step := "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	return &ValueError{Path: step + e.Path, Message: e.Message}
}

// An Optional is a member that may be absent, null or a value: null is a nil
// pointer in Value. Members that cannot be null are plain pointers, nil where
// absent.
type Optional[T any] struct {
	// Set reports whether the member is present.
	Set bool
	// Value is meaningful only if Set is true.
	Value T
}

// Some returns an Optional that is present.
func Some[T any](value T) Optional[T] { return Optional[T]{Set: true, Value: value} }

// target and value are how the codec reaches into an Optional without knowing T.
func (o *Optional[T]) target() any       { o.Set = true; return &o.Value }
func (o Optional[T]) value() (any, bool) { return o.Value, o.Set }

// Ptr returns a pointer to v, for optional members and parts of unions.
func Ptr[T any](v T) *T { return &v }

// Null is the type of the value null.
type Null struct{}

// MarshalJSON writes null.
func (Null) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// UnmarshalJSON accepts null.
func (*Null) UnmarshalJSON(data []byte) error {
	if string(data) != "null" {
		return fault("must be null")
	}
	return nil
}

// Never is the type of a schema that accepts no value.
type Never struct{}

// MarshalJSON fails.
func (Never) MarshalJSON() ([]byte, error) { return nil, fault("no value is allowed here") }

// UnmarshalJSON fails.
func (*Never) UnmarshalJSON([]byte) error { return fault("no value is allowed here") }

var (
	_ json.Marshaler   = Null{}
	_ json.Unmarshaler = (*Null)(nil)
	_ json.Marshaler   = Never{}
	_ json.Unmarshaler = (*Never)(nil)
)

package envelope

import (
	"fmt"
	"strings"
)

// MaxIDBytes bounds the id part of an [Address].
const MaxIDBytes = 128

const addressScheme = "agent://"

// An Address names one agent of a fleet: agent://<id>, where id matches
// ^[a-z0-9][a-z0-9_.-]*$, holds no "..", and is at most [MaxIDBytes] long.
//
// The grammar is deliberately narrow: ids become file names, topics and
// permission targets, where a newline, a slash or ".." could do harm.
type Address string

// ParseAddress checks s against the grammar of [Address]. The error is an
// [*AddressError] that names the rule s breaks.
func ParseAddress(s string) (Address, error) {
	id, ok := strings.CutPrefix(s, addressScheme)
	if !ok {
		return "", &AddressError{Input: s, Reason: "agent must be `agent://<id>`"}
	}
	if reason := idFault(id); reason != "" {
		return "", &AddressError{Input: s[:min(len(s), MaxIDBytes)], Reason: reason}
	}
	return Address(s), nil
}

// AddressOf returns the address of the agent with an id that has been checked.
func AddressOf(id string) Address { return Address(addressScheme + id) }

// AddressFor returns the address that people mean by an agent's address or by its
// id alone. It checks neither.
func AddressFor(agent string) Address {
	if agent == "" || strings.Contains(agent, "://") {
		return Address(agent)
	}
	return AddressOf(agent)
}

// ID returns the part after agent://.
func (a Address) ID() string { return strings.TrimPrefix(string(a), addressScheme) }

// CheckID checks an agent id, the part of an [Address] after agent://.
// A non-nil error is an [*AddressError].
func CheckID(id string) error {
	if reason := idFault(id); reason != "" {
		return &AddressError{Input: id[:min(len(id), MaxIDBytes)], Reason: reason}
	}
	return nil
}

// validID reports whether [idFault] finds none. It looks at each byte once.
func validID(id string) bool {
	if id == "" || len(id) > MaxIDBytes || !isIDStart(id[0]) {
		return false
	}
	// Bits of the characters that an id may hold: those below 64, and the others.
	const (
		low  = 1<<'-' | 1<<'.' | (1<<10-1)<<'0'
		high = 1<<('_'-64) | (1<<26-1)<<('a'-64)
	)
	before := byte(0)
	for i := range len(id) {
		c := id[i]
		bits := uint64(low)
		if c >= 64 {
			bits = high
		}
		if c >= 128 || bits>>(c&63)&1 == 0 || c == '.' && before == '.' {
			return false
		}
		before = c
	}
	return true
}

// idFault returns the rule that id breaks, in words, or "".
func idFault(id string) string {
	switch {
	case id == "":
		return "the agent id is empty"
	case len(id) > MaxIDBytes:
		return fmt.Sprintf("the agent id is longer than %d bytes", MaxIDBytes)
	case strings.Contains(id, ".."):
		return "the agent id contains `..`"
	case !isIDStart(id[0]):
		return "the agent id must start with a lower-case letter or a digit"
	}
	for i := 1; i < len(id); i++ {
		if c := id[i]; !isIDStart(c) && c != '_' && c != '.' && c != '-' {
			return fmt.Sprintf("the agent id may hold a-z 0-9 _ . - only, not %q", rune(c))
		}
	}
	return ""
}

func isIDStart(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }

// An AddressError reports a string that is not an agent address or id.
type AddressError struct {
	// Input is the rejected text, cut to [MaxIDBytes].
	Input string
	// Reason is the rule that Input breaks, in words.
	Reason string
}

func (e *AddressError) Error() string { return fmt.Sprintf("%q: %s", e.Input, e.Reason) }

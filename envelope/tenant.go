package envelope

import (
	"fmt"
	"strings"
)

const (
	// MaxTenantBytes bounds the name of a tenant.
	MaxTenantBytes = 64
	// NoTenant stands, in lists and in the audit log, for calls that name no tenant. No
	// call may name it: the two could not be told apart afterwards.
	NoTenant = "default"
)

// CheckTenant checks the name of a tenant that a call may have:
// ^[a-z0-9_][a-z0-9._-]{0,63}$, without "..", and not [NoTenant].
//
// The grammar is narrow for the reason of [Address]: names become keys and columns. It
// has no capitals, so that no two names differ in their case alone.
func CheckTenant(name string) error {
	switch {
	case name == NoTenant:
		return &TenantError{Input: name, Reason: "it stands for calls that name no tenant: leave the tenant out"}
	case name == "":
		return &TenantError{Reason: "it must not be empty"}
	case len(name) > MaxTenantBytes:
		return &TenantError{Input: name[:MaxTenantBytes], Reason: fmt.Sprintf("it has %d bytes, more than %d", len(name), MaxTenantBytes)}
	case strings.Contains(name, ".."):
		return &TenantError{Input: name, Reason: `it must not contain ".."`}
	}
	for i := range len(name) {
		c := name[i]
		letter := 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_'
		if !letter && (i == 0 || c != '.' && c != '-') {
			return &TenantError{Input: name, Reason: "it must have small letters, digits, `_`, `.` and `-` only, and begin with neither of the last two"}
		}
	}
	return nil
}

// A TenantError says which rule the name of a tenant breaks.
type TenantError struct {
	// Input is the name, or its beginning.
	Input string
	// Reason is the broken rule.
	Reason string
}

func (e *TenantError) Error() string {
	return fmt.Sprintf("%q is no name of a tenant: %s", e.Input, e.Reason)
}

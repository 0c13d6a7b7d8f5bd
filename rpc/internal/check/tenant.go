package check

import (
	"unicode/utf8"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
)

// Tenant refuses a tenant that no call may name; "" is a call without one.
func Tenant(name string) *rpc.Error {
	if name == "" {
		return nil
	}
	if err := envelope.CheckTenant(name); err != nil {
		return rpc.NewError(rpc.CodeInvalidRequest, err, "tenantId: %s", err)
	}
	return nil
}

// RecordedTenant returns name, or "" where no call may name it.
func RecordedTenant(name string) string {
	if name == "" || envelope.CheckTenant(name) != nil {
		return ""
	}
	return name
}

// MaxSessionBytes bounds the id of a session.
const MaxSessionBytes = 1024

// ValidSession reports whether a session's id can be a column of a record, by which
// an erasure finds all records of a session.
func ValidSession(id string) bool {
	for i := range len(id) {
		if id[i] < 0x20 || id[i] == 0x7f {
			return false
		}
	}
	return len(id) <= MaxSessionBytes && utf8.ValidString(id)
}

// RecordedSession returns id, or "" where no column could hold it.
func RecordedSession(id string) string {
	if !ValidSession(id) {
		return ""
	}
	return id
}

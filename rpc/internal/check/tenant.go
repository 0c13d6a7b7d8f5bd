package check

import (
	"unicode/utf8"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/wire"
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

// MaxIDBytes bounds the id of a session and of a call.
const MaxIDBytes = 1024

// ValidID reports whether the id of a session or a call can be a column of a record, by
// which a search or an erasure finds all records of it.
func ValidID(id string) bool {
	for i := range len(id) {
		if id[i] < 0x20 || id[i] == 0x7f {
			return false
		}
	}
	return len(id) <= MaxIDBytes && utf8.ValidString(id)
}

// RecordedCorrelation returns the id of a call, or its beginning where no column could
// hold it.
func RecordedCorrelation(id string) string {
	if !ValidID(id) {
		return truncate.String(id, wire.MaxName)
	}
	return id
}

// RecordedSession returns id, or "" where no column could hold it.
func RecordedSession(id string) string {
	if !ValidID(id) {
		return ""
	}
	return id
}

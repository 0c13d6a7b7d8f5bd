package check

import "unicode/utf8"

// MaxTenantBytes bounds a tenant's name.
const MaxTenantBytes = 1024

// ValidTenant reports whether a tenant's name can be part of a record. The callee
// refuses the requests of others: serving them would leave no record under their
// tenant.
func ValidTenant(name string) bool {
	for i := range len(name) {
		if name[i] < 0x20 || name[i] == 0x7f {
			return false
		}
	}
	return len(name) <= MaxTenantBytes
}

// RecordedTenant returns name, or "" where it cannot be part of a record.
func RecordedTenant(name string) string {
	if !ValidTenant(name) {
		return ""
	}
	return name
}

// ValidSession reports whether a session's id can be a column of a record, by which
// an erasure finds all records of a session.
func ValidSession(id string) bool { return ValidTenant(id) && utf8.ValidString(id) }

// RecordedSession returns id, or "" where no column could hold it.
func RecordedSession(id string) string {
	if !ValidSession(id) {
		return ""
	}
	return id
}

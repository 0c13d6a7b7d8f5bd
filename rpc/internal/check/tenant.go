package check

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

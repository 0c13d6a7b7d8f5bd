package capability

import (
	"slices"
	"strconv"
	"strings"
)

// A SchemaVersion is the release that introduced a contract, as `since` and
// `minSchemaVersion` name it: up to four numbers, compared one by one. A missing
// number is 0.
type SchemaVersion [4]uint32

// ParseSchemaVersion reads a version such as 1.2.0 or v1.2. ok is false for anything
// else.
func ParseSchemaVersion(s string) (v SchemaVersion, ok bool) {
	parts := strings.Split(strings.TrimPrefix(s, "v"), ".")
	if len(parts) > len(v) {
		return v, false
	}
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 32)
		if err != nil {
			return v, false
		}
		v[i] = uint32(n)
	}
	return v, true
}

// Before reports whether v is older than w.
func (v SchemaVersion) Before(w SchemaVersion) bool { return slices.Compare(v[:], w[:]) < 0 }

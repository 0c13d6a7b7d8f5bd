package drift

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/rpc/caller"
)

// checkVersion checks the caller's minSchemaVersion: the since of the peer's
// capability must not be lower. A capability without since counts as older than
// any version.
func checkVersion(p caller.Probe, live capability.ToolSchema) error {
	least := p.Peer.MinSchemaVersion
	if least == "" {
		return nil
	}
	reason := ""
	switch older, ok := olderThan(live.Since, least); {
	case live.Since == "":
		reason = fmt.Sprintf("the caller asks for schema version %s or later, and the peer does not say which it has (`since`)", least)
	case !ok:
		reason = fmt.Sprintf("the caller asks for schema version %s or later, and %q cannot be compared with it", least, live.Since)
	case older:
		reason = fmt.Sprintf("the caller asks for schema version %s or later, and the peer has %s", least, live.Since)
	default:
		return nil
	}
	return &SchemaDriftError{
		Peer: p.Peer.Address, Capability: p.Capability.Name, Reason: reason,
		Built: p.Capability.Digest, Live: live.Digest,
	}
}

// olderThan reports whether version a comes before b. Versions have up to four
// numbers, such as 1.2.0 or v1.2, and missing numbers are 0. ok is false for
// anything else.
func olderThan(a, b string) (older, ok bool) {
	x, okX := parseVersion(a)
	y, okY := parseVersion(b)
	return slices.Compare(x[:], y[:]) < 0, okX && okY
}

func parseVersion(s string) (v [4]uint32, ok bool) {
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

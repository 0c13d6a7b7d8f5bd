package drift

import (
	"fmt"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/rpc/caller"
)

// checkVersion checks the caller's minSchemaVersion: the since of the peer's
// capability must not be lower. A capability without since counts as older than
// any version.
func checkVersion(p caller.Probe, live capability.ToolSchema, digest string) error {
	least := p.Peer.MinSchemaVersion
	if least == "" {
		return nil
	}
	reason := ""
	asked, okAsked := capability.ParseSchemaVersion(least)
	since, okSince := capability.ParseSchemaVersion(live.Since)
	switch {
	case live.Since == "":
		reason = fmt.Sprintf("the caller asks for schema version %s or later, and the peer does not say which it has (`since`)", least)
	case !okAsked || !okSince:
		reason = fmt.Sprintf("the caller asks for schema version %s or later, and %q cannot be compared with it", least, live.Since)
	case since.Before(asked):
		reason = fmt.Sprintf("the caller asks for schema version %s or later, and the peer has %s", least, live.Since)
	default:
		return nil
	}
	return &SchemaDriftError{
		Peer: p.Peer.Address, Capability: p.Capability.Name, Reason: reason,
		Built: p.Capability.Digest, Live: digest,
	}
}

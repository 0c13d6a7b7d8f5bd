package mcpbridge

// The names of the bridge's own tools, which no peer's capability can have in full: those
// have two underscores.
const (
	requestAgentTool = "request_agent"
	awaitTool        = "await_call"
)

// ownTools are the tools that are no peer's.
func (b *Bridge) ownTools(*face) []offered { return nil }

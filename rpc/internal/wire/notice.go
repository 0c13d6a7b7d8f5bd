package wire

import (
	"encoding/json"
	"fmt"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/ijson"
)

// A Notice announces to callers that an agent serves another contract now. It goes to
// everybody who may call the agent, so it proves nothing: keys are between two agents.
// Whoever hears it asks the agent itself.
type Notice struct {
	// Agent is the one that has changed.
	Agent envelope.Address `json:"agent"`
	// Revision is that of the published form that it serves now.
	Revision string `json:"revision"`
}

// maxNotice bounds a notice, which anybody on the broker may send.
const maxNotice = 1024

// ParseNotice reads a notice.
func ParseNotice(data []byte) (n Notice, err error) {
	if len(data) > maxNotice {
		return n, fmt.Errorf("a notice of %d bytes", len(data))
	}
	if err := ijson.Check(data, MaxDepth); err != nil {
		return n, err
	}
	if err := json.Unmarshal(data, &n); err != nil {
		return n, fmt.Errorf("not a notice: %w", err)
	}
	_, err = envelope.ParseAddress(string(n.Agent))
	return n, err
}

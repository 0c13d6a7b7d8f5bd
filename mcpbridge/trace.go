package mcpbridge

import (
	"crypto/rand"
	"encoding/hex"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/rpc"
)

// metaTraceparent is the key of the W3C trace context in metadata, as the protocol
// reserves it.
const metaTraceparent = "traceparent"

// continued is the trace context of a call: that of the request goes on with a span of
// its own, and without a valid one a trace begins. The result names it, so that a client
// finds its call in the traces of the agents.
func continued(meta mcp.Meta) string {
	var b [24]byte
	_, _ = rand.Read(b[:]) // which cannot fail
	b[0] |= 1              // neither id may be all zeros
	b[16] |= 1
	id, flags := hex.EncodeToString(b[:16]), "01"
	if parent, _ := meta[metaTraceparent].(string); len(parent) >= len("00-")+32+1+16+len("-01") {
		if known := rpc.TraceID(parent); known != "" {
			id, flags = known, parent[53:55]
		}
	}
	return "00-" + id + "-" + hex.EncodeToString(b[16:]) + "-" + flags
}

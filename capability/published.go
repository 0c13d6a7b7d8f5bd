package capability

import (
	"encoding/json"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/jcs"
)

// PublishedVersion is the version of the published form that this package
// writes. It can read every version with the same major number.
const PublishedVersion = "1.0"

// Published is the form in which an agent publishes its capabilities to
// callers. Its JSON is part of the wire format.
type Published struct {
	// Version is "major.minor". A newer minor only adds keys.
	Version string `json:"capabilities_version"`
	// Agent is the agent that offers the capabilities.
	Agent envelope.Address `json:"agent"`
	// Digest is that of the document; see [Document.Digest].
	Digest string `json:"digest"`
	// ToolSchemas is keyed by capability name.
	ToolSchemas map[string]ToolSchema `json:"tool_schemas"`
	// Revision covers the whole form, words and versions included: it changes with
	// every change that a caller could see. [ParsePublished] and [Published.JSON] set
	// it.
	Revision string `json:"-"`
}

// A ToolSchema is one published capability.
type ToolSchema struct {
	// InputSchema and OutputSchema are nil for loose JSON.
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	// Digest is that of the capability; see [Capability.Digest].
	Digest      string `json:"digest"`
	Description string `json:"description,omitempty"`
	Since       string `json:"since,omitempty"`
	// Idempotent allows callers to retry.
	Idempotent bool `json:"idempotent,omitempty"`
	// Progress reports that the skill may publish progress.
	Progress bool `json:"progress,omitempty"`
	// TimeoutMs is 0 if the capability leaves the timeout to its caller.
	TimeoutMs int64 `json:"timeoutMs,omitempty"`
	// ID, Version and Category are the owner's; "" if not given.
	ID       string `json:"id,omitempty"`
	Version  string `json:"version,omitempty"`
	Category string `json:"category,omitempty"`
	// Permissions are what the skill needs, such as network:read.
	Permissions []string `json:"permissions,omitempty"`
	// SchemaProfile says by which rules both schemas are read.
	SchemaProfile SchemaProfile `json:"schemaProfile,omitempty"`
	// Result is what responses look like to a client of the Model Context Protocol.
	Result ResultForm `json:"result,omitempty"`
	// Asks is what the capability may ask such a client for. The schemas have it, too.
	Asks []Ask `json:"asks,omitempty"`
	// Fault is why this entry cannot be used, for one that was read from a peer. The
	// other fields are then unset. One odd entry says nothing about the others.
	Fault error `json:"-"`
}

// A PublishedError reports why a published form cannot be used.
type PublishedError struct {
	// NewerMajor reports a version with a greater major number, as a later,
	// incompatible release would write it.
	NewerMajor bool
	// Absent reports an object with neither of the form's keys: the peer publishes no
	// capabilities, perhaps because it is older than the form.
	Absent bool
	// Reason describes the fault in words, for people.
	Reason string
}

func (e *PublishedError) Error() string { return "published capabilities: " + e.Reason }

// Published returns the document as its callers may see it: what they need to
// call, and nothing about how the agent works inside.
func (d *Document) Published() *Published {
	p := &Published{Version: PublishedVersion, Agent: d.Agent, Digest: d.digest, ToolSchemas: make(map[string]ToolSchema, len(d.Capabilities))}
	for _, c := range d.Capabilities {
		t := ToolSchema{
			Digest: c.Digest, Description: c.Description, Since: c.Since,
			Idempotent: c.Idempotent, Progress: c.Progress, TimeoutMs: c.Timeout.Milliseconds(),
			ID: c.ID, Version: c.Version, Category: c.Category, Permissions: c.Permissions,
			SchemaProfile: c.SchemaProfile, Result: c.Result, Asks: c.Asks,
		}
		if c.Input != nil {
			t.InputSchema = c.Input.Source
		}
		if c.Output != nil {
			t.OutputSchema = c.Output.Source
		}
		p.ToolSchemas[c.Name] = t
	}
	return p
}

// JSON returns the canonical form (RFC 8785): equal documents give equal
// bytes.
func (p *Published) JSON() ([]byte, error) {
	out, err := jcs.Marshal(p)
	if err == nil {
		p.Revision = sum(out)
	}
	return out, err
}

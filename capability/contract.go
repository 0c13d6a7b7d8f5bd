package capability

import (
	"github.com/agentd/agentd/internal/strictyaml"
	"github.com/agentd/agentd/schema"
)

// A Contract is one side of a capability: a schema, and what checks it.
type Contract struct {
	// Validator checks payloads. Nil if the document was loaded for inspection.
	Validator Validator
	// Schema is the compiled schema. Nil if the document was loaded for inspection.
	Schema *schema.Schema
	// Source is the schema as JSON, with its keys as declared. Read only.
	Source []byte
	// Digest covers what the schema asserts. See the package comment.
	Digest string

	at strictyaml.Value // the schema in its file
}

// Locate is the place in the file that a pointer into the schema (RFC 6901)
// leads to, or that of the nearest schema above it.
func (c *Contract) Locate(pointer string) Position { return c.at.Locate(pointer) }

// Check validates a payload; without a contract every payload is valid.
func (c *Contract) Check(payload []byte) schema.Report {
	if c == nil || c.Validator == nil {
		return schema.Report{Verdict: schema.Valid}
	}
	return c.Validator.Check(payload)
}

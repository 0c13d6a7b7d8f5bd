package capability

import (
	"context"
	"strings"

	"github.com/agentd/agentd/internal/strictyaml"
	"github.com/agentd/agentd/schema"
)

// A Contract is one side of a capability: a schema, and the validator that
// enforces it.
type Contract struct {
	// Validator checks payloads. It is nil if the document was loaded for
	// inspection.
	Validator Validator
	// Schema is the compiled schema. It is nil if the document was loaded for
	// inspection.
	Schema *schema.Schema
	// Source is the schema as JSON, with its keys in declared order. A schema of the full
	// profile names its dialect there, also where the file leaves it out. It is read-only.
	//
	// Of a capability that asks its client, it has what that adds to the file's: see
	// [Contract.Declared].
	Source []byte
	// Digest covers what the schema asserts; see the package comment.
	Digest string

	at    strictyaml.Places // of the schema in its file
	short bool              // the file has the short form, see DecodeAction

	// declared is the file's schema, where Source has more, and below where it stands there.
	declared       []byte
	declaredSchema *schema.Schema
	below          string
}

// Declared returns the schema that the file declares: what the skill takes from a model and
// what its results are, without the answers of a client and what it is asked for.
func (c *Contract) Declared() []byte {
	if c.declared != nil {
		return c.declared
	}
	return c.Source
}

// DeclaredSchema is [Contract.Declared], compiled; nil if the document was loaded for
// inspection.
func (c *Contract) DeclaredSchema() *schema.Schema {
	if c.declaredSchema != nil {
		return c.declaredSchema
	}
	return c.Schema
}

// Locate returns the place in the file that a pointer into the schema (RFC
// 6901) leads to. If there is nothing at the pointer, it returns the nearest
// place above.
func (c *Contract) Locate(pointer string) Position { return c.at.Locate(c.pointer(pointer)) }

// SourceOf returns the source of c, or nil for a side without a schema.
func (c *Contract) SourceOf() []byte {
	if c == nil {
		return nil
	}
	return c.Source
}

// pointer turns a pointer into the schema into one into what the file has of it.
func (c *Contract) pointer(pointer string) string {
	pointer = strings.TrimPrefix(pointer, c.below)
	if c.short {
		return shortPointer(pointer)
	}
	return pointer
}

// CheckArguments is [Contract.Check] for the payload of a call, which may be null
// or absent; see [schema.Schema.Arguments].
func (c *Contract) CheckArguments(payload []byte) schema.Report {
	return c.CheckArgumentsWithin(context.Background(), payload)
}

// CheckArgumentsWithin is [Contract.CheckArguments] until ctx ends.
func (c *Contract) CheckArgumentsWithin(ctx context.Context, payload []byte) schema.Report {
	if c != nil && c.Schema != nil {
		payload = c.Schema.Arguments(payload)
	}
	return c.CheckWithin(ctx, payload)
}

// Check validates a payload. A nil contract accepts every payload: a
// capability without a schema takes loose JSON.
func (c *Contract) Check(payload []byte) schema.Report {
	return c.CheckWithin(context.Background(), payload)
}

// CheckWithin is [Contract.Check] until ctx ends; see [Validator].
func (c *Contract) CheckWithin(ctx context.Context, payload []byte) schema.Report {
	if c == nil || c.Validator == nil {
		return schema.Report{Verdict: schema.Valid}
	}
	return c.Validator.CheckWithin(ctx, payload)
}

package capability

import (
	"crypto/sha256"

	"github.com/agentd/agentd/schema"
)

// Schemas are those that loads have compiled and accepted, so that contracts with the same
// schema share it: many agents of a fleet offer the same capability, and a pinned file is the
// copy of another one. They are for loads with the same [LoadOptions.SecondOpinion], one at a
// time.
type Schemas struct{ accepted map[schemaKey]acceptedSchema }

// A schemaKey is what decides how a schema compiles.
type schemaKey struct {
	sum     [sha256.Size]byte // of its source
	options schema.CompileOptions
}

type acceptedSchema struct {
	source   []byte
	compiled *schema.Schema
}

// NewSchemas returns none.
func NewSchemas() *Schemas { return &Schemas{make(map[schemaKey]acceptedSchema)} }

// share gives a contract the compiled schema of another one with the same source, and reports
// whether there is one. Nil has none.
func (s *Schemas) share(c *Contract, opts schema.CompileOptions) bool {
	if s == nil {
		return false
	}
	known, ok := s.accepted[schemaKey{sha256.Sum256(c.Source), opts}]
	if ok {
		c.Source, c.Schema, c.Validator = known.source, known.compiled, known.compiled
	}
	return ok
}

// accept keeps the compiled schema of a contract. Nil keeps nothing.
func (s *Schemas) accept(c *Contract, opts schema.CompileOptions) {
	if s != nil {
		s.accepted[schemaKey{sha256.Sum256(c.Source), opts}] = acceptedSchema{c.Source, c.Schema}
	}
}

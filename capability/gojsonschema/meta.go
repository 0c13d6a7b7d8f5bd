package gojsonschema

import (
	"fmt"
	"slices"
	"strings"

	library "github.com/xeipuuv/gojsonschema"
)

// Meta is the draft-07 meta-schema, compiled. It is safe for concurrent use.
type Meta struct{ schema *library.Schema }

// A Problem is a place where a schema is no draft-07 schema.
type Problem struct {
	// Pointer is the place, an RFC 6901 pointer.
	Pointer string
	// Message is the library's description.
	Message string
}

// NewMeta compiles the meta-schema that the library carries.
func NewMeta() (m *Meta, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("gojsonschema: the library panicked on its own meta-schema: %v", r)
		}
	}()
	loader := library.NewSchemaLoader()
	loader.Draft, loader.AutoDetect = library.Draft7, false
	// The library answers this address from memory: it is one of its drafts.
	compiled, err := loader.Compile(library.NewReferenceLoader("http://json-schema.org/draft-07/schema"))
	if err != nil {
		return nil, fmt.Errorf("gojsonschema: %w", err)
	}
	return &Meta{compiled}, nil
}

// Check holds a schema, given as JSON that package schema has compiled, against
// the meta-schema. Patterns are not judged: the library would hold them
// against Go's syntax, and package schema has judged them by ECMA-262.
func (m *Meta) Check(source []byte) []Problem {
	found, err := (&Validator{schema: m.schema}).judge(source)
	if err != nil {
		return []Problem{{Message: "the meta-schema could not be applied"}}
	}
	var problems []Problem
	for _, f := range found {
		at := pointer(f.Context())
		if f.Type() == "number_all_of" || f.Type() == "format" && strings.HasSuffix(at, "/pattern") {
			continue
		}
		problems = append(problems, Problem{Pointer: at, Message: "not a draft-07 schema: " + f.Description()})
	}
	slices.SortFunc(problems, func(a, b Problem) int {
		return strings.Compare(a.Pointer+separator+a.Message, b.Pointer+separator+b.Message)
	})
	return problems
}

package gojsonschema

import (
	"fmt"
	"slices"
	"strings"

	library "github.com/xeipuuv/gojsonschema"
)

// Meta is the compiled draft-07 meta-schema. It is safe for concurrent use.
type Meta struct{ schema *library.Schema }

// A Problem is a place where a schema violates the meta-schema.
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

// Check validates a schema against the meta-schema. The source must be one
// that package schema has compiled. Problems with patterns are dropped: the
// library checks them by Go's syntax, while package schema has already
// checked them by ECMA-262, which is what the standard asks for.
func (m *Meta) Check(source []byte) []Problem {
	found, err := (&Validator{schema: m.schema}).judge(source)
	if err != nil {
		return []Problem{{Message: "the meta-schema could not be applied"}}
	}
	var problems []Problem
	for _, f := range found {
		// number_all_of only sums up the errors of branches, which are in the list
		// themselves.
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

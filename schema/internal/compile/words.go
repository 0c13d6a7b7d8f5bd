package compile

import (
	"strings"

	"github.com/agentd/agentd/internal/spelling"
	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/schema/internal/ir"
	"github.com/agentd/agentd/schema/internal/jsontree"
)

// maxShown is how many bytes of a name a message shows.
const maxShown = 64

// describe names a kind with its article.
func describe(k jsontree.Kind) string {
	switch k {
	case jsontree.Null:
		return "null"
	case jsontree.Array, jsontree.Object:
		return "an " + k.String()
	default:
		return "a " + k.String()
	}
}

// typeNames lists the types, in the order in which hints name them.
func typeNames() []string {
	return []string{"object", "array", "string", "integer", "number", "boolean", "null"}
}

// typeBit returns the bit of a type by its name; 0 for an unknown one.
func typeBit(name string) ir.TypeSet {
	switch name {
	case "null":
		return ir.TypeNull
	case "boolean":
		return ir.TypeBoolean
	case "integer":
		return ir.TypeInteger
	case "number":
		return ir.TypeNumber
	case "string":
		return ir.TypeString
	case "array":
		return ir.TypeArray
	case "object":
		return ir.TypeObject
	}
	return 0
}

// keywords lists the subset, for hints about unknown ones. $schema is left out:
// it is of no use as a suggestion.
func keywords() []string {
	return []string{
		"type", "enum", "const", "properties", "required", "additionalProperties", "items",
		"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "pattern",
		"minItems", "maxItems", "uniqueItems", "oneOf", "anyOf", "allOf", "not", "$ref", "format",
		"title", "description", "default", "examples", "definitions",
	}
}

// unknown records a keyword outside the subset. Draft-07 tells implementations to
// ignore unknown keywords, but a contract that looks stricter than it is helps
// nobody. Keywords of this and other drafts get a hint what to write instead;
// for the rest the nearest known one is named, in case of a typing error.
func (c *compiler) unknown(name, at string) {
	hint := ""
	switch name {
	case "nullable":
		hint = `write "type": ["string", "null"] to accept null`
	case "$id", "id":
		hint = "remove it: references stay inside the document"
	case "$defs":
		hint = "draft-07 calls it definitions"
	case "$comment":
		hint = "use description"
	case "const ":
		hint = "remove the space"
	case "if", "then", "else":
		hint = "use oneOf with a branch for each case"
	case "patternProperties", "propertyNames", "minProperties", "maxProperties":
		hint = "the subset constrains names only by properties, required and additionalProperties"
	case "multipleOf":
		hint = `use "type": "integer", or bounds`
	case "dependencies", "dependentRequired", "dependentSchemas":
		hint = "use oneOf with a branch for each case"
	default:
		hint = c.suggest(strings.TrimSpace(name), keywords())
	}
	c.fault(at, "unsupported keyword "+truncate.Quote(name), hint)
}

// suggest proposes the nearest word, or lists all of them if there are few. A
// suggestion that is far off would mislead, so that there may be none.
func (c *compiler) suggest(name string, words []string) string {
	if c.words += len(words); c.words > mostWords {
		return ""
	}
	if w := spelling.Nearest(name, words); w != "" {
		return "did you mean " + truncate.Quote(w) + "?"
	}
	const few, readable = 8, 256
	size := 0
	for _, w := range words[:min(len(words), few)] {
		size += len(w)
	}
	if len(words) == 0 || len(words) > few || size > readable {
		return ""
	}
	return "known are " + strings.Join(words, ", ")
}

package schema

import "fmt"

// Keyword names the rule that a value broke. Its text is part of what callers
// receive, so that existing names never change. Keywords are numbers because a
// violation is made on the path of a failing call.
type Keyword uint8

// The keywords that assert something, and three rules that no keyword states.
const (
	// KeywordNone is the zero value; no violation carries it.
	KeywordNone Keyword = iota
	// KeywordSyntax is for a payload that is not one strict JSON value.
	KeywordSyntax
	// KeywordLimit is for a list of violations that had to be cut short.
	KeywordLimit
	// KeywordFalse is for the schema false, which no value passes.
	KeywordFalse
	KeywordType                 // the value has none of the listed types
	KeywordConst                // the value is another than the one allowed
	KeywordEnum                 // the value is not among those allowed
	KeywordMinLength            // too few code points
	KeywordMaxLength            // too many code points
	KeywordPattern              // the pattern matches nowhere
	KeywordFormat               // the string lacks the format
	KeywordMinimum              // below the least value
	KeywordMaximum              // above the greatest value
	KeywordExclusiveMinimum     // at or below the limit
	KeywordExclusiveMaximum     // at or above the limit
	KeywordRequired             // a member is missing
	KeywordAdditionalProperties // a member is surplus
	KeywordMinItems             // too few elements
	KeywordMaxItems             // too many elements
	KeywordUniqueItems          // two elements are equal
	KeywordOneOf                // no branch matches, or several do
	KeywordAnyOf                // no branch matches
	KeywordNot                  // the schema that must not match does

	// The following only occur with the full profile.

	KeywordMultipleOf            // the number is not a multiple
	KeywordMinProperties         // too few members
	KeywordMaxProperties         // too many members
	KeywordPropertyNames         // a member's name does not fit
	KeywordDependentRequired     // a member lacks another that it requires
	KeywordContains              // too few elements match
	KeywordMaxContains           // too many elements match
	KeywordUnevaluatedProperties // a member is surplus to all keywords
	KeywordUnevaluatedItems      // an element is surplus to all keywords
)

// keywordNames holds the text of each keyword, by number.
//
//nolint:gochecknoglobals // a table that nothing writes
var keywordNames = [...]string{
	KeywordNone: "", KeywordSyntax: "syntax", KeywordLimit: "limit", KeywordFalse: "false",
	KeywordType: "type", KeywordConst: "const", KeywordEnum: "enum",
	KeywordMinLength: "minLength", KeywordMaxLength: "maxLength",
	KeywordPattern: "pattern", KeywordFormat: "format",
	KeywordMinimum: "minimum", KeywordMaximum: "maximum",
	KeywordExclusiveMinimum: "exclusiveMinimum", KeywordExclusiveMaximum: "exclusiveMaximum",
	KeywordRequired: "required", KeywordAdditionalProperties: "additionalProperties",
	KeywordMinItems: "minItems", KeywordMaxItems: "maxItems", KeywordUniqueItems: "uniqueItems",
	KeywordOneOf: "oneOf", KeywordAnyOf: "anyOf", KeywordNot: "not",
	KeywordMultipleOf: "multipleOf", KeywordMinProperties: "minProperties", KeywordMaxProperties: "maxProperties",
	KeywordPropertyNames: "propertyNames", KeywordDependentRequired: "dependentRequired",
	KeywordContains: "contains", KeywordMaxContains: "maxContains",
	KeywordUnevaluatedProperties: "unevaluatedProperties", KeywordUnevaluatedItems: "unevaluatedItems",
}

// String returns the keyword as it is written in a schema, or "syntax",
// "limit" or "false".
func (k Keyword) String() string {
	if int(k) < len(keywordNames) {
		return keywordNames[k]
	}
	return fmt.Sprintf("Keyword(%d)", uint8(k))
}

// MarshalText returns the name that String returns, and an error for a value
// outside the list.
func (k Keyword) MarshalText() ([]byte, error) {
	if int(k) >= len(keywordNames) {
		return nil, fmt.Errorf("schema: no keyword has number %d", uint8(k))
	}
	return []byte(keywordNames[k]), nil
}

// UnmarshalText accepts the names that String returns, and nothing else.
func (k *Keyword) UnmarshalText(text []byte) error {
	for i, name := range keywordNames {
		if name == string(text) {
			*k = Keyword(i)
			return nil
		}
	}
	return fmt.Errorf("schema: no keyword is called %q", text)
}

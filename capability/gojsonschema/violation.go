package gojsonschema

import (
	"fmt"
	"math/big"
	"strings"

	library "github.com/xeipuuv/gojsonschema"

	"github.com/agentd/agentd/schema"
)

// violation translates one of the library's errors into the words of package
// schema, so that a caller sees the same message from both engines. ok is
// false for an error that only summarises others.
func violation(f library.ResultError) (v schema.Violation, ok bool) {
	details := f.Details()
	v.Path = pointer(f.Context())
	switch f.Type() {
	case "number_all_of":
		return v, false // the branches' own errors are there
	case "required":
		name, _ := details["property"].(string)
		v.Path = pointer(f.Context(), name)
		v.Keyword, v.Message = schema.KeywordRequired, fmt.Sprintf("missing required property %q", name)
	case "additional_property_not_allowed":
		name, _ := details["property"].(string)
		v.Path = pointer(f.Context(), name)
		v.Keyword, v.Message = schema.KeywordAdditionalProperties, fmt.Sprintf("additional property %q is not allowed", name)
	case "invalid_type":
		v.Keyword = schema.KeywordType
		v.Message = fmt.Sprintf("expected type %s but got %s", typeText(details["expected"]), given(details["given"]))
	default:
		v.Keyword, v.Message = plainViolation(f.Type(), details)
	}
	return v, true
}

// plainViolation translates an error about the value itself, as opposed to
// one of its members.
func plainViolation(kind string, details library.ErrorDetails) (schema.Keyword, string) {
	switch kind {
	case "false":
		return schema.KeywordFalse, "schema `false` rejects all values"
	case "const":
		return schema.KeywordConst, "value differs from const"
	case "enum":
		return schema.KeywordEnum, "value not in enum"
	case "string_gte":
		return schema.KeywordMinLength, fmt.Sprintf("string length < minLength %v", details["min"])
	case "string_lte":
		return schema.KeywordMaxLength, fmt.Sprintf("string length > maxLength %v", details["max"])
	case "pattern":
		return schema.KeywordPattern, "string does not match pattern"
	case "format":
		name, _ := details["format"].(string)
		return schema.KeywordFormat, "format " + strings.TrimPrefix(name, formatPrefix) + ": not of that format"
	case "number_gte":
		return schema.KeywordMinimum, "number < minimum " + bound(details["min"])
	case "number_gt":
		return schema.KeywordExclusiveMinimum, "number <= exclusiveMinimum " + bound(details["min"])
	case "number_lte":
		return schema.KeywordMaximum, "number > maximum " + bound(details["max"])
	case "number_lt":
		return schema.KeywordExclusiveMaximum, "number >= exclusiveMaximum " + bound(details["max"])
	case "array_min_items":
		return schema.KeywordMinItems, fmt.Sprintf("array length < minItems %v", details["min"])
	case "array_max_items":
		return schema.KeywordMaxItems, fmt.Sprintf("array length > maxItems %v", details["max"])
	case "unique":
		return schema.KeywordUniqueItems, "duplicate item"
	case "number_any_of":
		return schema.KeywordAnyOf, "anyOf matched zero schemas"
	case "number_one_of":
		return schema.KeywordOneOf, "oneOf did not match exactly 1 schema"
	case "number_not":
		return schema.KeywordNot, "not-schema matched"
	}
	return schema.KeywordNone, "the value fails " + kind
}

// typeText turns the library's "[string,null]" into "string|null".
func typeText(expected any) string {
	text, _ := expected.(string)
	return strings.ReplaceAll(strings.Trim(text, "[]"), ",", "|")
}

// given returns the value's type. The library tells integers from numbers,
// and package schema does not.
func given(v any) string {
	text, _ := v.(string)
	if text == "integer" {
		return "number"
	}
	return text
}

func bound(v any) string {
	if f, ok := v.(*big.Float); ok {
		return f.Text('g', 20)
	}
	return fmt.Sprint(v)
}

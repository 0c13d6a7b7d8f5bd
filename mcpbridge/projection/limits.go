package projection

import "regexp"

// limits are what a provider takes in a schema of arguments. Keywords that no field is
// about are taken by all or by none, see builder.
type limits struct {
	name string
	// closed: each object lists its members and has no others.
	closed bool
	// allRequired: each member is required, and an optional one may be null.
	allRequired bool
	// references: a schema may contain itself, by $ref and $defs.
	references bool
	// keywords are the rules about strings, numbers and arrays that are taken.
	keywords map[string]bool
	formats  map[string]bool
	// maxMinItems is the greatest minItems; -1 means any.
	maxMinItems int
	// mixedEnums: an enum may have booleans and null.
	mixedEnums bool
	// tools are the names that tools may have.
	tools *regexp.Regexp
	// names are the names that members may have; others are replaced.
	names *regexp.Regexp

	maxDepth      int // of objects and arrays in each other
	maxProperties int // in the whole schema
	maxEnumValues int // in the whole schema
	// maxLongEnum bounds the characters of an enum with more than manyEnumValues.
	maxLongEnum int
	// maxText bounds the characters of all names and enum values together.
	maxText int
	// maxItemsSum bounds the sum of all maxItems.
	maxItemsSum int
	// maxOptional and maxUnions are bounds for all tools of a request together. They are
	// reported, and nothing is changed for them.
	maxOptional, maxUnions int
}

const manyEnumValues = 250

// Bounds where a provider names none. They keep references from multiplying.
const (
	defaultDepth      = 100
	defaultProperties = 5000
	defaultEnumValues = 5000
	defaultText       = 500_000
)

func set(names ...string) map[string]bool {
	all := make(map[string]bool, len(names))
	for _, name := range names {
		all[name] = true
	}
	return all
}

// providers returns the limits of all providers.
func providers() []limits {
	return []limits{openAI(), anthropic(), gemini()}
}

// openAI is for functions with "strict": true, from the guide to structured outputs and
// the checks of the library openai 7.57 (lib/transform). That minLength and maxLength are
// taken is not documented.
func openAI() limits {
	return limits{
		name: "openai-strict", closed: true, allRequired: true, references: true, mixedEnums: true, maxMinItems: -1,
		keywords: set("pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems"),
		formats:  set("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"),
		tools:    regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`),
		maxDepth: 10, maxProperties: 5000, maxEnumValues: 1000, maxLongEnum: 15_000, maxText: 120_000,
	}
}

// anthropic is for tools with "strict": true, from the guide to structured outputs and
// the library @anthropic-ai/sdk 1.12 (lib/transform-json-schema). Schemas that contain
// themselves are refused, and so are allOf with $ref and patterns with look-around.
func anthropic() limits {
	return limits{
		name: "anthropic", closed: true, mixedEnums: true, maxMinItems: 1,
		keywords: set("pattern", "format", "minItems"),
		formats:  set("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"),
		tools:    regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`),
		names:    regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`),
		maxDepth: defaultDepth, maxProperties: defaultProperties, maxEnumValues: defaultEnumValues, maxText: defaultText,
		maxOptional: 24, maxUnions: 16,
	}
}

// gemini is for parametersJsonSchema, from the list of keywords in @google/genai 3.1. It
// is also kept clear of what the older field parameters refuses: references, const,
// prefixItems and arrays without items. The bound of maxItems is not documented: requests
// with a sum of more than some 960 have been refused.
func gemini() limits {
	return limits{
		name: "gemini", maxMinItems: -1,
		keywords: set("format", "minimum", "maximum", "minItems", "maxItems"),
		formats:  set("date-time", "time", "date"),
		tools:    regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`),
		names:    regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]{0,63}$`),
		maxDepth: defaultDepth, maxProperties: defaultProperties, maxEnumValues: defaultEnumValues, maxText: defaultText, maxItemsSum: 900,
	}
}

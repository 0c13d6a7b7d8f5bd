package lint

const (
	// The sources of rules; doc.go has the addresses and dates.
	openAIDocs    = "OpenAI, Structured model outputs: Supported schemas"
	anthropicDocs = "Anthropic, Structured outputs: JSON Schema limitations"
	anthropicAPI  = "observed: 400 invalid_request_error of the Messages API"
	geminiDocs    = "Google, Gemini API, Structured output: JSON Schema support"
	geminiAPI     = "observed: 400 INVALID_ARGUMENT for functionDeclarations.parameters"
	ownReading    = "package schema"
)

// Rules returns the rules of a profile; nil for an unknown one.
func Rules(p Profile) []Rule {
	switch p {
	case OpenAIStrict:
		return named(p, openAIRules())
	case Anthropic:
		return named(p, anthropicRules())
	case Gemini:
		return named(p, geminiRules())
	case Draft07Subset:
		return named(p, subsetRules())
	}
	return nil
}

// named prefixes the ids of rules with their profile. Profiles share names for the
// same problem, and differ in severity, hint and source.
func named(p Profile, rules []Rule) []Rule {
	for i := range rules {
		rules[i].ID = string(p) + "/" + rules[i].ID
	}
	return rules
}

func subsetRules() []Rule {
	return []Rule{
		{"empty-range", SeverityError, "swap the bounds, or remove one", ownReading},
		{"dead-value", SeverityWarning, "remove the value, or widen type", ownReading},
		{"required-undeclared", SeverityWarning, "declare it under properties", ownReading},
		{"required-forbidden", SeverityError, "declare it under properties, or open additionalProperties", ownReading},
		{"unused-definition", SeverityWarning, "remove it", ownReading},
		{"open-object", SeverityInfo, "additionalProperties: false turns a misspelt member into a violation", ownReading},
		{"any-value", SeverityInfo, "say which type it is", ownReading},
		{"description", SeverityInfo, "callers and models choose by it", ownReading},
		{"remark", SeverityInfo, "the contract is what the rest says; see the schema's own documentation", ownReading},
		{"untyped-tool", SeverityWarning, "without one, nothing is checked before the call", ownReading},
	}
}

func openAIRules() []Rule {
	return []Rule{
		{"root-object", SeverityError, "wrap the value in an object", openAIDocs},
		{"root-union", SeverityError, "wrap the union in a property", openAIDocs},
		{"closed", SeverityError, "add additionalProperties: false", openAIDocs},
		{"all-required", SeverityError, `list it under required; let it be optional with type: [..., "null"]`, openAIDocs},
		{"keyword", SeverityError, "move the rule into a description, or use anyOf for oneOf", openAIDocs},
		{"keyword-undocumented", SeverityWarning, "fine-tuned and older models refuse it", openAIDocs},
		{"format", SeverityError, "use pattern, or say it in the description", openAIDocs},
		{"any-value", SeverityError, "give it a type", "observed: 400 schema must have a 'type' key"},
		{"boolean-schema", SeverityError, "write a schema with a type", openAIDocs},
		{"properties", SeverityError, "split the capability", openAIDocs},
		{"depth", SeverityError, "flatten the schema", openAIDocs},
		{"enum-size", SeverityError, "use a string with a pattern", openAIDocs},
		{"text-size", SeverityError, "shorten names and enum values", openAIDocs},
		{"untyped-tool", SeverityWarning, "a strict tool needs a closed object schema", openAIDocs},
		{"full-keyword", SeverityWarning, "the reader may refuse or ignore it: calls are checked by agentd with the whole schema", "no provider documents it"},
		{"tool-name", SeverityWarning, "the bridge shortens it with a hash; choose shorter names", "OpenAI, Function calling: name"},
	}
}

func anthropicRules() []Rule {
	const strict = anthropicDocs + " (strict tool use)"
	return []Rule{
		{"root-object", SeverityError, "wrap the value in an object", anthropicAPI},
		{"root-union", SeverityError, "wrap the union in a property", anthropicAPI},
		{"property-name", SeverityError, "letters, digits, _ . and -, at most 64", anthropicAPI},
		{"closed", SeverityWarning, "add additionalProperties: false", strict},
		{"keyword", SeverityWarning, "move the rule into a description, or use anyOf for oneOf", strict},
		{"bound", SeverityWarning, "the SDKs drop it and say it in the description", strict},
		{"format", SeverityWarning, "use pattern, or say it in the description", strict},
		{"complex-enum", SeverityWarning, "enumerate strings, numbers, booleans and null only", strict},
		{"recursion", SeverityWarning, "unroll it to a fixed depth", strict},
		{"optional-properties", SeverityWarning, "make some required", strict},
		{"union-properties", SeverityWarning, "use fewer unions and lists of types", strict},
		{"full-keyword", SeverityWarning, "the reader may refuse or ignore it: calls are checked by agentd with the whole schema", "no provider documents it"},
		{"tool-name", SeverityWarning, "the bridge shortens it with a hash; choose shorter names", anthropicAPI},
	}
}

func geminiRules() []Rule {
	return []Rule{
		{"root-object", SeverityError, "wrap the value in an object", geminiAPI},
		{"keyword", SeverityError, "use anyOf, an enum of one value, or inclusive bounds", geminiAPI},
		{"keyword-parameters", SeverityWarning, "send it as parametersJsonSchema", geminiAPI},
		{"string-enum", SeverityError, "enumerate strings only", geminiAPI},
		{"format", SeverityError, "say it in the description", geminiAPI},
		{"any-value", SeverityError, "give it a type", geminiAPI},
		{"boolean-schema", SeverityError, "write a schema with a type", geminiAPI},
		{"type-list", SeverityWarning, "send it as parametersJsonSchema", geminiDocs},
		{"full-keyword", SeverityWarning, "the reader may refuse or ignore it: calls are checked by agentd with the whole schema", "no provider documents it"},
		{"tool-name", SeverityWarning, "the bridge shortens it with a hash; choose shorter names", geminiAPI},
		{"tool-name-start", SeverityWarning, "the bridge puts an underscore before it", geminiAPI},
	}
}

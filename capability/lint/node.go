package lint

import (
	"math/big"
	"slices"
	"strings"

	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/schema"
)

// node applies every rule that looks at a single schema. A rule that the profile
// lacks reports nothing, so that most checks need not ask which profile it is.
func (l *linter) node(n schema.Node) {
	// In draft-07, keywords beside $ref have no effect, and the target is checked
	// where it is defined.
	if _, _, ok := n.Ref(); ok {
		if l.profile == Gemini {
			l.report("keyword-parameters", n.Pointer()+"/$ref", "$ref is not supported")
		}
		return
	}
	l.keywords(n)
	for _, keyword := range n.Unread() {
		l.report("full-keyword", n.Pointer()+"/"+keyword, "%s is a keyword of the full schema profile", keyword)
	}
	l.types(n)
	l.object(n)
	l.values(n)
	l.ranges(n)
	if format := n.Format(); format != "" && !l.takesFormat(format) {
		l.report("format", n.Pointer()+"/format", "the format %s is not supported", format)
	}
}

// present reports for each keyword that some reader refuses whether n has it.
// Two entries are narrower than a keyword, because their readers refuse only
// some of its values.
func present(n schema.Node) map[string]bool {
	bounds := n.Bounds()
	_, hasNot := n.Not()
	_, hasConst := n.Const()
	additional, hasAdditional := n.Additional()
	// Open means that additionalProperties is true or a schema: strict readers take
	// only false.
	open := false
	if hasAdditional {
		value, boolean := additional.Boolean()
		open = !boolean || value
	}
	shortest, longest := n.Length()
	fewest, most := n.ItemCount()
	return map[string]bool{
		"oneOf": n.OneOf() != nil, "anyOf": n.AnyOf() != nil, "allOf": n.AllOf() != nil, "not": hasNot, "const": hasConst,
		"uniqueItems": n.UniqueItems(), "default": n.Default() != nil, "pattern": n.Pattern() != "",
		"minLength": shortest > 0, "maxLength": longest >= 0, "minItems": fewest > 0, "maxItems": most >= 0,
		"minimum": bounds.Minimum != "", "maximum": bounds.Maximum != "",
		"exclusiveMinimum": bounds.ExclusiveMinimum != "", "exclusiveMaximum": bounds.ExclusiveMaximum != "",
		"additionalProperties": hasAdditional, "open additionalProperties": open,
		"minItems > 1": fewest > 1,
	}
}

// refusals returns the keywords that each rule of the profile refuses.
func (l *linter) refusals() map[string][]string {
	switch l.profile {
	case OpenAIStrict:
		return map[string][]string{
			"keyword":              {"oneOf", "allOf", "not", "uniqueItems"},
			"keyword-undocumented": {"minLength", "maxLength", "default"},
		}
	case Anthropic:
		return map[string][]string{
			"keyword": {"oneOf", "not", "uniqueItems"},
			"bound":   {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "minItems > 1", "maxItems"},
			"closed":  {"open additionalProperties"},
		}
	case Gemini:
		return map[string][]string{
			"keyword":            {"allOf", "not", "const", "uniqueItems", "exclusiveMinimum", "exclusiveMaximum"},
			"keyword-parameters": {"oneOf", "additionalProperties"},
		}
	}
	return nil
}

// keywords reports the keywords of n that the reader refuses.
func (l *linter) keywords(n schema.Node) {
	has := present(n)
	for rule, keywords := range l.refusals() {
		for _, k := range keywords {
			if !has[k] {
				continue
			}
			// The narrowed entries of present have words around the keyword, which
			// a pointer must not.
			keyword := strings.TrimSuffix(strings.TrimPrefix(k, "open "), " > 1")
			l.report(rule, n.Pointer()+"/"+keyword, "%s is not supported", k)
		}
	}
}

// takesFormat reports whether the reader supports a format. agentd supports
// every format that loads.
func (l *linter) takesFormat(f schema.Format) bool {
	var known []string
	switch l.profile {
	case OpenAIStrict:
		known = []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
	case Anthropic:
		known = []string{"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
	case Gemini:
		known = []string{"date-time", "enum"}
	default:
		return true
	}
	return slices.Contains(known, string(f))
}

// types checks the keyword type, and schemas that neither have it nor restrict the
// value by other means.
func (l *linter) types(n schema.Node) {
	types := n.Types()
	if len(types) > 1 {
		l.report("type-list", n.Pointer()+"/type", "a list of types is not supported")
	}
	_, hasConst := n.Const()
	_, hasNot := n.Not()
	if types == nil && n.Enum() == nil && !hasConst && !hasNot && unions(n) == nil {
		l.report("any-value", n.Pointer(), "the schema says no type")
	}
}

// object checks properties, required and additionalProperties together. Without
// any of them and without type object it has nothing to say.
func (l *linter) object(n schema.Node) {
	properties, required := n.Properties(), n.Required()
	if !n.HasObject() && !slices.Contains(n.Types(), schema.TypeObject) {
		return
	}
	additional, declared := n.Additional()
	closed := false
	if declared {
		value, boolean := additional.Boolean()
		closed = boolean && !value
	}
	if !declared {
		l.report("closed", n.Pointer(), "the object is open: additionalProperties is not false")
		if len(properties) > 0 {
			l.report("open-object", n.Pointer(), "members that are not declared pass unchecked")
		}
	} else if !closed && l.profile == OpenAIStrict {
		l.report("closed", n.Pointer()+"/additionalProperties", "additionalProperties is not false")
	}
	known := make(map[string]bool, len(properties))
	for _, p := range properties {
		known[p.Name] = true
		if !p.Required {
			l.report("all-required", p.Schema.Pointer(), "the property %q is not required", p.Name)
		}
		if n.Pointer() == "" && !anthropicName(p.Name) {
			l.report("property-name", p.Schema.Pointer(), "the property name %q is not allowed", p.Name)
		}
	}
	for _, name := range required {
		switch {
		case known[name]:
		case closed:
			l.report("required-forbidden", n.Pointer()+"/required", "%q is required, and additionalProperties forbids it: no object passes", name)
		default:
			l.report("required-undeclared", n.Pointer()+"/required", "%q is required but not among the properties", name)
		}
	}
}

// anthropicName is the pattern of the API's answer: ^[a-zA-Z0-9_.-]{1,64}$.
func anthropicName(name string) bool {
	for i := range len(name) {
		// Setting this bit makes letters small, and leaves digits to be compared as
		// they are.
		c := name[i] | 0x20
		if (c < 'a' || c > 'z') && (name[i] < '0' || name[i] > '9') && !strings.ContainsRune("_.-", rune(name[i])) {
			return false
		}
	}
	return len(name) >= 1 && len(name) <= 64
}

// values checks the literals of enum and const.
func (l *linter) values(n schema.Node) {
	literals, keyword := n.Enum(), "/enum"
	// Clip makes append copy: the enum belongs to the schema.
	if value, ok := n.Const(); ok {
		literals, keyword = append(slices.Clip(literals), value), "/const"
	}
	allStrings := true
	for _, v := range literals {
		allStrings = allStrings && v.Type == schema.TypeString
		if v.Type == schema.TypeObject || v.Type == schema.TypeArray {
			l.report("complex-enum", n.Pointer()+keyword, "a value is an object or a list")
		}
		if !accepts(n.Types(), v.Type) {
			l.report("dead-value", n.Pointer()+keyword, "the value %s is not of type %s", shown(v.JSON), joined(n.Types()))
		}
	}
	if !allStrings && n.Enum() != nil {
		l.report("string-enum", n.Pointer()+"/enum", "a value is not a string")
	}
}

// shown shortens a literal for a message. It may cut a character in two, which
// ToValidUTF8 removes.
func shown(value []byte) string {
	return truncate.String(string(value), 40)
}

// joined renders a list of types.
func joined(types []schema.Type) string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = string(t)
	}
	return strings.Join(names, " or ")
}

// accepts reports whether a value of type t passes the keyword type. Without the
// keyword every type does, and an integer is also a number.
func accepts(types []schema.Type, t schema.Type) bool {
	return types == nil || slices.Contains(types, t) || t == schema.TypeInteger && slices.Contains(types, schema.TypeNumber)
}

// ranges finds pairs of bounds that leave no value.
func (l *linter) ranges(n schema.Node) {
	if least, most := n.Length(); most >= 0 && least > most {
		l.report("empty-range", n.Pointer()+"/maxLength", "no length is both at least %d and at most %d", least, most)
	}
	if least, most := n.ItemCount(); most >= 0 && least > most {
		l.report("empty-range", n.Pointer()+"/maxItems", "no list has at least %d and at most %d items", least, most)
	}
	b := n.Bounds()
	for _, low := range []struct {
		keyword, token string
		strict         bool
	}{{"minimum", b.Minimum, false}, {"exclusiveMinimum", b.ExclusiveMinimum, true}} {
		for _, high := range []struct {
			keyword, token string
			strict         bool
		}{{"maximum", b.Maximum, false}, {"exclusiveMaximum", b.ExclusiveMaximum, true}} {
			// Equal bounds leave one number, unless either excludes it.
			if c, ok := compare(low.token, high.token); ok && (c > 0 || c == 0 && (low.strict || high.strict)) {
				l.report("empty-range", n.Pointer()+"/"+high.keyword, "no number passes both %s %s and %s %s", low.keyword, low.token, high.keyword, high.token)
			}
		}
	}
}

// compare orders two JSON numbers exactly. ok is false if one is absent, or has
// an exponent that would make the comparison expensive.
func compare(a, b string) (order int, ok bool) {
	x, okX := rational(a)
	y, okY := rational(b)
	if !okX || !okY {
		return 0, false
	}
	return x.Cmp(y), true
}

// rational reads a JSON number exactly. It refuses exponents of more than four
// characters: a number of that size in bytes would take as many digits to hold,
// and a schema of 12 bytes could then use up the memory.
func rational(token string) (*big.Rat, bool) {
	_, exponent, _ := strings.Cut(strings.ToLower(token), "e")
	if token == "" || len(exponent) > 4 {
		return nil, false
	}
	return new(big.Rat).SetString(token)
}

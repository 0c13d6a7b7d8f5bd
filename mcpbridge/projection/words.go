package projection

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/schema"
)

// describe adds words to the description.
func (l *lowered) describe(words string) {
	if words == "" {
		return
	}
	before := l.take("description")
	if before != nil {
		text := unquoted(before)
		if !strings.HasSuffix(text, ".") {
			text += "."
		}
		words = text + " " + words
	}
	l.add("description", quoted(words))
}

func unquoted(json []byte) string { return string(ijson.AppendUnquoted(nil, json[1:len(json)-1])) }

// title returns the first title of the place.
func (p *place) title() string { return firstOf(p.notes, schema.Node.Title) }

// description returns the first description of the place.
func (p *place) description() string { return firstOf(p.notes, schema.Node.Description) }

func firstOf(nodes []schema.Node, of func(schema.Node) string) string {
	for _, n := range nodes {
		if text := of(n); text != "" {
			return text
		}
	}
	return ""
}

// annotate adds title and description to a value of some types, and its rules: as
// keywords where the provider takes them, and else in words.
func (b *builder) annotate(p place, l *lowered, types []schema.Type) {
	if title := p.title(); title != "" {
		l.add("title", quoted(title))
	}
	l.describe(p.description())
	for _, n := range p.nodes {
		for _, k := range n.Keywords() {
			written := p.done[n] && (k.Name == "anyOf" || k.Name == "oneOf")
			if !written && says(n, k.Name, types) {
				b.rule(n, k, l)
			}
		}
	}
}

// rule adds one keyword.
func (b *builder) rule(n schema.Node, k schema.KeywordValue, l *lowered) {
	if !l.has(k.Name) && b.takes(n, k) {
		if k.Name == "format" && n.Format() == "" {
			b.narrow(n, "format", "the provider may enforce it, and the schema only notes it")
		}
		l.add(k.Name, k.JSON)
		return
	}
	if least, _ := n.ItemCount(); k.Name == "minItems" && least > 0 && b.maxMinItems == 1 && !l.has(k.Name) {
		l.add(k.Name, []byte("1"))
	}
	if said := words(k); said != "" {
		b.drop(n, k.Name, "said in the description")
		l.describe(said)
	}
}

// says reports whether a keyword is a rule about values of the types, or something else
// that has to be said in words.
func says(n schema.Node, keyword string, types []schema.Type) bool {
	switch keyword {
	case "default", "examples", "not", "anyOf", "oneOf":
		return true
	case "if", "then", "else":
		_, ok := n.Conditional()
		return ok
	case "format":
		return slices.Contains(types, schema.TypeString)
	case "minContains", "maxContains":
		_, ok := n.Contains()
		return ok && slices.Contains(types, schema.TypeArray)
	case "properties", "required", "additionalProperties", "items", "prefixItems", "additionalItems":
		return false // written as such
	}
	t := about(keyword)
	return slices.Contains(types, t) || t == schema.TypeNumber && slices.Contains(types, schema.TypeInteger)
}

// takes reports whether the provider takes the keyword with its value.
func (b *builder) takes(n schema.Node, k schema.KeywordValue) bool {
	if !b.keywords[k.Name] {
		return false
	}
	switch k.Name {
	case "format":
		return b.formats[n.FormatAnnotation()]
	case "pattern":
		return plainPattern(n.Pattern())
	case "minItems":
		least, _ := n.ItemCount()
		return b.maxMinItems < 0 || least <= b.maxMinItems
	case "maxItems":
		_, most := n.ItemCount()
		if b.maxItemsSum > 0 && most > b.maxItemsSum-b.itemsSum {
			return false
		}
		b.itemsSum += most
	}
	return true
}

// plainPattern reports whether a pattern has none of what the engines of providers
// refuse or read in ways of their own: look-around, references to groups, word
// boundaries, escaped and other characters beyond ASCII.
func plainPattern(pattern string) bool {
	for i := 0; i < len(pattern); i++ {
		switch rest := pattern[i:]; {
		case strings.HasPrefix(rest, "(?") && !strings.HasPrefix(rest, "(?:"), rest[0] > '~':
			return false
		case rest[0] == '\\' && len(rest) > 1:
			if strings.IndexByte("bBpPkuxc0123456789", rest[1]) >= 0 {
				return false
			}
			i++
		}
	}
	return true
}

// words says a rule in a sentence.
func words(k schema.KeywordValue) string {
	value := string(k.JSON)
	sentences := map[string]string{
		"minLength": "At least %s characters.", "maxLength": "At most %s characters.",
		"minimum": "At least %s.", "maximum": "At most %s.",
		"exclusiveMinimum": "Greater than %s.", "exclusiveMaximum": "Less than %s.", "multipleOf": "A multiple of %s.",
		"minItems": "At least %s items.", "maxItems": "At most %s items.",
		"minProperties": "At least %s members.", "maxProperties": "At most %s members.",
		"default": "Default: %s.", "examples": "Examples: %s.",
		"pattern": "Matches the regular expression %s", "format": "Format: %s.",
	}
	switch k.Name {
	case "uniqueItems":
		if value == "false" {
			return ""
		}
		return "No two items are equal."
	case "pattern", "format":
		value = unquoted(k.JSON)
	}
	if len(value) > maxQuoted {
		return fmt.Sprintf("The rule %q of the full schema holds as well.", k.Name)
	}
	if s, ok := sentences[k.Name]; ok {
		return fmt.Sprintf(s, value)
	}
	return fmt.Sprintf("By JSON Schema also: {%q: %s}.", k.Name, value)
}

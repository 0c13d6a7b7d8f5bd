package golang

import (
	"go/token"
	"slices"
	"strings"

	"github.com/agentd/agentd/codegen/internal/ident"
)

// packageName makes a package name from an agent's id. It avoids keywords, names
// with a meaning for the go command, and the packages that the file imports.
func packageName(id string) string {
	name := ident.StartWithLetter(strings.Join(ident.Words(id), ""), "agent")
	switch name {
	case "main", "internal", "vendor", "testdata", "context", "typed", "json":
		return name + "agent"
	}
	if token.IsKeyword(name) || strings.HasSuffix(name, "test") {
		return name + "agent"
	}
	return name
}

// enumWord returns the part of a constant's name that stands for its value.
func enumWord(value string) string {
	word := ""
	for _, w := range ident.CamelWords(value) {
		word += strings.ToUpper(w[:1]) + w[1:]
	}
	switch {
	case value == "":
		return "Empty"
	case word == "":
		return "Value"
	case strings.HasPrefix(value, "-"):
		return "Minus" + word
	}
	return word
}

// fieldScope returns a scope for the fields of a struct: a field cannot be named
// like one of the generated methods.
func fieldScope() *ident.Scope { return ident.NewScope("UnmarshalJSON", "MarshalJSON") }

// fieldName makes an exported field name, with initialisms in capitals as Go
// writes them: prUrl is PRURL.
func fieldName(name string) string {
	initialisms := []string{"API", "CPU", "DNS", "HTML", "HTTP", "HTTPS", "ID", "IP", "JSON", "PR", "SQL", "TTL", "UI", "URI", "URL", "UUID", "XML"}
	var b strings.Builder
	for _, w := range ident.CamelWords(name) {
		if upper := strings.ToUpper(w); slices.Contains(initialisms, upper) {
			b.WriteString(upper)
		} else {
			b.WriteString(strings.ToUpper(w[:1]) + w[1:])
		}
	}
	return ident.StartWithLetter(b.String(), "X")
}

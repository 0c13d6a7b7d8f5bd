package golang

import (
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/agentd/agentd/codegen/internal/ident"
	"github.com/agentd/agentd/codegen/internal/model"
	"github.com/agentd/agentd/codegen/internal/source"
)

// packageName makes a package name from an agent's id, which is its folder's as well.
func packageName(id string) string {
	name := ident.StartWithLetter(strings.Join(ident.Words(id), ""), "agent")
	if isReservedPackage(name) {
		return name + "agent"
	}
	return name
}

// isReservedPackage reports whether a package, or its folder, must not have that name.
func isReservedPackage(name string) bool {
	switch name {
	case "main", "internal", "vendor", "testdata": // not to be imported, or not from everywhere
		return true
	case "documentation", "init": // the go command skips the one, and no file can import the other
		return true
	case "context", "typed", "json": // the file itself imports these
		return true
	}
	// Whoever imports a package that is named like error could not use that type.
	predeclared := types.Universe.Lookup(name) != nil
	return token.IsKeyword(name) || predeclared || strings.HasSuffix(name, "test") || source.IsDevice(name)
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

// constants returns the names of all constants by constKey. They stand at package level
// beside the types, whose names they must not take.
func constants(api *model.API) map[string]string {
	var claims []ident.Claim
	var types []string
	seen := map[*model.Type]bool{}
	var walk func(t *model.Type)
	walk = func(t *model.Type) {
		if t == nil || seen[t] {
			return
		}
		seen[t] = true
		types = append(types, t.Name)
		if t.Kind == model.Enum && t.Name != "" {
			for _, v := range t.Values {
				claims = append(claims, ident.Claim{Key: constKey(t, v), Name: t.Name + enumWord(v)})
			}
		}
		for _, m := range t.Members {
			walk(m.Type)
		}
		for _, m := range t.Of {
			walk(m)
		}
		walk(t.Elem)
		walk(t.Flat)
	}
	for _, n := range api.Types {
		types = append(types, n.Name)
		walk(n.Type)
	}
	return ident.Distinct(claims, types...)
}

// constKey is what tells the constant of one value of t from all others.
func constKey(t *model.Type, value string) string { return t.Name + " " + value }

// fieldNames returns the names of the fields for an object's members, by theirs.
func fieldNames(members []model.Member) map[string]string {
	var claims []ident.Claim
	for _, m := range members {
		claims = append(claims, ident.Claim{Key: m.Name, Name: fieldName(m.Name)})
	}
	return ident.Distinct(claims, methods()...)
}

// methods returns the names of generated methods, which no field can have.
func methods() []string { return []string{"UnmarshalJSON", "MarshalJSON"} }

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

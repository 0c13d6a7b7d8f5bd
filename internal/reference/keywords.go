package reference

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/agentd/agentd/schema"
)

// A keyword is one of JSON Schema, in a schema that has it.
type keyword struct{ name, schema, meaning string }

// keywords are those that package schema knows.
func keywords() []keyword {
	return []keyword{
		{"type", `{"type": "string"}`, "the types that a value may have"},
		{"enum", `{"enum": ["a", "b"]}`, "the values that there are"},
		{"const", `{"const": 1}`, "the one value"},
		{"properties", `{"type": "object", "properties": {"a": {"type": "string"}}}`, "members by name, with their schemas"},
		{"required", `{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}`, "members that must be there"},
		{"additionalProperties", `{"type": "object", "additionalProperties": false}`, "a schema for all other members; false allows none"},
		{"patternProperties", `{"type": "object", "patternProperties": {"^x-": true}}`, "members whose names match"},
		{"propertyNames", `{"type": "object", "propertyNames": {"maxLength": 9}}`, "a schema for the names of members"},
		{"minProperties", `{"type": "object", "minProperties": 1}`, "the fewest members"},
		{"maxProperties", `{"type": "object", "maxProperties": 9}`, "the most members"},
		{"dependentRequired", `{"type": "object", "dependentRequired": {"a": ["b"]}}`, "members that others require"},
		{"dependentSchemas", `{"type": "object", "dependentSchemas": {"a": {"required": ["b"]}}}`, "schemas that hold where a member is there"},
		{"dependencies", `{"type": "object", "dependencies": {"a": ["b"]}}`, "the two above, in one keyword"},
		{"unevaluatedProperties", `{"type": "object", "unevaluatedProperties": false}`, "a schema for members that no other keyword has judged"},
		{"items", `{"type": "array", "items": {"type": "string"}}`, "a schema for the elements"},
		{"prefixItems", `{"type": "array", "prefixItems": [true]}`, "schemas for the first elements"},
		{"additionalItems", `{"type": "array", "items": [true], "additionalItems": false}`, "a schema for the elements behind the list of items"},
		{"contains", `{"type": "array", "contains": {"const": 1}}`, "a schema that an element must pass"},
		{"minContains", `{"type": "array", "contains": {"const": 1}, "minContains": 2}`, "how many must pass it at least"},
		{"maxContains", `{"type": "array", "contains": {"const": 1}, "maxContains": 2}`, "… and at most"},
		{"unevaluatedItems", `{"type": "array", "unevaluatedItems": false}`, "a schema for elements that no other keyword has judged"},
		{"minItems", `{"type": "array", "items": {"type": "string"}, "minItems": 1}`, "the fewest elements"},
		{"maxItems", `{"type": "array", "items": {"type": "string"}, "maxItems": 9}`, "the most elements"},
		{"uniqueItems", `{"type": "array", "items": {"type": "string"}, "uniqueItems": true}`, "no two elements are equal"},
		{"minimum", `{"type": "number", "minimum": 1}`, "the least number"},
		{"maximum", `{"type": "number", "maximum": 9}`, "the greatest number"},
		{"exclusiveMinimum", `{"type": "number", "exclusiveMinimum": 1}`, "a limit below all numbers"},
		{"exclusiveMaximum", `{"type": "number", "exclusiveMaximum": 9}`, "a limit above all numbers"},
		{"multipleOf", `{"type": "number", "multipleOf": 2}`, "what numbers are multiples of"},
		{"minLength", `{"type": "string", "minLength": 1}`, "the fewest code points"},
		{"maxLength", `{"type": "string", "maxLength": 9}`, "the most code points"},
		{"pattern", `{"type": "string", "pattern": "^a"}`, "an ECMA-262 expression that matches somewhere in the string"},
		{"format", `{"type": "string", "format": "uuid"}`, "what the string is: enforced in the subset, an annotation in the full profile"},
		{"oneOf", `{"oneOf": [{"type": "string"}, {"type": "number"}]}`, "exactly one of these schemas"},
		{"anyOf", `{"anyOf": [{"type": "string"}, {"type": "number"}]}`, "at least one of them"},
		{"allOf", `{"allOf": [{"type": "string"}]}`, "all of them"},
		{"not", `{"not": {"type": "string"}}`, "not this one"},
		{"if", `{"if": {"const": 1}, "then": true}`, "where it passes, then must as well, and else otherwise"},
		{"then", `{"if": {"const": 1}, "then": true}`, "see if"},
		{"else", `{"if": {"const": 1}, "else": true}`, "see if"},
		{"$ref", `{"type": "object", "properties": {"a": {"$ref": "#/definitions/a"}}, "definitions": {"a": {"type": "string"}}}`, "another schema of the document"},
		{"$dynamicRef", `{"$dynamicRef": "#a", "$defs": {"a": {"$dynamicAnchor": "a"}}}`, "… that depends on where it is reached from"},
		{"$recursiveRef", `{"properties": {"a": {"$recursiveRef": "#"}}}`, "… the same in 2019-09"},
		{"definitions", `{"type": "string", "definitions": {"a": {"type": "string"}}}`, "schemas to refer to"},
		{"$defs", `{"type": "string", "$defs": {"a": {"type": "string"}}}`, "schemas to refer to"},
		{"$schema", "", "the dialect, at the root"},
		{"$id", `{"$id": "https://example.com/a"}`, "the name of a schema, to refer to; nothing is fetched"},
		{"$anchor", `{"$anchor": "a"}`, "the name of a place, to refer to"},
		{"$dynamicAnchor", `{"$dynamicAnchor": "a"}`, "… of $dynamicRef"},
		{"$recursiveAnchor", `{"$recursiveAnchor": true}`, "… of $recursiveRef"},
		{"$vocabulary", `{"$vocabulary": {}}`, "an annotation"},
		{"$comment", `{"$comment": "a"}`, "an annotation"},
		{"title", `{"type": "string", "title": "A"}`, "an annotation"},
		{"description", `{"type": "string", "description": "A."}`, "an annotation, which models read"},
		{"default", `{"type": "string", "default": "a"}`, "an annotation; it must pass the schema"},
		{"examples", `{"type": "string", "examples": ["a"]}`, "an annotation; they must pass the schema"},
		{"deprecated", `{"deprecated": true}`, "an annotation"},
		{"readOnly", `{"readOnly": true}`, "an annotation"},
		{"writeOnly", `{"writeOnly": true}`, "an annotation"},
		{"contentEncoding", `{"contentEncoding": "base64"}`, "an annotation"},
		{"contentMediaType", `{"contentMediaType": "text/plain"}`, "an annotation"},
		{"contentSchema", `{"contentSchema": true}`, "an annotation"},
	}
}

// dialects are those of the full profile.
func dialects() []struct{ name, uri string } {
	return []struct{ name, uri string }{
		{"draft-07", "http://json-schema.org/draft-07/schema#"},
		{"2019-09", "https://json-schema.org/draft/2019-09/schema"},
		{"2020-12", "https://json-schema.org/draft/2020-12/schema"},
	}
}

// KeywordPage says by which rules each keyword is read. Package schema is asked, and its list of
// keywords must be that of this page.
func KeywordPage(root string) ([]byte, error) {
	known, err := keywordsOfSource(root)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString(generated + "\n# Keywords of schemas\n\n`inputSchema` and `outputSchema` are read by the rules of `schemaProfile`: `subset`, which refuses what it does not know, or `full`, in\nthe dialect of `$schema` ([capabilities.md](../capabilities.md#contracts-that-others-wrote)). *Ignored* keywords are annotations without effect.\n\n| keyword | subset | full: draft-07 | 2019-09 | 2020-12 | meaning |\n|---|---|---|---|---|---|\n")
	for _, k := range keywords() {
		known = slices.DeleteFunc(known, func(name string) bool { return name == k.name })
		fmt.Fprintf(&b, "| `%s` | %s |", k.name, k.subset())
		for _, d := range dialects() {
			fmt.Fprintf(&b, " %s |", k.in(d.uri))
		}
		fmt.Fprintf(&b, " %s |\n", k.meaning)
	}
	if len(known) > 0 {
		return nil, fmt.Errorf("package schema knows the keywords %q, and keywords.go does not", known)
	}
	return []byte(b.String()), nil
}

func (k keyword) subset() string {
	if k.schema == "" {
		return yes(true)
	}
	_, err := schema.CompileWith([]byte(k.schema), schema.CompileOptions{})
	return yes(err == nil)
}

// in is how a dialect of the full profile reads the keyword.
func (k keyword) in(uri string) string {
	src := fmt.Sprintf(`{"$schema": %q}`, uri)
	if k.schema != "" {
		src = fmt.Sprintf(`{"$schema": %q, %s`, uri, strings.TrimPrefix(k.schema, "{"))
	}
	s, err := schema.CompileWith([]byte(src), schema.CompileOptions{Profile: schema.ProfileFull})
	if err != nil {
		// Where the keyword alone is meant for another dialect, its value may be as well.
		return "no"
	}
	for _, remark := range s.Remarks() {
		if strings.Contains(remark.Message, k.name) || strings.HasSuffix(remark.Pointer, "/"+k.name) {
			return "ignored"
		}
	}
	return "yes"
}

// keywordsOfSource are the keywords in the functions of the compiler that list them.
func keywordsOfSource(root string) (names []string, err error) {
	for file, functions := range map[string][]string{"words.go": {"keywords"}, "full_keyword.go": {"knownBy", "assertsNothing"}} {
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "schema/internal/compile", file), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		found := 0
		for _, decl := range parsed.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || !slices.Contains(functions, f.Name.Name) {
				continue
			}
			found++
			ast.Inspect(f, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					if name, err := strconv.Unquote(lit.Value); err == nil {
						names = append(names, name)
					}
				}
				return true
			})
		}
		if found != len(functions) {
			return nil, fmt.Errorf("%s does not have the functions %q any more", file, functions)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

package schema_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/internal/schematest"
)

// samplesOfKinds has a value of each kind, as a schema author could write it in
// the wrong place, and the words by which a fault names the kind.
func samplesOfKinds() [][2]string {
	return [][2]string{
		{"null", "null"}, {"true", "a boolean"}, {"3", "a number"}, {`"x"`, "a string"}, {"[]", "an array"}, {"{}", "an object"},
	}
}

// TestKindsOfKeywordValues gives each keyword a value of every kind. want is the
// message up to "not", accepts the kinds that are no fault, and other has what
// is refused for another reason than its kind.
func TestKindsOfKeywordValues(t *testing.T) {
	const schemaText = "a schema must be an object or a boolean"
	for _, c := range []struct {
		keyword, want, accepts string
		other                  map[string]string
	}{
		{"type", "type must be a string or an array of strings", "", map[string]string{`"x"`: `unknown type "x"`, "[]": "type must not be an empty array"}},
		{"enum", "enum must be an array", "", map[string]string{"[]": "enum must list at least one value"}},
		{"const", "", `null true 3 "x" [] {}`, nil},
		{"properties", "properties must be an object", "{}", nil},
		{"required", "required must be an array of names", "[]", nil},
		{"additionalProperties", schemaText, "true {}", nil},
		{"items", schemaText, "true {}", map[string]string{"[]": "items as an array (tuple form) is not supported"}},
		{"minimum", "minimum must be a number", "3", nil},
		{"maximum", "maximum must be a number", "3", nil},
		{"exclusiveMinimum", "exclusiveMinimum must be a number", "3", nil},
		{"exclusiveMaximum", "exclusiveMaximum must be a number", "3", nil},
		{"minLength", "minLength must be a number", "3", nil},
		{"maxLength", "maxLength must be a number", "3", nil},
		{"minItems", "minItems must be a number", "3", nil},
		{"maxItems", "maxItems must be a number", "3", nil},
		{"uniqueItems", "uniqueItems must be a boolean", "true", nil},
		{"pattern", "must be a string", `"x"`, nil},
		{"format", "must be a string", "", map[string]string{`"x"`: `unknown format "x"`}},
		{"oneOf", "must be an array of schemas", "", map[string]string{"[]": "must hold at least one schema"}},
		{"anyOf", "must be an array of schemas", "", map[string]string{"[]": "must hold at least one schema"}},
		{"allOf", "must be an array of schemas", "", map[string]string{"[]": "must hold at least one schema"}},
		{"not", schemaText, "true {}", nil},
		{"title", "must be a string", `"x"`, nil},
		{"description", "must be a string", `"x"`, nil},
		{"default", "", `null true 3 "x" [] {}`, nil},
		{"examples", "examples must be an array", "[]", nil},
		{"definitions", "definitions must be an object", "{}", nil},
		{"$schema", "must be a string", "", map[string]string{`"x"`: "$schema names another dialect than draft-07"}},
		{"$ref", "must be a string", "", map[string]string{`"x"`: "$ref must be #/definitions/<name>, or # for the root"}},
	} {
		for _, v := range samplesOfKinds() {
			src := `{"` + c.keyword + `":` + v[0] + `}`
			if slices.Contains(strings.Fields(c.accepts), v[0]) {
				schematest.MustCompile(t, src)
				continue
			}
			want := c.want + ", not " + v[1]
			if other, ok := c.other[v[0]]; ok {
				want = other
			}
			got := faults(t, src)
			if len(got) != 1 || got[0].Pointer != "/"+c.keyword || got[0].Message != want {
				t.Errorf("%s: got %v, want %s", src, got, want)
			}
		}
	}
}

// TestFaultsInEveryPlace puts schemas with a fault wherever a schema may stand:
// the fault is found, and its pointer leads to it.
func TestFaultsInEveryPlace(t *testing.T) {
	inner := []struct{ schema, pointer, message string }{
		{`{"minimun":1}`, "/minimun", `unsupported keyword "minimun"`},
		{`{"minLength":-1}`, "/minLength", "minLength must be an integer from 0 up"},
		{`{"type":["null","x"]}`, "/type/1", `unknown type "x"`},
		{`{"enum":[1,{"b":2,"a":[]},{"a":[],"b":2.0}]}`, "/enum/2", "enum lists the same value twice"},
		{`{"const":{"a/b":[0,1e1000000000000000000]}}`, "/const/a~1b/1", "the exponent of this number has more than 18 digits"},
		{`{"properties":{"~":{"items":7}}}`, "/properties/~0/items", "a schema must be an object or a boolean, not a number"},
		{`{"required":["a","b","a"]}`, "/required/2", `required lists "a" twice`},
		{`{"$ref":"#/definitions/gone"}`, "/$ref", `$ref names the definition "gone", which does not exist`},
		{`{"$ref":"#/definitions/x y"}`, "/$ref", `$ref names the definition "x y", which does not exist`},
		{`{"$ref":"#","type":"null"}`, "/type", "draft-07 ignores type beside $ref"},
		{`null`, "", "a schema must be an object or a boolean, not null"},
		{`"x"`, "", "a schema must be an object or a boolean, not a string"},
	}
	for _, place := range []struct{ before, after, pointer string }{
		{`{"properties":{"a":`, `}}`, "/properties/a"},
		{`{"properties":{"":`, `}}`, "/properties/"},
		{`{"properties":{"a/b~c":`, `}}`, "/properties/a~1b~0c"},
		{`{"properties":{"\u00e9":`, `}}`, "/properties/é"},
		{`{"additionalProperties":`, `}`, "/additionalProperties"},
		{`{"items":`, `}`, "/items"},
		{`{"type":"object","properties":{"p":{"not":`, `}}}`, "/properties/p/not"},
		{`{"items":{"oneOf":[true,`, `]}}`, "/items/oneOf/1"},
		{`{"items":{"anyOf":[`, `,true]}}`, "/items/anyOf/0"},
		{`{"items":{"allOf":[{},{},`, `]}}`, "/items/allOf/2"},
		{`{"definitions":{"d":{"items":`, `}}}`, "/definitions/d/items"},
		{`{"items":{"definitions":{"d":{"items":`, `}}}}`, "/items/definitions/d/items"},
		{`{"items":{"items":{"items":{"properties":{"x":{"additionalProperties":`, `}}}}}}`, "/items/items/items/properties/x/additionalProperties"},
	} {
		schematest.MustCompile(t, place.before+`{"type":"null"}`+place.after)
		for _, f := range inner {
			got := faults(t, place.before+f.schema+place.after)
			if len(got) != 1 || got[0].Pointer != place.pointer+f.pointer || got[0].Message != f.message {
				t.Errorf("%s in %s: got %v, want %s at %s", f.schema, place.pointer, got, f.message, place.pointer+f.pointer)
			}
		}
	}
}

// TestFaultSentences has the whole text of a fault, hint included, as it is
// shown to the author of a schema.
func TestFaultSentences(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{`false`, "at the root: the root of a schema must be an object (write {} to accept every value)"},
		{`"{}"`, "at the root: the root of a schema must be an object (write {} to accept every value)"},
		{`{"type":}`, "at the root: invalid JSON at byte 8: expected a value (line 1, column 9)"},
		{"{\n\"a\":1,\n  \"a\":1}", "at the root: invalid JSON at byte 11: duplicate key (line 3, column 3)"},
		{`{"type":[]}`, "at /type: type must not be an empty array (leave type out to accept every type)"},
		{`{"type":"int"}`, `at /type: unknown type "int" (known are object, array, string, integer, number, boolean, null)`},
		{`{"type":"Integer"}`, `at /type: unknown type "Integer" (did you mean "integer"?)`},
		{`{"type":["array","array"]}`, `at /type/1: type "array" is listed twice`},
		{`{"enum":[]}`, "at /enum: enum must list at least one value (write false to refuse every value)"},
		{`{"enum":[0,-0.0]}`, "at /enum/1: enum lists the same value twice (remove one of them)"},
		{`{"enum":["a","\u0061"]}`, "at /enum/1: enum lists the same value twice (remove one of them)"},
		{`{"exclusiveMaximum":false}`, "at /exclusiveMaximum: exclusiveMaximum must be a number, not a boolean (since draft-06 it holds the bound itself, in place of minimum or maximum)"},
		{`{"minimum":true}`, "at /minimum: minimum must be a number, not a boolean"},
		{`{"minItems":0.5}`, "at /minItems: minItems must be an integer from 0 up"},
		{`{"maxItems":-1e0}`, "at /maxItems: maxItems must be an integer from 0 up"},
		{`{"properties":{"a":{"required":true}}}`, "at /properties/a/required: required must be an array of names, not a boolean (list the names on the object that holds the property)"},
		{`{"items":[{},{}]}`, "at /items: items as an array (tuple form) is not supported (write one schema for all elements, or an object with a property for each)"},
		{`{"format":"date"}`, `at /format: unknown format "date" (did you mean "date-time"?)`},
		{`{"format":"datetime"}`, `at /format: unknown format "datetime" (did you mean "date-time"?)`},
		{`{"const ":1}`, `at /const : unsupported keyword "const " (remove the space)`},
		{`{" type":"null"}`, `at / type: unsupported keyword " type" (did you mean "type"?)`},
		{`{"minlength":1}`, `at /minlength: unsupported keyword "minlength" (did you mean "minLength"?)`},
		{`{"nullable":true}`, `at /nullable: unsupported keyword "nullable" (write "type": ["string", "null"] to accept null)`},
		{`{"id":"x"}`, `at /id: unsupported keyword "id" (remove it: references stay inside the document)`},
		{`{"$defs":{}}`, `at /$defs: unsupported keyword "$defs" (draft-07 calls it definitions)`},
		{`{"$comment":"x"}`, `at /$comment: unsupported keyword "$comment" (use description)`},
		{`{"then":{}}`, `at /then: unsupported keyword "then" (use oneOf with a branch for each case)`},
		{`{"else":{}}`, `at /else: unsupported keyword "else" (use oneOf with a branch for each case)`},
		{`{"minProperties":1}`, `at /minProperties: unsupported keyword "minProperties" (the subset constrains names only by properties, required and additionalProperties)`},
		{`{"propertyNames":{}}`, `at /propertyNames: unsupported keyword "propertyNames" (the subset constrains names only by properties, required and additionalProperties)`},
		{`{"multipleOf":0.01}`, `at /multipleOf: unsupported keyword "multipleOf" (use "type": "integer", or bounds)`},
		{`{"dependentSchemas":{}}`, `at /dependentSchemas: unsupported keyword "dependentSchemas" (use oneOf with a branch for each case)`},
		{`{"a\nb":1}`, "at /a\nb: unsupported keyword \"a\\nb\""},
		{`{"$schema":"http://json-schema.org/draft-04/schema#"}`, `at /$schema: $schema names another dialect than draft-07 (write "http://json-schema.org/draft-07/schema#", or leave it out)`},
		{`{"$schema":"https://json-schema.org/draft-07/schema#"}`, `at /$schema: $schema names another dialect than draft-07 (write "http://json-schema.org/draft-07/schema#", or leave it out)`},
		{`{"not":{"$schema":"http://json-schema.org/draft-07/schema#"}}`, "at /not/$schema: $schema stands only at the root (remove it)"},
		{`{"items":{"$ref":"#/$defs/a"}}`, "at /items/$ref: $ref must be #/definitions/<name>, or # for the root (move the schema into definitions at the root; nothing outside this document is read)"},
		{`{"items":{"$ref":""}}`, "at /items/$ref: $ref must be #/definitions/<name>, or # for the root (move the schema into definitions at the root; nothing outside this document is read)"},
		{`{"items":{"$ref":"#/definitions/usr"},"definitions":{"user":{}}}`, `at /items/$ref: $ref names the definition "usr", which does not exist (did you mean "user"?)`},
		{`{"items":{"$ref":"#/definitions/zzz"},"definitions":{"user":{},"card":{}}}`, `at /items/$ref: $ref names the definition "zzz", which does not exist (known are user, card)`},
		{`{"items":{"$ref":"#","enum":[1]}}`, `at /items/enum: draft-07 ignores enum beside $ref (write {"allOf": [{"$ref": …}, {"enum": …}]})`},
		{`{"allOf":[{"$ref":"#"}]}`, "at /allOf/0/$ref: $ref leads back to itself without consuming input (put a property or an element between the two)"},
		{`{"not":{"$ref":"#"}}`, "at /not/$ref: $ref leads back to itself without consuming input (put a property or an element between the two)"},
		{`{"items":` + strings.Repeat(`{"not":`, 130) + `{}` + strings.Repeat(`}`, 131), "at /items: combinators nest more than 128 deep around one value (flatten them)"},
	} {
		got := faults(t, c.src)
		if len(got) != 1 || got[0].String() != c.want {
			t.Errorf("%.100s: got\n%v\nwant\n%s", c.src, got, c.want)
		}
		if want := "invalid schema: " + c.want; (&schema.CompileError{Faults: got}).Error() != want {
			t.Errorf("%.100s: the error is not %q", c.src, want)
		}
	}
}

// TestNearMisses changes each keyword and each type by one letter: a hint names
// the one that was meant.
func TestNearMisses(t *testing.T) {
	for _, word := range []string{
		"required", "properties", "additionalProperties", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength",
		"pattern", "minItems", "maxItems", "uniqueItems", "format", "title", "description", "default", "examples", "definitions",
	} {
		middle := len(word) / 2
		for _, wrong := range []string{
			word[:middle] + word[middle+1:],                                                   // a letter is missing
			word[:middle] + word[middle:middle+1] + word[middle:],                             // a letter is doubled
			word[:middle] + "q" + word[middle+1:],                                             // a letter is another
			strings.ToUpper(word[:1]) + word[1:],                                              // the case is another
			word[:middle-1] + word[middle:middle+1] + word[middle-1:middle] + word[middle+1:], // two letters have changed places
		} {
			if wrong == word {
				continue
			}
			got := faults(t, `{"`+wrong+`":1}`)
			if want := fmt.Sprintf("did you mean %q?", word); len(got) != 1 || got[0].Hint != want {
				t.Errorf("%s: got %v, want the hint %s", wrong, got, want)
			}
		}
	}
}

// TestFaultsInOrder compiles schemas with several faults: all are listed, in the
// order of the source, and references that lead nowhere come last.
func TestFaultsInOrder(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{`{"b":1,"a":2}`, "/b /a"},
		{`{"type":["x","y",1]}`, "/type/0 /type/1 /type/2"},
		{`{"required":[1,"a","a",null]}`, "/required/0 /required/2 /required/3"},
		{`{"enum":[1,1,2,2]}`, "/enum/1 /enum/3"},
		{`{"minLength":-1,"maxLength":"x","pattern":1,"format":"no"}`, "/minLength /maxLength /pattern /format"},
		{`{"anyOf":[1,{"x":1},[]],"oneOf":[]}`, "/anyOf/0 /anyOf/1/x /anyOf/2 /oneOf"},
		{`{"items":{"$ref":"#/definitions/n"},"properties":{"a":{"$ref":"bad"}},"zzz":1}`, "/zzz /items/$ref /properties/a/$ref"},
		{`{"items":{"$ref":"#","minimum":1,"title":2,"definitions":{}}}`, "/items/minimum /items/title /items/definitions"},
		// A loop is only looked for where everything else is sound.
		{`{"allOf":[{"$ref":"#"}],"zzz":1}`, "/zzz"},
		{`{"properties":{"a":{"properties":{"b":{"x":1}},"y":1}},"z":1}`, "/properties/a/properties/b/x /properties/a/y /z"},
		{`{"const":[1e1234567890123456789,{"a":1e1234567890123456789}]}`, "/const/0 /const/1/a"},
	} {
		var got []string
		for _, f := range faults(t, c.src) {
			got = append(got, f.Pointer)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: faults at %q, want %q", c.src, got, c.want)
		}
	}
}

// TestLoops tells references that consume input from those that do not.
func TestLoops(t *testing.T) {
	for _, c := range []struct{ src, pointer string }{
		{`{"items":{"$ref":"#"}}`, ""},
		{`{"properties":{"a":{"$ref":"#"}},"required":["a"]}`, ""},
		{`{"additionalProperties":{"allOf":[{"$ref":"#"}]}}`, ""},
		{`{"anyOf":[{"items":{"$ref":"#"}},{"type":"null"}]}`, ""},
		{`{"not":{"properties":{"a":{"$ref":"#"}}}}`, ""},
		{`{"oneOf":[{"$ref":"#"}]}`, "/oneOf/0/$ref"},
		{`{"anyOf":[true,{"$ref":"#"}]}`, "/anyOf/1/$ref"},
		{`{"items":{"allOf":[{"$ref":"#/definitions/a"}]},"definitions":{"a":{"items":{"$ref":"#/definitions/a"}}}}`, ""},
		{`{"definitions":{"a":{"$ref":"#/definitions/a"}}}`, "/definitions/a/$ref"},
		{`{"definitions":{"a":{"not":{"$ref":"#/definitions/b"}},"b":{"not":{"$ref":"#/definitions/a"}}}}`, "/definitions/b/not/$ref"},
		{`{"definitions":{"a":{"not":{"$ref":"#/definitions/b"}},"b":{"items":{"$ref":"#/definitions/a"}}}}`, ""},
		{`{"$ref":"#/definitions/a","definitions":{"a":{"anyOf":[{"$ref":"#"},{"type":"null"}]}}}`, "/definitions/a/anyOf/0/$ref"},
		{`{"$ref":"#/definitions/a","definitions":{"a":{"anyOf":[{"items":{"$ref":"#"}},{"type":"null"}]}}}`, ""},
	} {
		if c.pointer == "" {
			schematest.MustCompile(t, c.src)
			continue
		}
		got := faults(t, c.src)
		if len(got) == 0 || !strings.Contains(got[0].Message, "leads back to itself") || !slices.ContainsFunc(got, func(f schema.Fault) bool { return f.Pointer == c.pointer }) {
			t.Errorf("%s: got %v, want a loop at %s", c.src, got, c.pointer)
		}
	}
}

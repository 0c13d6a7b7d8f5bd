package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/internal/schematest"
)

// describe walks the view and writes what it finds, one fact on a line.
func describe(b *strings.Builder, n schema.Node, indent string) {
	say := func(format string, args ...any) { fmt.Fprintf(b, indent+format+"\n", args...) }
	if name, target, ok := n.Ref(); ok {
		say("ref %q to %q, %q", name, target.Pointer(), n.Title())
		return
	}
	if value, ok := n.Boolean(); ok {
		say("boolean %v", value)
		return
	}
	say("types %v title %q description %q", n.Types(), n.Title(), n.Description())
	if n.Default() != nil {
		say("default %s examples %q", n.Default(), n.Examples())
	}
	for _, l := range n.Enum() {
		say("enum %s %s %q", l.JSON, l.Type, l.Text)
	}
	if l, ok := n.Const(); ok {
		say("const %s %s", l.JSON, l.Type)
	}
	for _, p := range n.Properties() {
		say("property %q required=%v", p.Name, p.Required)
		describe(b, p.Schema, indent+"  ")
	}
	if n.HasObject() {
		say("required %q", n.Required())
	}
	if a, ok := n.Additional(); ok {
		say("additional")
		describe(b, a, indent+"  ")
	}
	if items, ok := n.Items(); ok {
		low, high := n.ItemCount()
		say("items %d..%d unique=%v", low, high, n.UniqueItems())
		describe(b, items, indent+"  ")
	}
	if low, high := n.Length(); low > 0 || high >= 0 || n.Pattern() != "" || n.Format() != "" {
		say("length %d..%d pattern %q as %q format %q", low, high, n.Pattern(), n.PatternRE2(), n.Format())
	}
	if bounds := n.Bounds(); bounds != (schema.Bounds{}) {
		say("bounds %+v", bounds)
	}
	for name, branches := range map[string][]schema.Node{"oneOf": n.OneOf(), "anyOf": n.AnyOf(), "allOf": n.AllOf()} {
		for _, branch := range branches {
			say("%s", name)
			describe(b, branch, indent+"  ")
		}
	}
	if not, ok := n.Not(); ok {
		say("not")
		describe(b, not, indent+"  ")
	}
}

func TestView(t *testing.T) {
	s := schematest.MustCompile(t, `{
		"title": "Review", "description": "d", "default": { "a" : 1 }, "examples": [ 1, "x" ],
		"type": ["object", "null"],
		"properties": {
			"z": {"$ref": "#/definitions/count", "title": "own title"},
			"a": {"enum": ["b\u00e9", 1.0, 1.5, null, [1], {"k": true}]},
			"self": {"$ref": "#"},
			"flag": true
		},
		"required": ["a", "hidden"],
		"additionalProperties": {"type": "string", "minLength": 1, "pattern": "^\\d", "format": "uri"},
		"definitions": {
			"count": {"type": "integer", "minimum": 0, "exclusiveMaximum": 1e3},
			"list": {"items": {"not": {"const": "x"}}, "maxItems": 5, "uniqueItems": true}
		}
	}`)
	var b strings.Builder
	describe(&b, s.Root(), "")
	for _, d := range s.Definitions() {
		fmt.Fprintf(&b, "definition %s at %s\n", d.Name, d.Schema.Pointer())
		describe(&b, d.Schema, "  ")
	}
	want := `types [object null] title "Review" description "d"
default {"a":1} examples ["1" "\"x\""]
property "z" required=false
  ref "count" to "/definitions/count", "own title"
property "a" required=true
  types [] title "" description ""
  enum "b\u00e9" string "bé"
  enum 1.0 integer ""
  enum 1.5 number ""
  enum null null ""
  enum [1] array ""
  enum {"k":true} object ""
property "self" required=false
  ref "" to "", ""
property "flag" required=false
  boolean true
required ["a" "hidden"]
additional
  types [string] title "" description ""
  length 1..-1 pattern "^\\d" as "^[\\x{30}-\\x{39}]" format "uri"
definition count at /definitions/count
  types [integer] title "" description ""
  bounds {Minimum:0 Maximum: ExclusiveMinimum: ExclusiveMaximum:1e3}
definition list at /definitions/list
  types [] title "" description ""
  items 0..5 unique=true
    types [] title "" description ""
    not
      types [] title "" description ""
      const "x" string
`
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	self := s.Root().Properties()[2].Schema
	if self == s.Root() || self.Resolve() != s.Root() {
		t.Error("a $ref must be another node than its target, and resolve to it")
	}
}

func TestViewDiscriminator(t *testing.T) {
	for _, c := range []struct {
		src, property string
		values        string
	}{
		{`{"oneOf":[{"properties":{"k":{"const":"a"}}},{"properties":{"k":{"enum":["b","c"]}}}]}`, "k", "[[a] [b c]]"},
		{`{"anyOf":[{"properties":{"x":{},"k":{"const":"a"}}},{"$ref":"#/definitions/b"}],
			"definitions":{"b":{"properties":{"k":{"$ref":"#/definitions/t"}}},"t":{"const":"b"}}}`, "k", "[[a] [b]]"},
		{`{"oneOf":[{"properties":{"k":{"const":"a"}}},{"properties":{"k":{"const":"a"}}}]}`, "", "[]"},
		{`{"oneOf":[{"properties":{"k":{"const":"a"}}},{"properties":{"k":{"const":1}}}]}`, "", "[]"},
		{`{"oneOf":[{"properties":{"k":{"const":"a"}}},{"type":"null"}]}`, "", "[]"},
		{`{"oneOf":[{"properties":{"k":{"const":"a"}}}]}`, "", "[]"},
		{`{}`, "", "[]"},
	} {
		property, values, ok := schematest.MustCompile(t, c.src).Root().Discriminator()
		if property != c.property || fmt.Sprint(values) != c.values || ok != (c.property != "") {
			t.Errorf("%s: %q %v %v", c.src, property, values, ok)
		}
	}
}

// TestDispatchIsSound holds dispatch by a property against the same branches
// behind a wrapper that prevents it.
func TestDispatchIsSound(t *testing.T) {
	const branches = `[{"properties":{"k":{"const":"a"},"v":{"type":"integer"}},"required":["k"]},
		{"properties":{"k":{"enum":["b","c"]},"v":{"type":"string"}}}]`
	for _, keyword := range []string{"oneOf", "anyOf"} {
		with := schematest.MustCompile(t, `{"`+keyword+`":`+branches+`}`)
		without := schematest.MustCompile(t, `{"`+keyword+`":`+strings.ReplaceAll(branches, `{"properties"`, `{"not":false,"allOf":[{"not":false}],"properties"`)+`}`)
		for _, doc := range []string{
			`{"k":"a","v":1}`, `{"k":"a","v":"x"}`, `{"k":"b","v":"x"}`, `{"v":"x","k":"c"}`, `{"v":1,"k":"c"}`, `{"v":1}`, `{"v":"x"}`, `{}`,
			`{"k":1}`, `{"k":"d"}`, `{"k":null,"v":1}`, `1`, `null`, `[]`, `{"\u006b":"\u0061","v":1}`, `{"k":"a","k":"a"}`, `{"k":["a"]}`, `{"x":{"k":"b"},"k":"a"}`,
		} {
			if with.Valid([]byte(doc)) != without.Valid([]byte(doc)) {
				t.Errorf("%s on %s: %v with dispatch", keyword, doc, with.Valid([]byte(doc)))
			}
			checkConsistent(t, with, []byte(doc))
		}
	}
}

// TestViewOfNothing asks a schema for what it does not have, and one that has
// each keyword.
func TestViewOfNothing(t *testing.T) {
	empty := schematest.MustCompile(t, `{}`).Root()
	_, additional := empty.Additional()
	_, items := empty.Items()
	_, not := empty.Not()
	_, constant := empty.Const()
	if empty.Required() != nil || empty.Properties() != nil || empty.HasObject() || empty.PatternRE2() != "" || empty.Pattern() != "" || empty.Format() != "" ||
		empty.OneOf() != nil || empty.AnyOf() != nil || empty.AllOf() != nil || empty.Enum() != nil || additional || items || not || constant || empty.IsZero() {
		t.Error("an empty schema has keywords")
	}
	if !(schema.Node{}).IsZero() {
		t.Error("no schema is one")
	}
	full := schematest.MustCompile(t, `{"oneOf":[{"type":"null"},{"minLength":1,"format":"uuid"}],"anyOf":[{"maxLength":2},true,{"pattern":"^\\d"}],"allOf":[{"required":["b","a"]}]}`).Root()
	one, some, all := full.OneOf(), full.AnyOf(), full.AllOf()
	if len(one) != 2 || len(some) != 3 || len(all) != 1 || one[1].Pointer() != "/oneOf/1" || some[2].Pointer() != "/anyOf/2" || all[0].Pointer() != "/allOf/0" {
		t.Fatalf("%d, %d and %d branches", len(one), len(some), len(all))
	}
	// Strings with a length alone have neither pattern nor format.
	if some[0].Pattern() != "" || some[0].PatternRE2() != "" || one[1].Format() != schema.FormatUUID || some[2].PatternRE2() == "" || some[2].Format() != "" {
		t.Error("wrong pattern or format")
	}
	if low, high := one[1].Length(); low != 1 || high >= 0 {
		t.Errorf("length %d to %d", low, high)
	}
	if got := fmt.Sprint(all[0].Required()); got != "[b a]" {
		t.Errorf("required %s", got)
	}
}

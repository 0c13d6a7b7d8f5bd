package schema_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/internal/schematest"
)

// describeFull writes what the view has of the full profile, one fact on a line; parts
// by their pointers.
func describeFull(n schema.Node) string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	part := func(what string, n schema.Node, ok bool) {
		if ok {
			say("%s %s", what, n.Pointer())
		}
	}
	if keyword, text := n.RefKeyword(); keyword != "" {
		_, target, _ := n.Ref()
		say("%s %q to %s", keyword, text, target.Pointer())
	}
	for _, p := range n.PatternProperties() {
		say("pattern %q as %q %s", p.Pattern, p.RE2, p.Schema.Pointer())
	}
	names, ok := n.PropertyNames()
	part("names", names, ok)
	if least, most := n.PropertyCount(); least > 0 || most >= 0 {
		say("%d..%d members", least, most)
	}
	for _, d := range n.DependentRequired() {
		say("%s requires %v", d.Name, d.Required)
	}
	for _, d := range n.DependentSchemas() {
		say("%s asks for %s", d.Name, d.Schema.Pointer())
	}
	if c, ok := n.Conditional(); ok {
		say("if %s", c.If.Pointer())
		part("then", c.Then, !c.Then.IsZero())
		part("else", c.Else, !c.Else.IsZero())
	}
	for _, p := range n.PrefixItems() {
		say("first %s", p.Pointer())
	}
	if c, ok := n.Contains(); ok {
		say("contains %s %d..%d", c.Schema.Pointer(), c.Least, c.Most)
	}
	left, ok := n.UnevaluatedProperties()
	part("members left", left, ok)
	left, ok = n.UnevaluatedItems()
	part("elements left", left, ok)
	if n.MultipleOf() != "" || n.FormatAnnotation() != "" {
		say("multiple of %s, format %s and %s", n.MultipleOf(), n.Format(), n.FormatAnnotation())
	}
	for _, d := range n.Definitions() {
		say("definition %s %s", d.Name, d.Schema.Pointer())
	}
	return b.String()
}

func TestViewFull(t *testing.T) {
	const draft7, draft2019 = schema.DialectDraft07, schema.Dialect201909
	for _, c := range []struct {
		schema  string
		dialect schema.Dialect
		want    string // of the root, lines separated by |
		unread  string
	}{
		{`{"patternProperties":{"^\\d":{},"b":true}}`, 0, `pattern "^\\d" as "^[\\x{30}-\\x{39}]" /patternProperties/^\d|pattern "b" as "b" /patternProperties/b`, "patternProperties"},
		{`{"propertyNames":{"maxLength":1},"minProperties":2,"maxProperties":3}`, 0, `names /propertyNames|2..3 members`, "propertyNames minProperties maxProperties"},
		{`{"dependentRequired":{"a":["b","c"],"d":[]}}`, 0, `a requires [b c]|d requires []`, "dependentRequired"},
		{`{"dependentSchemas":{"a":{"required":["b"]},"c":true}}`, 0, `a asks for /dependentSchemas/a|c asks for /dependentSchemas/c`, "dependentSchemas"},
		{`{"dependencies":{"a":["b"],"c":{}}}`, draft7, `a requires [b]|c asks for /dependencies/c`, "dependencies"},
		{`{"if":{},"then":{},"else":false,"dependentSchemas":{"":{}}}`, 0, ` asks for /dependentSchemas/|if /if|then /then|else /else`, "if then else dependentSchemas"},
		{`{"if":{},"else":{}}`, 0, `if /if|else /else`, "if else"},
		{`{"then":{},"minContains":2,"minProperties":0}`, 0, ``, ""},
		{`{"prefixItems":[{},true],"items":false}`, 0, `first /prefixItems/0|first /prefixItems/1`, "prefixItems items"},
		{`{"items":[{},true],"additionalItems":false}`, draft2019, `first /items/0|first /items/1`, "items additionalItems"},
		{`{"items":{},"additionalItems":false,"prefixItems":[{}]}`, draft2019, ``, ""},
		{`{"contains":{},"minContains":0,"maxContains":4}`, 0, `contains /contains 0..4`, "contains minContains maxContains"},
		{`{"contains":{},"maxContains":4}`, draft7, `contains /contains 1..-1`, "contains maxContains"},
		{`{"unevaluatedProperties":false,"unevaluatedItems":{"type":"null"}}`, 0, `members left /unevaluatedProperties|elements left /unevaluatedItems`, "unevaluatedProperties unevaluatedItems"},
		{`{"multipleOf":0.50}`, 0, `multiple of 0.50, format  and `, "multipleOf"},
		{`{"format":"uuid"}`, 0, `multiple of , format  and uuid`, ""},
		{`{"$defs":{"a":{}},"definitions":{"b":{}}}`, 0, `definition a /$defs/a|definition b /definitions/b`, ""},
		{`{"$ref":"#/$defs/a~1b","$defs":{"a/b":{}}}`, 0, `$ref "#/$defs/a~1b" to /$defs/a~1b|definition a/b /$defs/a~1b`, ""},
		{`{"$ref":"#x","$defs":{"a":{"$anchor":"x","$defs":{"c":{}}}}}`, 0, `$ref "#x" to /$defs/a|definition a /$defs/a`, ""},
		{`{"$dynamicRef":"#x","$defs":{"a":{"$dynamicAnchor":"x"}}}`, 0, `$dynamicRef "#x" to /$defs/a|definition a /$defs/a`, ""},
	} {
		root := full(t, c.schema, schema.CompileOptions{Dialect: c.dialect}).Root()
		want := strings.ReplaceAll(c.want, "|", "\n")
		if want != "" {
			want += "\n"
		}
		if got := describeFull(root); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.schema, got, want)
		}
		if got := strings.Join(root.Unread(), " "); got != c.unread {
			t.Errorf("%s: unread are %q, want %q", c.schema, got, c.unread)
		}
	}
}

// TestViewDropsNothing holds, on the official suites, that a program for the subset is
// told of every keyword that it would drop, and that a walk over the children reaches
// all that the accessors return.
func TestViewDropsNothing(t *testing.T) {
	for path, dialect := range fullSuites() {
		for _, groups := range suiteFiles(t, path) {
			for _, g := range groups {
				s, err := schema.CompileWith(g.Schema, schema.CompileOptions{Profile: schema.ProfileFull, Dialect: dialect})
				if err == nil {
					checkViewIsWhole(t, s)
				}
			}
		}
	}
}

// checkViewIsWhole walks all of a schema.
func checkViewIsWhole(t *testing.T, s *schema.Schema) {
	t.Helper()
	ignored := map[string]bool{}
	for _, r := range s.Remarks() {
		ignored[r.Pointer] = true
	}
	seen := map[schema.Node]bool{}
	var walk func(n schema.Node)
	walk = func(n schema.Node) {
		if seen[n] {
			return
		}
		seen[n] = true
		unread := n.Unread()
		for _, k := range n.Keywords() {
			if beyondSubset(n, k) && !slices.Contains(unread, k.Name) && !ignored[n.Pointer()+"/"+k.Name] {
				t.Errorf("%s: nothing says that %s at %q is beyond the subset", s.Source(), k.Name, n.Pointer())
			}
		}
		for _, c := range n.Children() {
			walk(c)
		}
		for _, part := range viewParts(n) {
			if !slices.Contains(n.Children(), part) {
				t.Errorf("%s: %s is no child", s.Source(), part.Pointer())
			}
		}
	}
	walk(s.Root())
}

// beyondSubset reports whether a keyword is one of the full profile that can fail a
// value, by the source alone.
func beyondSubset(n schema.Node, k schema.KeywordValue) bool {
	beside := func(name string) bool {
		return slices.ContainsFunc(n.Keywords(), func(k schema.KeywordValue) bool { return k.Name == name })
	}
	switch k.Name {
	case "then", "else":
		return beside("if")
	case "minContains", "maxContains":
		return beside("contains")
	case "minProperties":
		return string(k.JSON) != "0" && string(k.JSON) != "0.0"
	case "items":
		return k.JSON[0] == '[' && string(k.JSON) != "[]"
	case "additionalItems":
		items := slices.IndexFunc(n.Keywords(), func(k schema.KeywordValue) bool { return k.Name == "items" })
		return items >= 0 && n.Keywords()[items].JSON[0] == '['
	case "dependencies", "dependentRequired", "dependentSchemas", "patternProperties":
		return string(k.JSON) != "{}"
	case "multipleOf", "maxProperties", "propertyNames", "if", "contains", "prefixItems", "unevaluatedProperties", "unevaluatedItems":
		return true
	}
	return false
}

// viewParts lists what the accessors of a schema return.
func viewParts(n schema.Node) (all []schema.Node) {
	add := func(n schema.Node, ok bool) {
		if ok {
			all = append(all, n)
		}
	}
	for _, p := range n.PatternProperties() {
		add(p.Schema, true)
	}
	for _, d := range n.DependentSchemas() {
		add(d.Schema, true)
	}
	add(n.PropertyNames())
	add(n.UnevaluatedItems())
	add(n.UnevaluatedProperties())
	if c, ok := n.Conditional(); ok {
		add(c.If, true)
		add(c.Then, !c.Then.IsZero())
		add(c.Else, !c.Else.IsZero())
	}
	if c, ok := n.Contains(); ok {
		add(c.Schema, true)
	}
	return append(all, n.PrefixItems()...)
}

// TestViewKeywords holds that a schema shows as it was written.
func TestViewKeywords(t *testing.T) {
	s := full(t, `{ "x-order" : [ 1, 2 ], "readOnly":true,"title\u0021":"a","then":{}, "$ref":"#/$defs/a", "maxLength":1,"$defs":{"a":true} }`, schema.CompileOptions{})
	var got []string
	for _, k := range s.Root().Keywords() {
		got = append(got, k.Name+"="+string(k.JSON))
	}
	want := `x-order=[ 1, 2 ] readOnly=true title!="a" then={} $ref="#/$defs/a" maxLength=1 $defs={"a":true}`
	if strings.Join(got, " ") != want {
		t.Errorf("got %s", got)
	}
	branches := s.Root().AllOf()
	if len(branches) != 1 || fmt.Sprintf("%s", branches[0].Keywords()) != `[{$ref "#/$defs/a"}]` || branches[0].Resolve() != s.Definitions()[0].Schema {
		t.Errorf("a reference beside maxLength is %s", branches[0].Keywords())
	}
	if s.Definitions()[0].Schema.Keywords() != nil || schematest.MustCompile(t, `{}`).Root().Keywords() != nil {
		t.Error("keywords of nothing")
	}
	sub := schematest.MustCompile(t, `{"definitions":{"a":{"$ref":"#","title":"t"}}}`)
	if k := sub.Definitions()[0].Schema.Keywords(); len(k) != 2 || k[1].Name != "title" || sub.Root().Unread() != nil {
		t.Errorf("the subset has %s", k)
	}
}

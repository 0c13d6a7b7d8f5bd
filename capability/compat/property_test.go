package compat_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/capability/compat"
	"github.com/agentd/agentd/schema"
)

// schemas draws small schemas over a few types, names and bounds, so that two of
// them often overlap.
func schemas(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		kind := rapid.IntRange(0, 6).Draw(t, "kind")
		if depth == 0 {
			kind %= 4
		}
		sub := func(label string) string { return schemas(depth-1).Draw(t, label) }
		switch kind {
		case 0:
			return fmt.Sprintf(`{"type":"integer","minimum":%d,"maximum":%d}`, rapid.IntRange(0, 3).Draw(t, "low"), rapid.IntRange(2, 5).Draw(t, "high"))
		case 1:
			return rapid.SampledFrom([]string{`{"type":"number"}`, `{"type":"string"}`, `{"type":["string","null"]}`, `{}`}).Draw(t, "type")
		case 2:
			return rapid.SampledFrom([]string{`{"enum":["a","b"]}`, `{"enum":["a"]}`, `{"const":"b"}`, `{"enum":["a",1,null]}`}).Draw(t, "enum")
		case 3:
			return fmt.Sprintf(`{"type":"string","maxLength":%d}`, rapid.IntRange(0, 3).Draw(t, "maxLength"))
		case 4:
			return fmt.Sprintf(`{"type":"array","items":%s,"maxItems":%d}`, sub("items"), rapid.IntRange(0, 2).Draw(t, "maxItems"))
		case 5:
			return fmt.Sprintf(`{"anyOf":[%s,%s]}`, sub("one"), sub("other"))
		}
		required := rapid.SampledFrom([]string{`[]`, `["x"]`, `["x","y"]`}).Draw(t, "required")
		return fmt.Sprintf(`{"type":"object","properties":{"x":%s,"y":%s},"required":%s,"additionalProperties":%t}`,
			sub("x"), sub("y"), required, rapid.Bool().Draw(t, "open"))
	})
}

// values are payloads that hit the schemas of [schemas] often.
func values() []string {
	leaves := []string{`0`, `2`, `3.5`, `5`, `""`, `"a"`, `"b"`, `"abc"`, `null`, `true`, `[]`, `{}`}
	all := leaves
	for _, l := range leaves {
		all = append(all, "["+l+"]", `{"x":`+l+`}`, `{"x":"a","y":`+l+`}`, `{"x":`+l+`,"y":2,"z":1}`)
	}
	return all
}

// published is a capability f with these schemas, as its callers see it.
func published(input, output string) *capability.Published {
	return &capability.Published{Version: "1.0", Agent: "agent://a", ToolSchemas: map[string]capability.ToolSchema{
		"f": {InputSchema: json.RawMessage(input), OutputSchema: json.RawMessage(output)},
	}}
}

// What is not called breaking breaks no caller: each request that the old
// contract accepted is still accepted, and each new answer was an old one.
func TestCompatibleChangesBreakNobody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := schemas(2).Draw(t, "before"), schemas(2).Draw(t, "after")
		old, new := mustCompile(t, before), mustCompile(t, after)
		if !compat.Compare(published(before, `{}`), published(after, `{}`), compat.Both).Breaking() {
			for _, v := range values() {
				if old.Valid([]byte(v)) && !new.Valid([]byte(v)) {
					t.Fatalf("the request %s broke from\n%s to\n%s", v, before, after)
				}
			}
		}
		if !compat.Compare(published(`{}`, before), published(`{}`, after), compat.Both).Breaking() {
			for _, v := range values() {
				if new.Valid([]byte(v)) && !old.Valid([]byte(v)) {
					t.Fatalf("the answer %s broke from\n%s to\n%s", v, before, after)
				}
			}
		}
	})
}

// The two directions judge their own half and nothing of the other's, each
// witness shows its break, and breaking findings come first.
func TestReportsAreConsistent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) string { return schemas(2).Draw(t, label) }
		inOld, inNew, outOld, outNew := draw("in old"), draw("in new"), draw("out old"), draw("out new")
		old, new := published(inOld, outOld), published(inNew, outNew)
		both := compat.Compare(old, new, compat.Both)
		parts := map[compat.Direction]int{}
		compatible := false
		for _, f := range both.Findings {
			parts[f.Side]++
			if f.Breaking && compatible {
				t.Fatalf("a breaking finding after a compatible one: %+v", both.Findings)
			}
			compatible = compatible || !f.Breaking
			from, to := mustCompile(t, inOld), mustCompile(t, inNew)
			if f.Side == compat.Response {
				from, to = mustCompile(t, outNew), mustCompile(t, outOld)
			}
			if f.Breaking && f.Witness != nil && (!from.Valid(f.Witness) || to.Valid(f.Witness)) {
				t.Fatalf("the witness %s of %+v shows nothing", f.Witness, f)
			}
		}
		for _, side := range []compat.Direction{compat.Request, compat.Response} {
			if got := len(compat.Compare(old, new, side).Findings); got != parts[side] {
				t.Fatalf("%s alone has %d findings, together %d", side, got, parts[side])
			}
		}
		if same := compat.Compare(old, old, compat.Both); len(same.Findings) != 0 {
			t.Fatalf("a document differs from itself: %+v", same.Findings)
		}
	})
}

func mustCompile(t *rapid.T, source string) *schema.Schema {
	s, err := schema.Compile([]byte(source))
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	return s
}

// What a lock file says does not depend on the order of documents, and reading
// gives back what was written.
func TestLockRoundTrip(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		var docs []*capability.Document
		for i := range rapid.IntRange(0, 3).Draw(t, "agents") {
			src := fmt.Sprintf(`{"version":1,"agent":"agent://a%d","transports":[{"kind":"memory","topics":{"requests":"r"}}],"capabilities":[{"name":"f","description":%q,"inputSchema":%s}]}`,
				i, rapid.SampledFrom([]string{"", "words", "<é>"}).Draw(t, "description"), objects().Draw(t, "input"))
			doc, err := capability.Parse("c.json", []byte(src), capability.LoadOptions{ValidateSchemas: true})
			if err != nil {
				t.Fatal(err)
			}
			docs = append(docs, doc)
		}
		lock := compat.NewLock(docs...)
		data, err := lock.Encode()
		if err != nil {
			t.Fatal(err)
		}
		for i, j := 0, len(docs)-1; i < j; i, j = i+1, j-1 {
			docs[i], docs[j] = docs[j], docs[i]
		}
		reversed, err := compat.NewLock(docs...).Encode()
		if err != nil || string(reversed) != string(data) {
			t.Fatalf("%v\n%s\n%s", err, data, reversed)
		}
		path := filepath.Join(dir, "lock.json")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		read, err := compat.ReadLock(path)
		if err != nil || read.Version != compat.LockVersion || len(read.Peers) != len(docs) {
			t.Fatalf("%+v, %v", read, err)
		}
		if again, err := read.Encode(); err != nil || string(again) != string(data) {
			t.Fatalf("%v\n%s\n%s", err, data, again)
		}
		if r := read.Check(docs...); len(r.Findings) != 0 {
			t.Fatalf("nothing changed: %+v", r.Findings)
		}
		if len(docs) > 0 {
			if r := read.Check(docs[1:]...); len(r.Findings) != 1 || r.Findings[0].Agent != docs[0].Agent || r.Findings[0].Rule != compat.RuleRemoved {
				t.Fatalf("%s is gone: %+v", docs[0].Agent, r.Findings)
			}
		}
	})
}

// objects draws schemas that a capability can have: their root is an object.
func objects() *rapid.Generator[string] {
	return rapid.Map(schemas(1), func(s string) string { return `{"type":"object","properties":{"p":` + s + `}}` })
}

// A lock that an agent is not in yet reports what the agent adds, agent by
// agent in order.
func TestLockReportsAgentsInOrder(t *testing.T) {
	lock := compat.NewLock(document(t, base+other))
	b, err := capability.Parse("c.yaml", []byte("{version: 1, agent: agent://b, transports: [{kind: memory, topics: {requests: x}}], capabilities: [{name: h}]}"), capability.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range lock.Check(b).Findings {
		got = append(got, fmt.Sprintf("%s/%s %s %t", f.Agent, f.Capability, f.Rule, f.Breaking))
	}
	want := []string{"agent://a/f capability-removed true", "agent://a/g capability-removed true", "agent://b/h capability-added false"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

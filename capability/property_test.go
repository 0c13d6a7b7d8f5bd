package capability_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/capability"
)

// schemas draws schemas without annotations, some of whose properties and
// values are called like annotations.
func schemas(depth int) *rapid.Generator[map[string]any] {
	return rapid.Custom(func(t *rapid.T) map[string]any {
		s := map[string]any{}
		sub := func(label string) map[string]any { return schemas(depth-1).Draw(t, label) }
		kind := rapid.IntRange(0, 6).Draw(t, "kind")
		if depth == 0 {
			kind %= 3
		}
		switch kind {
		case 0:
			s["type"] = "string"
			s["maxLength"] = rapid.IntRange(0, 9).Draw(t, "maxLength")
		case 1:
			s["enum"] = []any{"title", map[string]any{"description": rapid.IntRange(0, 2).Draw(t, "value")}}
		case 2:
			s["minimum"] = rapid.IntRange(0, 9).Draw(t, "minimum")
		case 3:
			s["properties"] = map[string]any{"title": sub("title"), "a": sub("a")}
			s["required"] = []string{"a"}
		case 4:
			s["items"] = sub("items")
		case 5:
			s["anyOf"] = []any{sub("one"), sub("other")}
		case 6:
			s["not"] = sub("not")
			s["additionalProperties"] = false
		}
		return s
	})
}

func digestOf(t interface{ Fatal(...any) }, inputSchema map[string]any) string {
	src, err := json.Marshal(map[string]any{
		"version": 1, "agent": "agent://a", "transports": []any{map[string]any{"kind": "memory", "topics": map[string]any{"requests": "r"}}},
		"capabilities": []any{map[string]any{"name": "x", "inputSchema": inputSchema}},
	})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := capability.Parse("f.json", src, capability.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return doc.Digest()
}

// TestAnnotationsNeverChangeADigest annotates random schemas at random places.
func TestAnnotationsNeverChangeADigest(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		notes := rapid.SliceOfN(rapid.SampledFrom([]string{"", "title", "description", "default", "examples"}), 40, 40).Draw(rt, "notes")
		plain := schemas(3).Draw(rt, "schema")
		if digestOf(rt, plain) != digestOf(rt, annotated(plain, &notes).(map[string]any)) {
			rt.Fatalf("annotations change the digest of %v", plain)
		}
	})
}

// annotated copies a schema and spends notes on it and on the schemas in it.
func annotated(v any, notes *[]string) any {
	s, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := map[string]any{}
	for k, v := range s {
		switch k {
		case "items", "not":
			v = annotated(v, notes)
		case "anyOf":
			list := []any{}
			for _, b := range v.([]any) {
				list = append(list, annotated(b, notes))
			}
			v = list
		case "properties":
			members := map[string]any{}
			for name, p := range v.(map[string]any) {
				members[name] = annotated(p, notes)
			}
			v = members
		}
		out[k] = v
	}
	if len(*notes) > 0 {
		if note := (*notes)[0]; note != "" {
			out[note] = []any{"a note"}
		}
		*notes = (*notes)[1:]
	}
	return out
}

// TestAnyAssertionChangesADigest changes one number of a random schema.
func TestAnyAssertionChangesADigest(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := schemas(3).Draw(rt, "schema")
		text, err := json.Marshal(s)
		if err != nil {
			rt.Fatal(err)
		}
		var places []int
		for i := range len(text) - 1 {
			if text[i] == ':' && text[i+1] >= '0' && text[i+1] <= '8' {
				places = append(places, i+1)
			}
		}
		if len(places) == 0 {
			return
		}
		at := rapid.SampledFrom(places).Draw(rt, "at")
		changed := []byte(string(text))
		changed[at]++
		var other map[string]any
		if err := json.Unmarshal(changed, &other); err != nil {
			rt.Fatal(err)
		}
		if digestOf(rt, s) == digestOf(rt, other) {
			rt.Fatalf("one digest for\n%s\nand\n%s", text, changed)
		}
	})
}

// TestJSONAndYAMLAreOneFormat loads one document in both notations.
func TestJSONAndYAMLAreOneFormat(t *testing.T) {
	fromYAML := parse(t, reviewPR)
	asJSON := `{"version":1,"agent":"agent://pr-reviewer","transports":[{"kind":"memory","topics":{"requests":"agents.pr-reviewer.requests"}}],
"capabilities":[{"name":"review-pr","description":"Review a GitHub pull request.","timeoutMs":60000,"idempotent":true,"since":"1.1.0",
"inputSchema":{"type":"object","properties":{"prUrl":{"type":"string","description":"GitHub PR URL."},"severity":{"enum":["low","med","high"]}},"required":["prUrl","severity"],"additionalProperties":false},
"outputSchema":{"type":"object","properties":{"verdict":{"enum":["approve","request-changes","comment"]},"summary":{"type":"string"}},"required":["verdict","summary"]}}]}`
	fromJSON, err := capability.Parse("f.json", []byte(asJSON), validating)
	if err != nil {
		t.Fatal(err)
	}
	one, err := fromYAML.Published().JSON()
	if err != nil {
		t.Fatal(err)
	}
	other, err := fromJSON.Published().JSON()
	if err != nil || string(one) != string(other) {
		t.Errorf("%v\nYAML %s\nJSON %s", err, one, other)
	}
}

// TestTransportKeysBelongToTheirKind puts every key of every kind into every
// kind: it loads if it is one of its own, and is a fault otherwise.
func TestTransportKeysBelongToTheirKind(t *testing.T) {
	kinds := map[string]map[string]string{
		"memory": {"topics": "{requests: r}"},
		"nats":   {"servers": "[s]", "subjects": "{requests: r}"},
		"kafka":  {"brokers": "[b]", "topics": "{requests: r}"},
		"sqs":    {"region": "r", "queues": "{requests: r}"},
		"amqp":   {"url": "u", "queues": "{requests: r}"},
		"mqtt":   {"url": "u", "topics": "{requests: r}"},
	}
	optional := map[string]map[string]string{"kafka": {"ssl": "true", "sasl": "{mechanism: plain, username: u, passwordRef: p}"}}
	load := func(kind string, keys map[string]string) error {
		var b strings.Builder
		for k, v := range keys {
			fmt.Fprintf(&b, ", %s: %s", k, v)
		}
		_, err := capability.Parse("f.yaml", []byte("{version: 1, agent: agent://a, capabilities: [{name: x}], transports: [{kind: "+kind+b.String()+"}]}"), validating)
		return err
	}
	for kind, own := range kinds {
		if err := load(kind, own); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		for missing := range own {
			keys := map[string]string{}
			for k, v := range own {
				if k != missing {
					keys[k] = v
				}
			}
			if err := load(kind, keys); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("the key %q is missing", missing)) {
				t.Errorf("%s without %s: %v", kind, missing, err)
			}
		}
		for _, all := range []map[string]map[string]string{kinds, optional} {
			for other, keys := range all {
				for k, v := range keys {
					if _, mine := own[k]; mine {
						continue
					}
					with := map[string]string{k: v}
					for name, value := range own {
						with[name] = value
					}
					err := load(kind, with)
					if _, mine := optional[kind][k]; mine && err != nil || !mine && (err == nil || !strings.Contains(err.Error(), fmt.Sprintf("unknown key %q", k))) {
						t.Errorf("%s with %s of %s: %v", kind, k, other, err)
					}
				}
			}
		}
	}
}

// TestEveryFaultIsReportedOnce breaks a good file in several places at random
// and demands a fault for each, in the order of the file.
func TestEveryFaultIsReportedOnce(t *testing.T) {
	breaks := []struct{ from, to, pointer string }{
		{"version: 1", "version: 9", "/version"},
		{"agent: agent://pr-reviewer", "agent: pr-reviewer", "/agent"},
		{"kind: memory", "kind: memry", "/transports/0/kind"},
		{"timeoutMs: 60000", "timeoutMs: -1", "/capabilities/0/timeoutMs"},
		{"idempotent: true", "idempotent: maybe", "/capabilities/0/idempotent"},
		{"since:", "sinse:", "/capabilities/0/sinse"},
		{"prUrl: { type: string,", "prUrl: { type: strin,", "/capabilities/0/inputSchema/properties/prUrl/type"},
		{"additionalProperties: false", "additionalProperties: 0", "/capabilities/0/inputSchema/additionalProperties"},
		{"required: [verdict, summary]", "required: verdict", "/capabilities/0/outputSchema/required"},
	}
	rapid.Check(t, func(rt *rapid.T) {
		src := reviewPR
		var want []string
		for _, b := range breaks {
			if rapid.Bool().Draw(rt, b.pointer) {
				src = strings.Replace(src, b.from, b.to, 1)
				want = append(want, b.pointer)
			}
		}
		_, err := capability.Parse("f.yaml", []byte(src), validating)
		var got []string
		if le, ok := err.(*capability.LoadError); ok {
			for _, f := range le.Faults {
				got = append(got, f.Pointer)
				if f.Line == 0 || f.Column == 0 {
					rt.Fatalf("%v has no place", f)
				}
			}
		}
		if !reflect.DeepEqual(got, want) {
			rt.Fatalf("got  %v\nwant %v\nin %s", got, want, src)
		}
	})
}

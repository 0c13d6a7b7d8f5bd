package compat_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/capability/compat"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/schema"
)

func document(t testing.TB, capabilities string) *capability.Document {
	t.Helper()
	doc, err := capability.Parse("c.yaml", []byte("version: 1\nagent: agent://a\ntransports: [{kind: memory, topics: {requests: x}}]\ncapabilities:\n"+capabilities),
		capability.LoadOptions{ValidateSchemas: true})
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

const (
	base     = "  - {name: f, idempotent: true, inputSchema: {type: object, properties: {s: {enum: [low, high]}}, required: [s]}, outputSchema: {type: integer}}\n"
	narrowed = "  - {name: f, idempotent: true, inputSchema: {type: object, properties: {s: {enum: [low]}}, required: [s]}, outputSchema: {type: integer}}\n"
	required = "  - {name: f, idempotent: true, inputSchema: {type: object, properties: {s: {enum: [low, high]}, t: {type: string}}, required: [s, t]}, outputSchema: {type: integer}}\n"
	answers  = "  - {name: f, idempotent: true, inputSchema: {type: object, properties: {s: {enum: [low, high]}}, required: [s]}, outputSchema: {type: number}}\n"
	relaxed  = "  - {name: f, idempotent: true, inputSchema: {type: object, properties: {s: {enum: [low, mid, high]}}}, outputSchema: {const: 7}}\n"
	words    = "  - {name: f, idempotent: true, description: Now with words, inputSchema: {type: object, properties: {s: {enum: [low, high]}}, required: [s]}, outputSchema: {type: integer}}\n"
	once     = "  - {name: f, inputSchema: {type: object, properties: {s: {enum: [low, high]}}, required: [s]}, outputSchema: {type: integer}}\n"
	loose    = "  - {name: f, idempotent: true, inputSchema: {type: object, properties: {s: {enum: [low, high]}}, required: [s]}}\n"
	other    = "  - {name: g}\n"
)

func TestCompare(t *testing.T) {
	for _, test := range []struct {
		name, old, new string
		direction      compat.Direction
		breaking       bool
		rule           string
		side           compat.Direction
	}{
		{"nothing", base, base, compat.Both, false, "", ""},
		{"an enum value is gone", base, narrowed, compat.Both, true, "enum-narrowed", compat.Request},
		{"a member became required", base, required, compat.Both, true, "required-added", compat.Request},
		{"answers may be fractions", base, answers, compat.Both, true, "", compat.Response},
		{"the same, seen from requests", base, answers, compat.Request, false, "", ""},
		{"requests narrowed, seen from responses", base, narrowed, compat.Response, false, "", ""},
		{"more is accepted and less is answered", base, relaxed, compat.Both, false, "", ""},
		{"the other way round", relaxed, base, compat.Both, true, "", ""},
		{"words", base, words, compat.Both, false, compat.RuleDescription, ""},
		{"no longer idempotent", base, once, compat.Both, false, compat.RuleIdempotent, ""},
		{"answers no longer promised", base, loose, compat.Both, true, "", compat.Response},
		{"removed", base, other, compat.Both, true, compat.RuleRemoved, ""},
		{"added", base, base + other, compat.Both, false, compat.RuleAdded, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			old, new := document(t, test.old), document(t, test.new)
			report := compat.Compare(old.Published(), new.Published(), test.direction)
			if report.Breaking() != test.breaking {
				t.Fatalf("breaking %v: %+v", report.Breaking(), report.Findings)
			}
			found := test.rule == "" && test.side == ""
			for _, f := range report.Findings {
				found = found || (test.rule == "" || f.Rule == test.rule) && (test.side == "" || f.Side == test.side) && f.Breaking == test.breaking
				checkWitness(t, old, new, f)
			}
			if !found {
				t.Errorf("no finding %s %s among %+v", test.rule, test.side, report.Findings)
			}
		})
	}
}

// checkWitness holds a counterexample to what it claims.
func checkWitness(t *testing.T, old, new *capability.Document, f compat.Finding) {
	t.Helper()
	if f.Witness == nil {
		return
	}
	before, _ := old.Lookup(f.Capability)
	after, _ := new.Lookup(f.Capability)
	accepts := func(c *capability.Contract) bool { return c.Check(f.Witness).Verdict == schema.Valid }
	if f.Side == compat.Request && (!accepts(before.Input) || accepts(after.Input)) {
		t.Errorf("%s: %s is no request that broke", f.Rule, f.Witness)
	}
	if f.Side == compat.Response && (accepts(before.Output) || !accepts(after.Output)) {
		t.Errorf("%s: %s is no answer that broke", f.Rule, f.Witness)
	}
}

func TestCompareUnsupportedSchema(t *testing.T) {
	old := document(t, base).Published()
	new := document(t, base).Published()
	tool := new.ToolSchemas["f"]
	tool.InputSchema = json.RawMessage(`{"patternProperties":{}}`)
	new.ToolSchemas["f"] = tool
	if r := compat.Compare(old, new, compat.Both); !r.Breaking() || r.Findings[0].Rule != compat.RuleSchema {
		t.Errorf("%+v", r.Findings)
	}
}

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agentd.lock.json")
	if _, err := compat.ReadLock(path); !errors.Is(err, compat.ErrNoLock) {
		t.Errorf("no file: %v", err)
	}
	data, err := compat.NewLock(document(t, base)).Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := compat.NewLock(document(t, base)).Encode()
	if err != nil || !bytes.Equal(data, again) {
		t.Errorf("the same contracts lock differently: %v", err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	lock, err := compat.ReadLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if r := lock.Check(document(t, base)); len(r.Findings) != 0 {
		t.Errorf("nothing changed: %+v", r.Findings)
	}
	if r := lock.Check(document(t, narrowed)); !r.Breaking() {
		t.Errorf("a narrowed input: %+v", r.Findings)
	}
	if r := lock.Check(document(t, words)); r.Breaking() || len(r.Findings) != 1 {
		t.Errorf("new words: %+v", r.Findings)
	}
	if r := lock.Check(); !r.Breaking() {
		t.Errorf("the agent is gone: %+v", r.Findings)
	}
}

func TestReadLockRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"not JSON":    `{`,
		"unknown key": `{"lockVersion":1,"pears":{}}`,
		"a later one": `{"lockVersion":2,"peers":{}}`,
		"bad address": `{"lockVersion":1,"peers":{"a":{}}}`,
		"wrong agent": `{"lockVersion":1,"peers":{"agent://a":{"agent":"agent://b"}}}`,
		"empty entry": `{"lockVersion":1,"peers":{"agent://a":null}}`,
	} {
		path := filepath.Join(t.TempDir(), "lock")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := compat.ReadLock(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRender(t *testing.T) {
	report := compat.Compare(document(t, base).Published(), document(t, narrowed+other).Published(), compat.Both)
	var text, sarif, junit, js bytes.Buffer
	if err := errors.Join(report.WriteText(&text, output.Colors{}), report.WriteSARIF(&sarif, "c.yaml", "1"),
		report.WriteJUnit(&junit), report.WriteJSON(&js, output.JSONL)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "✗ BREAKING   [enum-narrowed] f request /s:") || !strings.Contains(text.String(), `for example: {"s":"high"}`) ||
		!strings.Contains(text.String(), "2 differences, 1 of them breaking") {
		t.Errorf("text:\n%s", &text)
	}
	var s struct {
		Version string
		Runs    []struct {
			Results []struct{ RuleID, Level string }
		}
	}
	if err := json.Unmarshal(sarif.Bytes(), &s); err != nil || s.Version != "2.1.0" || len(s.Runs[0].Results) != 2 || s.Runs[0].Results[0].Level != "error" {
		t.Errorf("sarif: %v\n%s", err, &sarif)
	}
	var j struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
	}
	if err := xml.Unmarshal(junit.Bytes(), &j); err != nil || j.Tests != 2 || j.Failures != 1 {
		t.Errorf("junit: %v\n%s", err, &junit)
	}
	if !strings.HasPrefix(js.String(), `{"compatible":false,"findings":[{"agent":"agent://a","capability":"f","side":"request","rule":"enum-narrowed","breaking":true`) {
		t.Errorf("json: %s", &js)
	}
	text.Reset()
	if err := (&compat.Report{}).WriteText(&text, output.Colors{}); err != nil || text.String() != "✓ no differences\n" {
		t.Errorf("%q, %v", &text, err)
	}
}

func ExampleCompare() {
	parse := func(input string) *capability.Published {
		doc, err := capability.Parse("c.yaml", []byte("version: 1\nagent: agent://a\ntransports: [{kind: memory, topics: {requests: x}}]\n"+
			"capabilities: [{name: f, inputSchema: "+input+"}]\n"), capability.LoadOptions{ValidateSchemas: true})
		if err != nil {
			panic(err)
		}
		return doc.Published()
	}
	report := compat.Compare(parse("{type: integer, maximum: 10}"), parse("{type: integer, maximum: 5}"), compat.Both)
	for _, f := range report.Findings {
		fmt.Println(f.Rule, f.Breaking, string(f.Witness))
	}
	// Output: range-narrowed true 6
}

package compat_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/capability/compat"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/contain"
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

// A schema that is published but not supported is a break, whichever document
// has it; the new document's fault is named first.
func TestCompareUnsupportedSchema(t *testing.T) {
	const good, bad, worse = `{"type":"string"}`, `{"patternProperties":{}}`, `{"type":"strng"}`
	for _, test := range []struct{ old, new, want string }{
		{good, bad, "/patternProperties"},
		{bad, good, "/patternProperties"},
		{bad, worse, "/type"},
	} {
		for side, compare := range map[compat.Direction]func(string, string) *compat.Report{
			compat.Request: func(old, new string) *compat.Report {
				return compat.Compare(published(old, `{}`), published(new, `{}`), compat.Both)
			},
			compat.Response: func(old, new string) *compat.Report {
				return compat.Compare(published(`{}`, old), published(`{}`, new), compat.Both)
			},
		} {
			r := compare(test.old, test.new)
			if len(r.Findings) != 1 || !r.Breaking() || r.Findings[0].Rule != compat.RuleSchema || r.Findings[0].Side != side || !strings.Contains(r.Findings[0].Message, test.want) {
				t.Errorf("%s to %s, %s: %+v", test.old, test.new, side, r.Findings)
			}
		}
	}
	// What does not change needs no check: nobody can tell the difference.
	if r := compat.Compare(published(bad, bad), published(bad, bad), compat.Both); len(r.Findings) != 0 {
		t.Errorf("unchanged: %+v", r.Findings)
	}
}

// A question that cannot be decided counts as a break.
func TestCompareUndecided(t *testing.T) {
	r := compat.Compare(published(`{"type":"array","minItems":1000000000}`, `{}`), published(`{"type":"array","items":{"type":"integer"}}`, `{}`), compat.Both)
	if !r.Breaking() || r.Findings[0].Rule != string(contain.RuleUndecided) {
		t.Errorf("%+v", r.Findings)
	}
}

// Old and New point into the old and the new schema on both sides, although
// responses are compared the other way round.
func TestPointersNameTheirSchema(t *testing.T) {
	const old, new = `{"type":"string","maxLength":5}`, `{"type":"string","pattern":"^a"}`
	for _, test := range []struct {
		report *compat.Report
		want   string
	}{
		{compat.Compare(published(old, `{}`), published(new, `{}`), compat.Both), `request pattern-added true "" "/pattern"; request length-widened false "/maxLength" ""`},
		{compat.Compare(published(`{}`, old), published(`{}`, new), compat.Both), `response length-widened true "/maxLength" ""; response pattern-added false "" "/pattern"`},
	} {
		var got []string
		for _, f := range test.report.Findings {
			got = append(got, fmt.Sprintf("%s %s %t %q %q", f.Side, f.Rule, f.Breaking, f.Old, f.New))
		}
		if strings.Join(got, "; ") != test.want {
			t.Errorf("got  %s\nwant %s", strings.Join(got, "; "), test.want)
		}
	}
}

// Breaking findings come first, then capabilities by name; those of one
// capability keep their order.
func TestFindingsAreSorted(t *testing.T) {
	const two = "  - {name: b, description: x, inputSchema: {type: string}}\n  - {name: a, description: x, inputSchema: {type: string}}\n"
	const changed = "  - {name: c}\n  - {name: a, description: y, inputSchema: {type: number}}\n"
	var got []string
	for _, f := range compat.Compare(document(t, two).Published(), document(t, changed).Published(), compat.Both).Findings {
		got = append(got, fmt.Sprintf("%s %s %t", f.Capability, f.Rule, f.Breaking))
	}
	want := "a type-changed true; b capability-removed true; a description-changed false; c capability-added false"
	if strings.Join(got, "; ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "; "), want)
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

// The forms that other programs read are pinned to the byte.
func TestRender(t *testing.T) {
	report := compat.Compare(document(t, base).Published(), document(t, narrowed+other).Published(), compat.Both)
	for name, write := range map[string]func(io.Writer) error{
		"text":  func(w io.Writer) error { return report.WriteText(w, output.Colors{}) },
		"sarif": func(w io.Writer) error { return report.WriteSARIF(w, "c.yaml", "1.2") },
		"junit": report.WriteJUnit,
		"json":  func(w io.Writer) error { return report.WriteJSON(w, output.JSON) },
		"jsonl": func(w io.Writer) error { return report.WriteJSON(w, output.JSONL) },
	} {
		want, err := os.ReadFile(filepath.Join("testdata", "report."+name))
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if err := write(&got); err != nil || got.String() != string(want) {
			t.Errorf("%s: %v\ngot\n%s\nwant\n%s", name, err, &got, want)
		}
		// Whatever part of the report a full disk cuts off, the writer hears of it.
		for room := range len(want) {
			if err := write(&fullDisk{room: room}); !errors.Is(err, errFull) {
				t.Fatalf("%s: with room for %d of %d bytes: %v", name, room, len(want), err)
			}
		}
	}
	for _, wellFormed := range []struct {
		name string
		read func([]byte, any) error
	}{{"sarif", json.Unmarshal}, {"junit", xml.Unmarshal}} {
		data, err := os.ReadFile(filepath.Join("testdata", "report."+wellFormed.name))
		if err != nil {
			t.Fatal(err)
		}
		var any struct{}
		if err := wellFormed.read(data, &any); err != nil {
			t.Errorf("%s: %v", wellFormed.name, err)
		}
	}
}

// Several findings of one rule declare it once.
func TestSARIFRules(t *testing.T) {
	var got bytes.Buffer
	report := compat.Compare(document(t, base).Published(), document(t, base+other+"  - {name: h}\n").Published(), compat.Both)
	if err := report.WriteSARIF(&got, "c.yaml", "1"); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(got.String(), `"id": "capability-added"`); n != 1 {
		t.Errorf("the rule is declared %d times:\n%s", n, &got)
	}
}

func TestRenderNothing(t *testing.T) {
	var text, js, junit bytes.Buffer
	empty := compat.Compare(document(t, base).Published(), document(t, base).Published(), compat.Both)
	if err := errors.Join(empty.WriteText(&text, output.Colors{}), empty.WriteJSON(&js, output.JSONL), empty.WriteJUnit(&junit)); err != nil {
		t.Fatal(err)
	}
	if text.String() != "✓ no differences\n" || js.String() != `{"compatible":true,"findings":[]}`+"\n" || !strings.Contains(junit.String(), `tests="0" failures="0"`) {
		t.Errorf("got %q, %q, %q", &text, &js, &junit)
	}
}

// A document cannot write to the terminal of whoever reads the report.
func TestTextIsPrintable(t *testing.T) {
	var got bytes.Buffer
	report := &compat.Report{Findings: []compat.Finding{{Capability: "f", Path: "/\x1b[31m", Message: "m\x07", Rule: "r", Witness: json.RawMessage("\"\x1b\"")}}}
	if err := report.WriteText(&got, output.Colors{}); err != nil || strings.ContainsAny(got.String(), "\x1b\x07") {
		t.Errorf("%q, %v", &got, err)
	}
}

var errFull = errors.New("no space left")

// fullDisk takes so many bytes and no more.
type fullDisk struct{ room int }

func (d *fullDisk) Write(p []byte) (int, error) {
	if len(p) > d.room {
		n := d.room
		d.room = 0
		return n, errFull
	}
	d.room -= len(p)
	return len(p), nil
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

// A long comparison tells after each capability how far it has come, over all agents.
func TestProgress(t *testing.T) {
	var got []string
	watch := compat.Options{Direction: compat.Both, Progress: func(done, total int) { got = append(got, fmt.Sprintf("%d/%d", done, total)) }}
	old, now := document(t, base), document(t, base+other)
	compat.CompareWith(old.Published(), now.Published(), watch)
	n := len(now.Capabilities)
	if len(got) != n || got[n-1] != fmt.Sprintf("%d/%d", n, n) {
		t.Errorf("a comparison of %d capabilities tells %q", n, got)
	}
	got = nil
	stranger := document(t, base)
	stranger.Agent = "agent://b"
	compat.NewLock(old).CheckWith(watch, now, stranger)
	n += len(stranger.Capabilities)
	if len(got) != n || got[0] != fmt.Sprintf("1/%d", n) || got[n-1] != fmt.Sprintf("%d/%d", n, n) {
		t.Errorf("a check of %d capabilities tells %q", n, got)
	}
}

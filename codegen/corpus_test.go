package codegen_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/schema"
)

var sample = flag.Bool("sample", false, "sample the values of testdata/corpus anew; it needs json-schema-faker")

// A corpusEntry is one schema of a fixture in testdata/corpus, with values and verdicts.
type corpusEntry struct {
	Capability string          `json:"capability"`
	Side       string          `json:"side"` // request or response
	Schema     json.RawMessage `json:"schema"`
	Values     []corpusValue   `json:"values"`
}

// A corpusValue is a value with the verdict of its schema.
type corpusValue struct {
	Value json.RawMessage `json:"value"`
	// Valid is the schema's verdict: a type must accept every valid value.
	Valid bool `json:"valid"`
	// Type is set for an invalid value that a type can refuse: a member is missing, or
	// there is one that a closed object does not have, or a text is not in an enum.
	Type bool `json:"type,omitempty"`
}

// name is that of the entry's contract, unique among all fixtures.
func (e corpusEntry) name(fixture string) string { return fixture + "-" + e.Capability + "-" + e.Side }

func corpusPath(fixture string) string { return filepath.Join("testdata", "corpus", fixture+".json") }

// corpusContracts are the fixtures' contracts, with the values that are kept for them.
var corpusContracts = sync.OnceValue(func() (all []contract) {
	for _, fixture := range slices.Sorted(maps.Keys(goldens())) {
		data, err := os.ReadFile(corpusPath(fixture))
		if err != nil {
			panic(err)
		}
		var entries []corpusEntry
		if err := json.Unmarshal(data, &entries); err != nil {
			panic(err)
		}
		for i, e := range entries {
			s, err := schema.Compile(e.Schema)
			if err != nil {
				panic(err)
			}
			c := contract{name: fmt.Sprintf("%s%d", fixture, i), schema: s, source: e.Schema}
			for _, v := range e.Values {
				text := string(v.Value)
				switch {
				case v.Valid:
					c.values = append(c.values, text)
					if withoutExtras(e.Schema, text) && !strings.Contains(text, `"":`) {
						c.plain = append(c.plain, text)
					}
				case v.Type:
					c.refused = append(c.refused, text)
				}
			}
			all = append(all, c)
		}
	}
	return all
})

// schemasOf are the schemas of a fixture.
func schemasOf(t *testing.T, fixture string) (entries []corpusEntry) {
	t.Helper()
	doc, err := capability.Load(goldens()[fixture])
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range doc.Capabilities {
		for side, of := range map[string]*capability.Contract{"request": c.Input, "response": c.Output} {
			if of != nil {
				entries = append(entries, corpusEntry{Capability: c.Name, Side: side, Schema: of.Source})
			}
		}
	}
	slices.SortFunc(entries, func(a, b corpusEntry) int { return strings.Compare(a.name(fixture), b.name(fixture)) })
	return entries
}

// The corpus is of the schemas that the fixtures have, and schema agrees with the judge
// that it was made with. The soundness tests put its values to the types of each language.
func TestCorpus(t *testing.T) {
	for fixture := range goldens() {
		if *sample {
			sampleCorpus(t, fixture)
		}
		data, err := os.ReadFile(corpusPath(fixture))
		if err != nil {
			t.Fatal(err)
		}
		var entries []corpusEntry
		if err := json.Unmarshal(data, &entries); err != nil {
			t.Fatal(err)
		}
		want := schemasOf(t, fixture)
		if len(entries) != len(want) {
			t.Fatalf("%s has %d schemas, want %d: run the test with -sample", fixture, len(entries), len(want))
		}
		for i, e := range entries {
			if e.name(fixture) != want[i].name(fixture) || compact(t, e.Schema) != compact(t, want[i].Schema) {
				t.Fatalf("%s is not what %s is now: run the test with -sample", e.name(fixture), want[i].name(fixture))
			}
			s, err := schema.Compile(e.Schema)
			if err != nil {
				t.Fatal(err)
			}
			if len(e.Values) < 3 {
				t.Errorf("%s has only %d values", e.name(fixture), len(e.Values))
			}
			for _, v := range e.Values {
				if s.Valid(v.Value) != v.Valid {
					t.Errorf("%s: %s is valid: %v, in the corpus %v", e.name(fixture), v.Value, !v.Valid, v.Valid)
				}
			}
		}
	}
}

// An answer is what ask.mjs says of one schema.
type answer struct {
	Fakes    []json.RawMessage `json:"fakes"`
	Verdicts []bool            `json:"verdicts"`
}

func ask(t *testing.T, entries []corpusEntry, values [][]string) (answers []answer) {
	t.Helper()
	type question struct {
		Schema json.RawMessage   `json:"schema"`
		Values []json.RawMessage `json:"values,omitempty"`
	}
	var questions []question
	for i, e := range entries {
		q := question{Schema: e.Schema}
		if values != nil {
			for _, v := range values[i] {
				q.Values = append(q.Values, json.RawMessage(v))
			}
		}
		questions = append(questions, q)
	}
	stdin, err := json.Marshal(questions)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join("testdata", "corpus", "ask.mjs"))
	cmd.Stdin, cmd.Stderr = bytes.NewReader(stdin), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &answers); err != nil {
		t.Fatal(err)
	}
	return answers
}

// sampleCorpus writes the corpus of a fixture: values by json-schema-faker and what can be
// broken in them, and values of other kinds, with ajv's verdicts.
func sampleCorpus(t *testing.T, fixture string) {
	t.Helper()
	entries := schemasOf(t, fixture)
	values := make([][]string, len(entries))
	byType := make([]map[string]bool, len(entries))
	for i, a := range ask(t, entries, nil) {
		s, err := schema.Compile(entries[i].Schema)
		if err != nil {
			t.Fatal(err)
		}
		add := func(text string) {
			if !slices.Contains(values[i], text) && len(text) < 600 {
				values[i] = append(values[i], text)
			}
		}
		c := contract{schema: s, source: entries[i].Schema}
		for _, fake := range a.Fakes {
			add(string(fake))
			if s.Valid(fake) && withoutExtras(c.source, string(fake)) {
				c.plain = append(c.plain, string(fake))
			}
		}
		byType[i] = map[string]bool{}
		for _, v := range c.invalid() {
			add(v)
			byType[i][v] = true
		}
		for _, other := range []string{`null`, `true`, `0`, `-1.5`, `""`, `"text"`, `[]`, `[1]`, `{}`, `{"":0}`} {
			add(other)
		}
	}
	var out bytes.Buffer
	out.WriteString("[\n")
	for i, a := range ask(t, entries, values) {
		s, err := schema.Compile(entries[i].Schema)
		if err != nil {
			t.Fatal(err)
		}
		e := entries[i]
		fmt.Fprintf(&out, " {\"capability\": %q, \"side\": %q, \"schema\": %s, \"values\": [", e.Capability, e.Side, compact(t, e.Schema))
		separator := "\n  "
		for j, text := range values[i] {
			v := corpusValue{Value: json.RawMessage(text), Valid: a.Verdicts[j], Type: byType[i][text]}
			if s.Valid(v.Value) != v.Valid {
				// JavaScript rounds what is beyond 2^53, in schemas and in values.
				t.Logf("left out, since ajv has it the other way: %s of %s", text, e.name(fixture))
				continue
			}
			fmt.Fprintf(&out, "%s%s", separator, compact(t, v))
			separator = ",\n  "
		}
		out.WriteString("]}")
		if i < len(entries)-1 {
			out.WriteByte(',')
		}
		out.WriteByte('\n')
	}
	out.WriteString("]\n")
	write(t, corpusPath(fixture), out.Bytes())
}

func compact(t *testing.T, v any) string {
	t.Helper()
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out.String())
}

package contain

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/internal/jsontree"
)

var update = flag.Bool("update", false, "write testdata/recorded.jsonl anew")

// recordedPath holds pairs of schemas, and all that this package says about them.
const recordedPath = "testdata/recorded.jsonl"

// recorded is a pair of schemas with what was said about it.
//
// The steps are a promise: [Budget] says that answers are the same on every
// machine, so that a pair which one release decides within a budget must not be
// undecided in the next because a search got longer without anybody noticing.
// Fewer steps are recorded too, or the next loss would go unnoticed.
type recorded struct {
	A        json.RawMessage `json:"a"`
	B        json.RawMessage `json:"b"`
	Answer   string          `json:"answer"` // with the witness or the reason
	Steps    int             `json:"steps"`
	Findings []string        `json:"findings,omitempty"`
	Sample   string          `json:"sample"` // of a
	// Violations are what the witness breaks in b.
	Violations []string `json:"violations,omitempty"`
}

// said is what is recorded beside the schemas, on lines of its own.
func (r *recorded) said() string {
	text := fmt.Sprintf("%s, %d steps, sample %s", r.Answer, r.Steps, r.Sample)
	return strings.Join(slices.Concat([]string{text}, r.Findings, r.Violations), "\n\t")
}

// record asks everything about a pair.
func record(t *testing.T, srcA, srcB []byte) recorded {
	t.Helper()
	a, errA := schema.Compile(srcA)
	b, errB := schema.Compile(srcB)
	if errA != nil || errB != nil {
		t.Fatalf("%s and %s: %v, %v", srcA, srcB, errA, errB)
	}
	budget := Budget{}
	got := recorded{A: srcA, B: srcB}
	p := newProver(context.Background(), budget, a, b)
	c := p.contained(p.roots[0], p.roots[1])
	got.Steps = p.budget.Steps - p.steps
	got.Answer = strings.TrimSpace(fmt.Sprintf("%s %s%s", c.Answer, c.Witness, c.Reason))
	if c.Reason != "" {
		got.Answer += fmt.Sprintf(" at %s %q", c.Side, c.Pointer)
	}
	if c.Answer == Refuted {
		if !a.Valid(c.Witness) || b.Valid(c.Witness) {
			t.Errorf("%s is no witness: %s in %s", c.Witness, srcA, srcB)
		}
		for _, v := range b.Validate(c.Witness) {
			got.Violations = append(got.Violations, fmt.Sprintf("%q %s: %s", v.Path, v.Keyword, v.Message))
		}
	}
	for _, f := range ExplainWithin(context.Background(), a, b, budget) {
		line := fmt.Sprintf("%s %s %q %q %q: %s", f.Direction, f.Rule, f.Path, f.A, f.B, f.Message)
		if f.Breaking {
			line = fmt.Sprintf("! %s: %s", line, f.Witness)
		}
		got.Findings = append(got.Findings, line)
	}
	sample, err := SampleWithin(context.Background(), a, budget)
	got.Sample = string(sample)
	if err != nil {
		got.Sample = err.Error()
	}
	return got
}

// TestRecorded holds answers, witnesses, findings, samples and steps to what is
// recorded. Where a change means to alter them, -update writes the file anew, and
// the review sees each difference.
func TestRecorded(t *testing.T) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	for i, want := range readRecorded(t) {
		got := record(t, want.A, want.B)
		if *update {
			if err := enc.Encode(got); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got.said() != want.said() {
			t.Errorf("line %d: %s in %s:\n\t%s\nrecorded:\n\t%s", i+1, want.A, want.B, got.said(), want.said())
		}
	}
	if *update {
		if err := os.WriteFile(recordedPath, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// readRecorded returns the pairs.
func readRecorded(t *testing.T) []recorded {
	t.Helper()
	data, err := os.ReadFile(recordedPath)
	if err != nil {
		t.Fatal(err)
	}
	var all []recorded
	for line := range bytes.Lines(data) {
		var r recorded
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("line %d: %v", len(all)+1, err)
		}
		all = append(all, r)
	}
	if len(all) < 300 {
		t.Fatalf("%d pairs: the file is cut short", len(all))
	}
	return all
}

// TestTermsMeanWhatFormsDo holds the terms that a form opens to, which the prover
// reasons about, to the validator, which the form is made for: each value has
// the term or its negation, whichever the validator says.
func TestTermsMeanWhatFormsDo(t *testing.T) {
	values := []string{
		`null`, `true`, `0`, `-1`, `1.0`, `2.5`, `3`, `9`, `""`, `"a"`, `"text"`, `"日本"`, `"2016-12-31T23:59:60Z"`, `"a:"`,
		`[]`, `[1]`, `[1,1.0]`, `[null,null]`, `[true,"a",{}]`, `{}`, `{"a":1}`, `{"b":2,"a":null}`, `{"kind":"a","other":[]}`, `{"p":{"v":1}}`, `{"extra":0.5}`,
	}
	for i, r := range readRecorded(t) {
		if i%2 != 0 { // enough to meet every keyword many times
			continue
		}
		a, errA := schema.Compile(r.A)
		b, errB := schema.Compile(r.B)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		p := newProver(t.Context(), Budget{Steps: 1 << 30}, a, b)
		for k := range p.forms {
			form := int32(k)
			for _, raw := range values {
				v, _ := jsontree.Build([]byte(raw), 0)
				want := p.forms[form].check(t.Context(), v.Raw) == schema.Valid
				yes, no := p.formOf(form, false), p.formOf(form, true)
				if p.holds(yes, v) != want || p.holds(no, v) == want {
					t.Fatalf("%s and %q: the form is %v", raw, p.forms[form].node.Pointer, !want)
				}
				if !p.isForm(yes) {
					continue // true or false
				}
				yes, no = p.open(yes), p.open(no)
				if p.holds(yes, v) != want || p.holds(no, v) == want {
					t.Errorf("%s and %q of %s or %s: the terms are %v and %v, want %v", raw, p.forms[form].node.Pointer, r.A, r.B, p.holds(yes, v), p.holds(no, v), want)
				}
				if again := p.negate(yes); p.holds(again, v) == want || p.holds(p.negate(again), v) != want {
					t.Errorf("%s and %q of %s or %s: the negation is wrong", raw, p.forms[form].node.Pointer, r.A, r.B)
				}
				s := sortOf(v)
				for _, id := range []termID{yes, no} {
					if may, must := p.bounds(id); p.holds(id, v) && may&s == 0 || !p.holds(id, v) && must&s != 0 {
						t.Errorf("%s and %q of %s or %s: out of bounds", raw, p.forms[form].node.Pointer, r.A, r.B)
					}
				}
			}
		}
	}
}

package contain_test

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/contain"
)

// fullPair is a pair of schemas over the whole vocabulary, as its source has it.
type fullPair struct {
	ID      string          `json:"id"`
	A       json.RawMessage `json:"a"`
	B       json.RawMessage `json:"b"`
	Subtype bool            `json:"subtype"`
	Dialect string          `json:"dialect"`
	Source  string          `json:"source"`
}

// fullPairs reads the pairs.
func fullPairs(t testing.TB) []fullPair {
	t.Helper()
	f, err := os.Open("../../testdata/conformance/containment-full/pairs.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []fullPair
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var p fullPair
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

// compile compiles both schemas of a pair.
func (p fullPair) compile() (a, b *schema.Schema, err error) {
	opts := schema.CompileOptions{Profile: schema.ProfileFull, AssertFormats: strings.Contains(p.ID, "optional/format")}
	switch p.Dialect {
	case "draft7":
		opts.Dialect = schema.DialectDraft07
	case "2019-09":
		opts.Dialect = schema.Dialect201909
	}
	if a, err = schema.CompileWith(p.A, opts); err == nil {
		b, err = schema.CompileWith(p.B, opts)
	}
	return a, b, err
}

// TestContainmentFull holds the prover to what others know of pairs over the whole
// vocabulary: no wrong answer but where the source is wrong, next to none undecided, and
// a witness for each refutation that both validators confirm.
func TestContainmentFull(t *testing.T) {
	answers, wrong := map[string]int{}, falseSources()
	reasons := map[string]int{}
	var times []time.Duration
	for _, p := range fullPairs(t) {
		a, b, err := p.compile()
		if err != nil {
			answers["refused"]++
			reasons[refusal(t, p, err)]++
			continue
		}
		start := time.Now()
		c := contain.IsSubschemaWithin(t.Context(), a, b, contain.Budget{Time: time.Minute}) // steps decide
		times = append(times, time.Since(start))
		if c.Answer == contain.Undecided {
			answers["undecided"]++
			t.Logf("undecided: %s (%s at %s)", p.ID, c.Reason, c.Pointer)
			continue
		}
		answers[c.Answer.String()]++
		if c.Answer == contain.Refuted && (!a.Valid(c.Witness) || b.Valid(c.Witness)) {
			t.Errorf("%s: %s is no witness", p.ID, c.Witness)
		}
		_, listed := wrong[p.ID]
		if agrees := (c.Answer == contain.Proven) == p.Subtype; agrees == listed {
			t.Errorf("%s is %v with witness %s, and the source says %v (listed as wrong: %v)\n%s\n%s", p.ID, c.Answer, c.Witness, p.Subtype, listed, p.A, p.B)
		}
	}
	slices.Sort(times)
	median, p99 := times[len(times)/2], times[len(times)*99/100]
	t.Logf("%v, refused for %v, median %v, p99 %v, longest %v", answers, reasons, median, p99, times[len(times)-1])
	if answers["undecided"] > 5 || answers["refused"] > 38 {
		t.Errorf("%v: more are left open than before", answers)
	}
	if median > 20*time.Millisecond { // microseconds, on an idle machine
		t.Errorf("the median is %v", median)
	}
}

// refusal is why the full profile refuses a pair: each of the reasons is documented.
func refusal(t *testing.T, p fullPair, err error) string {
	t.Helper()
	for part, reason := range map[string]string{
		"which RE2 cannot express":      "lookahead",
		"which is not in this document": "a reference out of the document",
		"which does not exist":          "a reference to nothing",
		"required must be an array":     "a malformed schema",
	} {
		if strings.Contains(err.Error(), part) {
			return reason
		}
	}
	t.Errorf("%s is refused: %v", p.ID, err)
	return "another reason"
}

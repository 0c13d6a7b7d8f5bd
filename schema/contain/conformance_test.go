package contain_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/contain"
	"github.com/agentd/agentd/schema/internal/schematest"
)

// pairsPath holds pairs of schemas of which it is known whether the first is
// contained in the second.
const pairsPath = "../../testdata/conformance/containment"

type pair struct {
	ID      string          `json:"id"`
	A       json.RawMessage `json:"a"`
	B       json.RawMessage `json:"b"`
	Subtype bool            `json:"subtype"`
}

func readPairs(t testing.TB, files ...string) []pair {
	t.Helper()
	var pairs []pair
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			var p pair
			if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			pairs = append(pairs, p)
		}
		if err := errors.Join(lines.Err(), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	return pairs
}

// tally counts the answers about pairs.
type tally struct {
	decided   int
	undecided map[contain.Reason]int
	times     []time.Duration
}

// judge asks about one pair and reports an answer that is wrong.
func (c *tally) judge(t *testing.T, p pair) {
	t.Helper()
	a, errA := schema.Compile(p.A)
	b, errB := schema.Compile(p.B)
	if errA != nil || errB != nil {
		t.Errorf("%s: does not compile: %v, %v", p.ID, errA, errB)
		return
	}
	start := time.Now()
	got := contained(a, b)
	c.times = append(c.times, time.Since(start))
	switch {
	case got.Answer == contain.Undecided:
		c.undecided[got.Reason]++
		t.Logf("undecided (%s at %s %q): %s: %s vs %s", got.Reason, got.Side, got.Pointer, p.ID, p.A, p.B)
		return
	case (got.Answer == contain.Proven) != p.Subtype:
		t.Errorf("%s: %s with witness %s; %s vs %s", p.ID, got.Answer, got.Witness, p.A, p.B)
	case got.Answer == contain.Refuted && (!a.Valid(got.Witness) || b.Valid(got.Witness)):
		t.Errorf("%s: %s is no witness", p.ID, got.Witness)
	}
	c.decided++
}

func TestContainmentPairs(t *testing.T) {
	for _, p := range readPairs(t, "testdata/containment.jsonl") {
		t.Run(p.ID, func(t *testing.T) {
			c := tally{undecided: map[contain.Reason]int{}}
			if c.judge(t, p); c.decided != 1 {
				t.Error("undecided")
			}
		})
	}
}

func TestContainmentConformance(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(pairsPath, "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no pairs at %s: %v", pairsPath, err)
	}
	c := tally{undecided: map[contain.Reason]int{}}
	for _, p := range readPairs(t, files...) {
		c.judge(t, p)
	}
	slices.Sort(c.times)
	t.Logf("%d of %d decided; undecided %v; median %v, p99 %v, longest %v", c.decided, len(c.times), c.undecided,
		c.times[len(c.times)/2], c.times[len(c.times)*99/100], c.times[len(c.times)-1])
	if c.decided*100 < len(c.times)*99 {
		t.Errorf("only %d of %d pairs are decided", c.decided, len(c.times))
	}
}

// TestFormatsAreDecided compares each format with each other one, and with
// some patterns and lengths.
func TestFormatsAreDecided(t *testing.T) {
	var parts []string
	for _, f := range []string{"uuid", "email", "uri", "uri-reference", "date-time"} {
		parts = append(parts, fmt.Sprintf(`{"type":"string","format":%q}`, f))
	}
	strings := append(slices.Clone(parts), `{"type":"string","maxLength":40}`, `{"type":"string","minLength":2}`, `{"type":"string","pattern":"^[a-z]"}`,
		`{"type":"string","pattern":"[0-9]$"}`, `{"type":"string","pattern":"^.*@.*$"}`, `{"type":"string","pattern":"^[^:]*:"}`)
	asked := 0
	for _, a := range parts {
		for _, b := range strings {
			for _, pair := range [][2]string{{a, b}, {b, a}, {a, `{"not":` + b + `}`}, {`{"type":"string","not":` + a + `}`, b}, {`{"type":"string","not":` + a + `}`, `{"not":` + b + `}`}} {
				x, y := schematest.MustCompile(t, pair[0]), schematest.MustCompile(t, pair[1])
				got := contained(x, y)
				if got.Answer == contain.Undecided {
					t.Errorf("undecided (%s): %s in %s", got.Reason, pair[0], pair[1])
				}
				if got.Answer == contain.Refuted && (!x.Valid(got.Witness) || y.Valid(got.Witness)) {
					t.Errorf("%s is no witness", got.Witness)
				}
				asked++
			}
		}
	}
	t.Logf("%d questions", asked)
}

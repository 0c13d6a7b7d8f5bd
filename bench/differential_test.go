package bench_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/contain"
)

// differentialFor is how long TestDifferential goes on beyond its seeds.
var differentialFor = flag.Duration("differential", 0, "how long to draw schemas beyond the seeds")

// dialectOf names a dialect for both validators.
func dialectOf(name string) (schema.Dialect, *santhosh.Draft) {
	switch name {
	case "draft7":
		return schema.DialectDraft07, santhosh.Draft7
	case "2019-09":
		return schema.Dialect201909, santhosh.Draft2019
	}
	return schema.Dialect202012, santhosh.Draft2020
}

// oracle compiles a schema by the other library.
func oracle(source []byte, draft *santhosh.Draft, formats bool) (*santhosh.Schema, error) {
	doc, err := santhosh.UnmarshalJSON(bytes.NewReader(source))
	if err != nil {
		return nil, err
	}
	c := santhosh.NewCompiler()
	c.DefaultDraft(draft)
	if formats {
		c.AssertFormat()
	}
	if err := c.AddResource("mem:///schema.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("mem:///schema.json")
}

// accepts is the other library's verdict.
func accepts(s *santhosh.Schema, payload []byte) bool {
	v, err := santhosh.UnmarshalJSON(bytes.NewReader(payload))
	return err == nil && s.Validate(v) == nil
}

// TestWitnesses has the other library confirm the witness of every refutation among the
// pairs of others.
func TestWitnesses(t *testing.T) {
	f, err := os.Open("../testdata/conformance/containment-full/pairs.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	confirmed, others, refuted := 0, 0, 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var p struct {
			ID, Dialect string
			A, B        json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		dialect, draft := dialectOf(p.Dialect)
		formats := strings.Contains(p.ID, "optional/format")
		opts := schema.CompileOptions{Profile: schema.ProfileFull, Dialect: dialect, AssertFormats: formats}
		a, errA := schema.CompileWith(p.A, opts)
		b, errB := schema.CompileWith(p.B, opts)
		if errA != nil || errB != nil {
			continue
		}
		c := contain.IsSubschema(a, b)
		if c.Answer != contain.Refuted {
			continue
		}
		refuted++
		x, errX := oracle(p.A, draft, formats)
		y, errY := oracle(p.B, draft, formats)
		switch {
		case errX != nil || errY != nil:
			t.Logf("%s: the other library refuses it: %v %v", p.ID, errX, errY)
			others++
		case !accepts(x, c.Witness) || accepts(y, c.Witness):
			if !excused(p.ID) {
				t.Errorf("%s: the other validator does not take %s for a witness\n%s\n%s", p.ID, c.Witness, p.A, p.B)
			}
			others++
		default:
			confirmed++
		}
	}
	t.Logf("%d refuted: %d witnesses confirmed, %d not judged by the other validator", refuted, confirmed, others)
}

// excused tells the pairs about which the other library is wrong: its patterns are Go's,
// where the dot matches U+2028 and carriage returns, which ECMA-262 excepts.
func excused(id string) bool {
	for _, part := range []string{"sat/allIt1.json", "sat/allIt2.json", "sat/allIt3.json", "sat/allOfPProp1.json"} {
		if strings.HasSuffix(id, part) {
			return true
		}
	}
	return false
}

// TestDifferential draws schemas over each vocabulary and payloads, and holds the
// verdicts to those of the other library.
func TestDifferential(t *testing.T) {
	for _, v := range vocabularies() {
		// The other library takes any character that is not ASCII for one of a URI reference.
		v.formats = slices.DeleteFunc(v.formats, func(name string) bool { return name == "uri-reference" })
		t.Run(v.name, func(t *testing.T) {
			end := time.Now().Add(*differentialFor / time.Duration(len(vocabularies())))
			schemas, payloads, valid := 0, 0, 0
			for seed := uint64(1); seed <= 1000 || time.Now().Before(end); seed++ {
				p, ok := v.problem(t, seed)
				if !ok {
					continue
				}
				_, draft := dialectOf(v.dialect)
				other, err := oracle([]byte(p.source), draft, v.formats != nil)
				if err != nil {
					t.Fatalf("seed %d: the other library refuses %s: %v", seed, p.source, err)
				}
				schemas++
				for i, payload := range p.payloads {
					payloads++
					if p.verdicts[i] {
						valid++
					}
					if want := accepts(other, payload); p.verdicts[i] != want {
						t.Errorf("seed %d: %s is valid=%v, and %v to the other library, by %s", seed, payload, p.verdicts[i], want, p.source)
					}
				}
			}
			t.Logf("%d schemas, %d payloads, %d of them valid", schemas, payloads, valid)
			if valid < payloads/5 || valid > payloads*4/5 {
				t.Error("the draw has become one-sided")
			}
		})
	}
}

// problem is a schema with payloads, and the verdicts of the engine.
type problem struct {
	source   string
	payloads []json.RawMessage
	verdicts []bool
}

// problem draws the problem of a seed. It reports false if the schema is one that the
// engine refuses: a reference that leads back to itself.
func (v vocabulary) problem(t *testing.T, seed uint64) (problem, bool) {
	t.Helper()
	d := v.draw(seed)
	p := problem{source: d.root()}
	mine, err := v.compile(p.source)
	if err != nil {
		if !strings.Contains(err.Error(), "without consuming input") {
			t.Fatalf("seed %d: %s is refused: %v", seed, p.source, err)
		}
		return p, false
	}
	for range 20 {
		payload := []byte(d.value(3))
		valid := mine.Valid(payload)
		if (len(mine.Validate(payload)) == 0) != valid {
			t.Fatalf("seed %d: %s has the violations %v by %s", seed, payload, mine.Validate(payload), p.source)
		}
		p.payloads, p.verdicts = append(p.payloads, payload), append(p.verdicts, valid)
	}
	return p, true
}

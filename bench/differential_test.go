package bench_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
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

// drawn draws schemas and payloads from small pools, so that they meet often.
type drawn struct{ *rand.Rand }

func (d drawn) pick(from ...string) string { return from[d.IntN(len(from))] }

func (d drawn) name() string { return d.pick("a", "b", "ab", "xa", "é") }

// schema draws a schema of 2020-12.
func (d drawn) schema(depth int) string {
	if depth == 0 {
		return d.pick("true", "false", "{}", `{"type":"string"}`, `{"type":"integer"}`, `{"const":1}`, `{"enum":[0,1.0,"a"]}`, `{"multipleOf":0.5}`,
			`{"maxLength":1}`, `{"pattern":"^a|é$"}`, `{"minimum":1}`, `{"exclusiveMaximum":2}`, `{"type":["string","null"]}`, `{"$ref":"#"}`, `{"$ref":"#/$defs/d"}`,
			`{"$dynamicRef":"#dyn"}`, `{"$ref":"#anc"}`)
	}
	s := func() string { return d.schema(depth - 1) }
	n := func() string { return d.pick("0", "1", "2", "3") }
	all := map[string]string{}
	for range 1 + d.IntN(4) {
		switch k := d.pick("multipleOf", "minProperties", "maxProperties", "patternProperties", "propertyNames", "dependentRequired", "dependentSchemas",
			"if", "then", "else", "contains", "minContains", "maxContains", "prefixItems", "items", "properties", "additionalProperties", "unevaluatedProperties",
			"unevaluatedItems", "allOf", "anyOf", "oneOf", "not", "type", "required", "minItems", "maxItems", "uniqueItems", "const"); k {
		case "multipleOf":
			all[k] = d.pick("1", "2", "0.5", "0.3")
		case "minProperties", "maxProperties", "minContains", "maxContains", "minItems", "maxItems":
			all[k] = n()
		case "patternProperties":
			all[k] = `{"` + d.pick("^a", "a$", "b", "^.$", "é") + `":` + s() + `}`
		case "properties", "dependentSchemas":
			all[k] = `{"` + d.name() + `":` + s() + `}`
		case "dependentRequired":
			all[k] = `{"` + d.name() + `":["` + d.name() + `"]}`
		case "prefixItems", "allOf", "anyOf", "oneOf":
			all[k] = `[` + s() + `,` + s() + `]`
		case "type":
			all[k] = d.pick(`"object"`, `"array"`, `["number","array"]`, `["object","integer"]`)
		case "required":
			all[k] = `["` + d.name() + `"]`
		case "uniqueItems":
			all[k] = "true"
		case "const":
			all[k] = d.value(1)
		default:
			all[k] = s()
		}
	}
	var parts []string
	for k, v := range all {
		parts = append(parts, fmt.Sprintf("%q:%s", k, v))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// root adds what references lead to.
func (d drawn) root() string {
	s := d.schema(3)
	if s[len(s)-1] != '}' || len(s) < 3 {
		return s
	}
	return s[:len(s)-1] + `,"$defs":{"d":` + d.schema(1) + `,"e":{"$anchor":"anc","$dynamicAnchor":"dyn","maxItems":2,"minProperties":1}}}`
}

// value draws a JSON value.
func (d drawn) value(depth int) string {
	most := 6
	if depth == 0 {
		most = 4
	}
	switch d.IntN(most) {
	case 0:
		return d.pick("0", "1", "1.0", "2", "0.5", "-1", "3e0", "0.9")
	case 1:
		return d.pick(`""`, `"a"`, `"ab"`, `"é"`, `"\u00e9"`)
	case 2:
		return d.pick("null", "true", "false")
	case 3:
		return d.pick("[]", "{}")
	case 4:
		var items []string
		for range 1 + d.IntN(3) {
			items = append(items, d.value(depth-1))
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	members := map[string]string{}
	for range 1 + d.IntN(4) {
		members[d.name()] = d.value(depth - 1)
	}
	var parts []string
	for k, v := range members {
		parts = append(parts, fmt.Sprintf("%q:%s", k, v))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// TestDifferential draws schemas over the whole vocabulary and payloads, and holds the
// verdicts to those of the other library.
func TestDifferential(t *testing.T) {
	end := time.Now().Add(*differentialFor)
	schemas, payloads, valid := 0, 0, 0
	for seed := uint64(1); seed <= 2000 || time.Now().Before(end); seed++ {
		d := drawn{rand.New(rand.NewPCG(seed, 16))}
		source := d.root()
		mine, err := schema.CompileWith([]byte(source), schema.CompileOptions{Profile: schema.ProfileFull})
		if err != nil {
			if !strings.Contains(err.Error(), "without consuming input") {
				t.Fatalf("seed %d: %s is refused: %v", seed, source, err)
			}
			continue
		}
		other, err := oracle([]byte(source), santhosh.Draft2020, false)
		if err != nil {
			t.Fatalf("seed %d: the other library refuses %s: %v", seed, source, err)
		}
		schemas++
		for range 20 {
			payload := []byte(d.value(3))
			payloads++
			got := mine.Valid(payload)
			if got {
				valid++
			}
			if want := accepts(other, payload); got != want {
				t.Fatalf("seed %d: %s is valid=%v, and %v to the other library, by %s", seed, payload, got, want, source)
			}
			if (len(mine.Validate(payload)) == 0) != got {
				t.Fatalf("seed %d: %s has the violations %v by %s", seed, payload, mine.Validate(payload), source)
			}
		}
	}
	t.Logf("%d schemas, %d payloads, %d of them valid", schemas, payloads, valid)
}

package schema_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/internal/schematest"
)

// A report says how many violations it leaves out, up to a bound that keeps the
// count from costing what the payload likes.
func TestOmittedViolationsAreCounted(t *testing.T) {
	const most = schema.MaxOmitted
	array := schematest.MustCompile(t, `{"type":"array","items":{"type":"string"}}`)
	object := schematest.MustCompile(t, `{"type":"object","properties":{"k":{"type":"array","items":{"type":"string"}}},"additionalProperties":false}`)
	for _, c := range []struct {
		limit, faults, listed, omitted int
	}{
		{0, 1, 1, 0}, {0, 100, 100, 0}, {0, 101, 100, 1}, {0, 900, 100, 800},
		{1, 7, 1, 6}, {3, 3, 3, 0}, {3, 4, 3, 1}, {500, 700, 500, 200},
		{2, most + 1, 2, most - 1}, {2, most + 2, 2, most}, {2, most + 3, 2, most}, {2, 3 * most, 2, most},
		{int(^uint(0) >> 1), 1000, 1000, 0},
	} {
		wrong := strings.TrimSuffix(strings.Repeat("1,", c.faults), ",")
		surplus := new(strings.Builder)
		for i := range c.faults {
			surplus.WriteString(`"n` + strconv.Itoa(i) + `":0,`)
		}
		for name, report := range map[string]schema.Report{
			"elements": array.WithLimits(schema.Limits{MaxViolations: c.limit}).Check([]byte("[" + wrong + "]")),
			"nested":   object.WithLimits(schema.Limits{MaxViolations: c.limit}).Check([]byte(`{"k":[` + wrong + `]}`)),
			"surplus":  object.WithLimits(schema.Limits{MaxViolations: c.limit}).Check([]byte(`{` + surplus.String() + `"k":[]}`)),
		} {
			if len(report.Violations) != c.listed || report.Omitted != c.omitted || report.Truncated != (c.omitted > 0) {
				t.Errorf("%s, limit %d, %d faults: %d listed, %d omitted, truncated %v", name, c.limit, c.faults,
					len(report.Violations), report.Omitted, report.Truncated)
			}
		}
	}
}

// The count is that of a report without a limit, combinators included, whose causes
// are bounded in any case.
func TestOmittedAgreesWithTheWholeReport(t *testing.T) {
	const branch = `{"type":"object","required":["a","b","c","d","e","f","g","h","i","j"]}`
	s := schematest.MustCompile(t, `{"type":"array","items":{"anyOf":[`+branch+`,{"type":"string"},{"oneOf":[`+branch+`,{"type":"boolean"}]}]}}`)
	doc := []byte(`[{}, 1, {"a":1}, {}, {"a":1,"b":2,"c":3}, "x", {}]`)
	whole := s.WithLimits(schema.Limits{MaxViolations: 1000}).Check(doc)
	if whole.Omitted != 0 || len(whole.Violations) < 30 {
		t.Fatalf("%d violations, %d omitted", len(whole.Violations), whole.Omitted)
	}
	for limit := 1; limit <= len(whole.Violations)+1; limit++ {
		r := s.WithLimits(schema.Limits{MaxViolations: limit}).Check(doc)
		if len(r.Violations)+r.Omitted != len(whole.Violations) || len(r.Violations) != min(limit, len(whole.Violations)) {
			t.Errorf("limit %d: %d listed and %d omitted of %d", limit, len(r.Violations), r.Omitted, len(whole.Violations))
		}
		for i, v := range r.Violations {
			if v != whole.Violations[i] {
				t.Fatalf("limit %d: violation %d is %v, want %v", limit, i, v, whole.Violations[i])
			}
		}
	}
}

// Names that JSON writes with six bytes each must not make a report larger than a
// record: the violation would stay out of the audit log.
func TestReportsFitARecord(t *testing.T) {
	s := schematest.MustCompile(t, `{"additionalProperties":{"$ref":"#"},"type":"object"}`).WithLimits(schema.Limits{MaxViolations: 1000})
	name := strings.Repeat(`\u0001`, 128)
	inner := new(strings.Builder)
	for i := range 1000 {
		inner.WriteString(`,"` + strconv.Itoa(i) + `":0`)
	}
	doc := "{" + inner.String()[1:] + "}"
	for range 20 {
		doc = `{"` + name + `":` + doc + `}`
	}
	report := s.Check([]byte(doc))
	data, err := json.Marshal(report.Violations)
	if err != nil || len(data) > 900_000 {
		t.Errorf("%d bytes of violations, %v", len(data), err)
	}
	if len(report.Violations) < 50 || len(report.Violations)+report.Omitted != 1000 {
		t.Errorf("%d listed, %d omitted", len(report.Violations), report.Omitted)
	}
}

package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agentd/agentd/schema/internal/schematest"
)

// ascending lists numbers in ascending order; each row holds spellings of one
// value. Neighbours differ by as little as float64 cannot show, so that an
// engine that rounds anywhere takes two rows for one.
func ascending() [][]string {
	return [][]string{
		{"-1e400", "-10E399", "-0.1e401"},
		{"-18446744073709551617"},
		{"-18446744073709551616", "-1844674407370955161.6e1"},
		{"-9223372036854775809"},
		{"-9223372036854775808", "-9223372036854775808.0"},
		{"-1000000000000000001"},
		{"-1000000000000000000", "-1e18", "-1000000000000000000.000"},
		{"-999999999999999999"},
		{"-9007199254740993"},
		{"-9007199254740992", "-9.007199254740992e15"},
		{"-2", "-2.0", "-20e-1"},
		{"-1.0000000000000000000000001"},
		{"-1", "-1e0", "-0.1E1", "-100e-2"},
		{"-0.9999999999999999999999999"},
		{"-1e-400", "-10e-401"},
		{"0", "-0", "0.0", "-0.000e+9", "0e999999999999999999"},
		{"1e-999999999999999999"},
		{"1e-400", "0.1e-399"},
		{"0.1", "1e-1", "0.10", "1E-01"},
		{"0.1000000000000000055511151231257827021181583404541015625"},
		{"0.99999999999999999999"},
		{"1", "1.0", "1e0", "1E+0", "10e-1", "0.01e2"},
		{"1.00000000000000000001"},
		{"9", "9.0", "90e-1"},
		{"10", "1e1", "1.0e1", "100E-1"},
		{"99.5", "995e-1", "0.0995e3"},
		{"9007199254740992", "9007199254740992.0"},
		{"9007199254740993", "9.007199254740993e15"},
		{"999999999999999999", "999999999999999999.0"},
		{"1000000000000000000", "1e18", "1E+18"},
		{"1000000000000000001"},
		{"9223372036854775807"},
		{"9223372036854775808", "9.223372036854775808e18"},
		{"18446744073709551615"},
		{"18446744073709551616", "184467440737095516160e-1"},
		{"1e308", "100e306"},
		{"1.7976931348623157e308"},
		{"1e400", "10e399", "0.001e403"},
		{"1e999999999999999999"},
	}
}

// TestNumbersInOrder holds each comparing keyword to the order of the list, for
// every pair of spellings: bounds take them in order, and const, enum and
// uniqueItems take spellings of one value for equal and no others.
func TestNumbersInOrder(t *testing.T) {
	rows := ascending()
	for i, row := range rows {
		for _, limit := range row {
			keywords := []struct {
				source string
				passes func(j int) bool
			}{
				{`{"minimum":` + limit + `}`, func(j int) bool { return j >= i }},
				{`{"maximum":` + limit + `}`, func(j int) bool { return j <= i }},
				{`{"exclusiveMinimum":` + limit + `}`, func(j int) bool { return j > i }},
				{`{"exclusiveMaximum":` + limit + `}`, func(j int) bool { return j < i }},
				{`{"minimum":` + limit + `,"maximum":` + limit + `}`, func(j int) bool { return j == i }},
				{`{"minimum":` + limit + `,"exclusiveMaximum":` + limit + `}`, func(int) bool { return false }},
				{`{"const":` + limit + `}`, func(j int) bool { return j == i }},
				{`{"enum":["` + limit + `",[` + limit + `],` + limit + `]}`, func(j int) bool { return j == i }},
				{`{"not":{"const":` + limit + `}}`, func(j int) bool { return j != i }},
			}
			for _, k := range keywords {
				s := schematest.MustCompile(t, k.source)
				for j, others := range rows {
					for _, number := range others {
						if got, want := s.Valid([]byte(number)), k.passes(j); got != want {
							t.Errorf("%s on %s: %v", k.source, number, got)
						}
					}
				}
			}
		}
	}
}

func TestNumbersAsElements(t *testing.T) {
	unique := schematest.MustCompile(t, `{"uniqueItems":true}`)
	var all []string
	for i, row := range ascending() {
		for _, spelling := range row[1:] {
			for _, doc := range []string{
				fmt.Sprintf(`[%s,%s]`, row[0], spelling), fmt.Sprintf(`[[%s],null,[%s]]`, spelling, row[0]),
				fmt.Sprintf(`[{"a":%s},{"a":%s}]`, row[0], spelling),
			} {
				if unique.Valid([]byte(doc)) {
					t.Errorf("%s: equal elements pass", doc)
				}
			}
		}
		all = append(all, row[i%len(row)])
	}
	if doc := "[" + strings.Join(all, ",") + "]"; !unique.Valid([]byte(doc)) {
		t.Errorf("%s: different elements are taken for equal", doc)
	}
}

// TestIntegers says which spellings are integers, at any size.
func TestIntegers(t *testing.T) {
	integer, number := schematest.MustCompile(t, `{"type":"integer"}`), schematest.MustCompile(t, `{"type":"number"}`)
	zeros := strings.Repeat("0", 300)
	for _, c := range []struct {
		number string
		want   bool
	}{
		{"0", true},
		{"-0", true},
		{"-0.0", true},
		{"0e-5", true},
		{"0.000e-999999999999999999", true},
		{"1", true},
		{"1.0", true},
		{"1.50e1", true},
		{"1.55e1", false},
		{"1.55e2", true},
		{"100e-2", true},
		{"100e-3", false},
		{"0.1e1", true},
		{"0.01e1", false},
		{"-12.5", false},
		{"-125e-1", false},
		{"-1250e-1", true},
		{"1e400", true},
		{"1e-400", false},
		{"1" + zeros + "e-300", true},
		{"1" + zeros + "e-301", false},
		{"0." + zeros + "1e301", true},
		{"0." + zeros + "1e300", false},
		{"9223372036854775808.5", false},
		{"92233720368547758085e-1", false},
		{"1e9999999999999999999", true},
		{"1e-9999999999999999999", false},
		{"0e9999999999999999999", true},
		{"1E+0000000000000000000000001", true},
		{"10e-0000000000000000000000001", true},
		{"1e-0000000000000000000000001", false},
	} {
		if got := integer.Valid([]byte(c.number)); got != c.want {
			t.Errorf("%.60s is an integer: %v", c.number, got)
		}
		if !number.Valid([]byte(c.number)) {
			t.Errorf("%.60s is no number", c.number)
		}
	}
}

// TestNumberGrammar lists texts that RFC 8259 section 6 does not allow.
func TestNumberGrammar(t *testing.T) {
	for _, src := range []string{`{}`, `{"type":"number"}`, `{"minimum":0}`, `{"enum":[1,2]}`, `{"not":{"type":"string"}}`} {
		s := schematest.MustCompile(t, src)
		for _, text := range []string{
			"01", "-01", "00", "+1", ".5", "-.5", "5.", "5.e1", "1e", "1e+", "1e-", "1e1.5", "1ee1", "--1", "-", "1_000", "0x10", "1f",
			"NaN", "Infinity", "-Infinity", "1,0", "１", "1 2", "0e", "-e1",
		} {
			for _, doc := range []string{text, "[" + text + "]", `{"a":` + text + `}`} {
				if text == "1,0" && doc[0] == '[' {
					continue // two elements
				}
				if s.Valid([]byte(doc)) || s.Check([]byte(doc)).Syntax == nil {
					t.Errorf("%s on %s: not malformed", src, doc)
				}
			}
		}
	}
}

// TestBoundsTogether draws the edges of several bounds at once.
func TestBoundsTogether(t *testing.T) {
	for _, c := range []struct {
		schema    string
		good, bad []string
	}{
		{`{"minimum":3,"exclusiveMinimum":2}`, []string{"3", "3.5"}, []string{"2.5", "2", "2.999"}},
		{`{"minimum":2,"exclusiveMinimum":3}`, []string{"3.1", "4"}, []string{"2.5", "2", "3"}},
		{`{"maximum":3,"exclusiveMaximum":4}`, []string{"3", "-3"}, []string{"3.5", "4"}},
		{`{"maximum":4,"exclusiveMaximum":3}`, []string{"2.9", "2"}, []string{"3", "4", "3.5"}},
		{`{"minimum":1,"maximum":1}`, []string{"1", "1.0", "10e-1"}, []string{"0", "2", "1.1", "0.9"}},
		{`{"exclusiveMinimum":1,"exclusiveMaximum":1}`, nil, []string{"0", "1", "2"}},
		{`{"exclusiveMinimum":1,"exclusiveMaximum":2}`, []string{"1.5", "1.000001"}, []string{"1", "2"}},
		{`{"type":"integer","exclusiveMinimum":1,"exclusiveMaximum":2}`, nil, []string{"1", "1.5", "2"}},
		{`{"minimum":5,"maximum":3}`, nil, []string{"2", "3", "4", "5", "6"}},
		{`{"minimum":-0.0,"maximum":0}`, []string{"0", "-0", "0e5"}, []string{"1e-99", "-1e-99"}},
		{`{"minimum":-999999999999999999,"maximum":999999999999999999}`, []string{"-999999999999999999", "999999999999999999", "1e17"},
			[]string{"1e18", "-1e18", "1000000000000000000", "-1000000000000000000"}},
		{`{"exclusiveMinimum":-999999999999999999,"exclusiveMaximum":999999999999999999}`, []string{"999999999999999998", "-999999999999999998"},
			[]string{"-999999999999999999", "999999999999999999"}},
		{`{"minimum":1.5,"maximum":2}`, []string{"1.5", "2", "1.75"}, []string{"1", "1.4", "2.1", "3"}},
		{`{"minimum":1e2,"maximum":1e3}`, []string{"100", "1000", "999.9"}, []string{"99.9", "1000.1", "99", "1001"}},
		{`{"items":{"maximum":0}}`, []string{"[]", "[0,-1]", `["x",null]`}, []string{"[1]", "[0,1]", "[0.1]"}},
	} {
		s := schematest.MustCompile(t, c.schema)
		for _, doc := range c.good {
			judge(t, s.Source(), s.Valid, doc, true)
		}
		for _, doc := range c.bad {
			judge(t, s.Source(), s.Valid, doc, false)
			checkConsistent(t, s, []byte(doc))
		}
	}
}

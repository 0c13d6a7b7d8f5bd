package contain_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/contain"
)

// TestManyRanges holds the answers about unions of many ranges, which are decided by
// sweeps over sorted limits, to trying every number that the limits tell apart.
func TestManyRanges(t *testing.T) {
	ranges := func(t *rapid.T, of string) string {
		n := rapid.IntRange(9, 14).Draw(t, "n")
		return fmt.Sprintf(`{%q:[%s]}`, of, series(n, func(int) string {
			low := rapid.IntRange(-9, 9).Draw(t, "low")
			limits := ""
			if rapid.IntRange(0, 9).Draw(t, "bounded below") > 0 {
				limits += fmt.Sprintf(`,%q:%d`, rapid.SampledFrom([]string{"minimum", "exclusiveMinimum"}).Draw(t, "lower"), low)
			}
			if limits == "" || rapid.IntRange(0, 9).Draw(t, "bounded above") > 0 {
				high := low + rapid.IntRange(-1, 4).Draw(t, "wide")
				limits += fmt.Sprintf(`,%q:%d`, rapid.SampledFrom([]string{"maximum", "exclusiveMaximum"}).Draw(t, "upper"), high)
			}
			return fmt.Sprintf(`{"type":%q%s}`, rapid.SampledFrom([]string{"integer", "number"}).Draw(t, "type"), limits)
		}))
	}
	var values []string
	for i := -80; i <= 80; i++ {
		values = append(values, fmt.Sprint(float64(i)/4))
	}
	c := newCounted()
	rapid.Check(t, func(t *rapid.T) {
		combinator := rapid.SampledFrom([]string{"oneOf", "anyOf"})
		a := compiled(t, ranges(t, combinator.Draw(t, "a")))
		source := ranges(t, combinator.Draw(t, "b"))
		if rapid.Bool().Draw(t, "beside a literal") {
			source = `{"anyOf":[{"enum":[-1,0,0.5,3]},` + source + `]}`
		}
		b := compiled(t, source)
		want := contain.Proven
		for _, v := range values {
			if a.Valid([]byte(v)) && !b.Valid([]byte(v)) {
				want = contain.Refuted
			}
		}
		got := contained(a, b)
		c.add(got)
		if got.Answer != want {
			t.Fatalf("%s (%s %s), want %s:\na: %s\nb: %s", got.Answer, got.Reason, got.Witness, want, a.Source(), b.Source())
		}
	})
	c.log(t)
}

// TestGapsBesideMultiples holds the answers about many ranges that are ruled out, beside
// values that are and divisors that are wanted or not, to trying every number there is.
func TestGapsBesideMultiples(t *testing.T) {
	var halves []string
	for i := -8; i <= 60; i++ {
		halves = append(halves, fmt.Sprint(float64(i)/2))
	}
	half := rapid.SampledFrom(halves)
	divisors := []string{`{}`, `{"multipleOf":1.5}`, `{"multipleOf":2}`, `{"not":{"multipleOf":1}}`, `{"not":{"multipleOf":1.5}}`, `{"not":{"anyOf":[{"multipleOf":2},{"multipleOf":3}]}}`}
	lower, upper := rapid.SampledFrom([]string{"minimum", "exclusiveMinimum"}), rapid.SampledFrom([]string{"maximum", "exclusiveMaximum"})
	c := newCounted()
	rapid.Check(t, func(t *rapid.T) {
		gaps := series(rapid.IntRange(9, 14).Draw(t, "n"), func(int) string {
			from := rapid.IntRange(0, len(halves)-1).Draw(t, "from")
			to := min(from+rapid.IntRange(0, 5).Draw(t, "wide"), len(halves)-1)
			low, high := lower.Draw(t, "low"), upper.Draw(t, "high")
			if rapid.Bool().Draw(t, "negated") {
				return fmt.Sprintf(`{"not":{"type":"number",%q:%s,%q:%s}}`, low, halves[from], high, halves[to])
			}
			return fmt.Sprintf(`{"anyOf":[{%q:%s},{%q:%s}]}`, high, halves[from], low, halves[to])
		})
		excluded := series(rapid.IntRange(1, 12).Draw(t, "excluded"), func(int) string { return half.Draw(t, "value") })
		a := mustFull(t, fmt.Sprintf(`{"type":%q,"minimum":-4,"maximum":30,"multipleOf":0.5,"not":{"enum":[%s]},"allOf":[%s,%s]}`,
			rapid.SampledFrom([]string{"integer", "number"}).Draw(t, "type"), excluded, rapid.SampledFrom(divisors).Draw(t, "divisor"), gaps))
		b := mustFull(t, rapid.SampledFrom(append(divisors[1:], `false`, `{"minimum":`+half.Draw(t, "least")+`}`)).Draw(t, "b"))
		want := contain.Proven
		for _, v := range halves {
			if a.Valid([]byte(v)) && !b.Valid([]byte(v)) {
				want = contain.Refuted
			}
		}
		got := contained(a, b)
		c.add(got)
		if got.Answer != want {
			t.Fatalf("%s (%s %s), want %s:\na: %s\nb: %s", got.Answer, got.Reason, got.Witness, want, a.Source(), b.Source())
		}
	})
	c.log(t)
}

func compiled(t *rapid.T, source string) *schema.Schema {
	s, err := schema.Compile([]byte(source))
	if err != nil {
		t.Fatalf("%v: %s", err, source)
	}
	return s
}

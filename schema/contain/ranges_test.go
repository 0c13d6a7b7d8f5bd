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

func compiled(t *rapid.T, source string) *schema.Schema {
	s, err := schema.Compile([]byte(source))
	if err != nil {
		t.Fatalf("%v: %s", err, source)
	}
	return s
}

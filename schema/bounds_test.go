package schema

import (
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestBounds holds the fast way to compare integers with bounds against the
// exact one.
func TestBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
		limits := map[string]string{}
		var parts []string
		for _, w := range words {
			if rapid.Bool().Draw(t, w+" present") {
				limits[w] = rapid.StringMatching(`-?(0|[1-9][0-9]?|[1-9][0-9]{15,20})(\.5|\.0)?`).Draw(t, w)
				parts = append(parts, `"`+w+`":`+limits[w])
			}
		}
		s, err := Compile([]byte("{" + strings.Join(parts, ",") + "}"))
		if err != nil {
			t.Fatal(err)
		}
		value := rapid.OneOf(rapid.StringMatching(`-?(0|[1-9][0-9]?|[1-9][0-9]{15,20})(\.5|\.0|e1)?`), rapid.SampledFrom([]string{
			"0", limits["minimum"], limits["maximum"], limits["exclusiveMinimum"], limits["exclusiveMaximum"],
		})).Draw(t, "value")
		if value == "" {
			value = "1"
		}
		want := true
		for w, limit := range limits {
			given, okGiven := new(big.Rat).SetString(value)
			bound, okBound := new(big.Rat).SetString(limit)
			if !okGiven || !okBound {
				t.Fatalf("%s and %s", value, limit)
			}
			order := given.Cmp(bound)
			want = want && map[string]bool{
				"minimum": order >= 0, "maximum": order <= 0, "exclusiveMinimum": order > 0, "exclusiveMaximum": order < 0,
			}[w]
		}
		if got := s.Valid([]byte(value)); got != want {
			t.Fatalf("%s on %s: %v", s.Source(), value, got)
		}
	})
}

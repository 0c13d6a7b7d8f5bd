package decimal

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// token draws the text of a JSON number whose exact value math/big can hold.
func token(t *rapid.T, label string) string {
	return rapid.StringMatching(`-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,2})?`).Draw(t, label)
}

func rat(t *rapid.T, token string) *big.Rat {
	r, ok := new(big.Rat).SetString(token)
	if !ok {
		t.Fatalf("math/big refuses %q", token)
	}
	return r
}

// respell writes the same value in another way: the point moved, zeros added.
func respell(t *rapid.T, token string) string {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(token), "e")
	e := 0
	if exponent != "" {
		if _, err := fmt.Sscan(strings.TrimPrefix(exponent, "+"), &e); err != nil {
			t.Fatal(err)
		}
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	neg := strings.HasPrefix(whole, "-")
	digits := strings.TrimPrefix(whole, "-") + fraction + strings.Repeat("0", rapid.IntRange(0, 5).Draw(t, "zeros"))
	e += len(strings.TrimPrefix(whole, "-"))
	digits = strings.TrimLeft(digits, "0")
	e -= len(strings.TrimPrefix(whole, "-")+fraction) - len(strings.TrimLeft(strings.TrimPrefix(whole, "-")+fraction, "0"))
	if digits == "" {
		return "0.00e5"
	}
	text := fmt.Sprintf("0.%se%d", digits, e)
	if neg {
		return "-" + text
	}
	return text
}

func TestDecimalAgainstBig(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := token(t, "a"), token(t, "b")
		if rapid.Bool().Draw(t, "same value") {
			b = respell(t, a)
		}
		da, db := Parse([]byte(a)), Parse([]byte(b))
		want := rat(t, a).Cmp(rat(t, b))
		if got := da.Compare(db); got != want {
			t.Fatalf("%s against %s: %d, want %d", a, b, got, want)
		}
		if got := db.Compare(da); got != -want {
			t.Fatalf("%s against %s: %d, want %d", b, a, got, -want)
		}
		ka, kb := string(da.AppendKey(nil)), string(db.AppendKey(nil))
		if (ka == kb) != (want == 0) {
			t.Fatalf("%s and %s have keys %q and %q", a, b, ka, kb)
		}
		if got := da.IsInteger(); got != rat(t, a).IsInt() {
			t.Fatalf("isInteger(%s) = %v", a, got)
		}
	})
}

func TestSmallInt(t *testing.T) {
	for token, want := range map[string]int64{
		"0": 0, "-0": 0, "7": 7, "-12": -12, "999999999999999999": 999999999999999999, "-999999999999999999": -999999999999999999,
	} {
		if got, ok := SmallInt([]byte(token)); !ok || got != want {
			t.Errorf("smallInt(%s) = %d, %v", token, got, ok)
		}
	}
	if _, ok := SmallInt([]byte("1000000000000000000")); ok {
		t.Error("19 digits count as small")
	}
}

// TestHugeExponents checks the arithmetic on exponents that no machine word
// holds: numbers are equal exactly if digits and exponents are.
func TestHugeExponents(t *testing.T) {
	nines := strings.Repeat("9", 30)
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"1e" + nines, "1e" + nines, true},
		{"1e" + nines, "1e00" + nines, true},
		{"1e" + nines, "1e+" + nines, true},
		{"1e" + nines, "1e-" + nines, false},
		{"1e" + nines, "-1e" + nines, false},
		{"1e1" + strings.Repeat("0", 30), "10e" + nines, true},
		{"0.1e1" + strings.Repeat("0", 30), "1e" + nines, true},
		{"100e-1" + strings.Repeat("0", 30), "1e-" + strings.Repeat("9", 29) + "8", true},
		{"0.001e-" + nines, "1e-1" + strings.Repeat("0", 29) + "2", true},
		{"12.5e" + nines, "1.25e1" + strings.Repeat("0", 30), true},
		{"12.5e" + nines, "1.26e1" + strings.Repeat("0", 30), false},
		{"0e" + nines, "-0.0e-" + nines, true},
		{"1e" + nines, "2e" + nines, false},
	} {
		a, b := Parse([]byte(c.a)), Parse([]byte(c.b))
		ka, kb := string(a.AppendKey(nil)), string(b.AppendKey(nil))
		if (ka == kb) != c.same {
			t.Errorf("%s and %s: keys %s and %s", c.a, c.b, ka, kb)
		}
	}
	one := Parse([]byte("1"))
	for token, want := range map[string]int{
		"1e" + nines: 1, "-1e" + nines: -1, "1e-" + nines: -1, "0e" + nines: -1, "-1e-" + nines: -1,
	} {
		if got := Parse([]byte(token)).Compare(one); got != want {
			t.Errorf("%s against 1: %d, want %d", token, got, want)
		}
	}
	if !Parse([]byte("1e"+nines)).IsInteger() || Parse([]byte("1e-"+nines)).IsInteger() {
		t.Error("isInteger is wrong for exponents of 30 digits")
	}
}

// TestSumsOfLongNumbers holds the arithmetic on exponents that no int64 holds to
// math/big, with carries and borrows of every length.
func TestSumsOfLongNumbers(t *testing.T) {
	for _, digits := range []string{
		"1" + strings.Repeat("0", 18), "1" + strings.Repeat("0", 30), strings.Repeat("9", 19), strings.Repeat("9", 40), "12345678901234567890123", "5" + strings.Repeat("9", 25), "10" + strings.Repeat("9", 20),
	} {
		whole, _ := new(big.Int).SetString(digits, 10)
		for _, add := range []int64{0, 1, -1, 9, -9, 10, -10, 11, 99, -99, 100, 8_765_432, -8_765_432, 999_999_999_999_999_999, -999_999_999_999_999_999} {
			want := "k" + new(big.Int).Add(whole, big.NewInt(add)).String()
			if got := string(appendSum([]byte("k"), []byte(digits), add)); got != want {
				t.Errorf("%s + %d: %s, want %s", digits, add, got, want)
			}
		}
	}
}

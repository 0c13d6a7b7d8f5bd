package ir

import (
	"math/bits"

	"github.com/agentd/agentd/schema/internal/decimal"
	"github.com/agentd/agentd/schema/internal/pattern"
)

// Beyond holds the keywords outside of the subset that judge a value as a whole. They
// hang off a node by one pointer, so that the subset pays for a comparison with nil.
type Beyond struct {
	Conditionals []Conditional
	// Members and Elements are the schemas of unevaluatedProperties and
	// unevaluatedItems, for what no other keyword here has judged. nil where absent.
	Members, Elements *Node
}

// Conditional is if with then and else, or one entry of dependentSchemas: there If is
// a schema made up for it, which asks for the member, and Dependent is its name. Then
// and Else are nil where absent.
type Conditional struct {
	If, Then, Else *Node
	Dependent      *string
}

// Arm returns what a value must also pass, given whether it passes If; nil for
// nothing.
func (c *Conditional) Arm(passes bool) *Node {
	if passes {
		return c.Then
	}
	return c.Else
}

// FullArray holds the keywords about arrays that are not in the subset.
type FullArray struct {
	// Prefix judges the first elements, one schema for each; the rule's Items
	// judges those behind them.
	Prefix []*Node
	// Contains is nil where it is absent. Least and Most are minContains and
	// maxContains.
	Contains    *Node
	Least, Most int
	// Counts says that an element which contains accepts is evaluated, as 2020-12
	// has it.
	Counts bool
}

// FullObject holds the keywords about objects that are not in the subset.
type FullObject struct {
	Min, Max   int // the number of members
	Patterns   []PatternProperty
	Names      *Node // propertyNames; nil where absent
	Dependents []Dependent
}

// PatternProperty is one entry of patternProperties.
type PatternProperty struct {
	Pattern *pattern.Pattern
	Node    *Node
}

// Dependent is one entry of dependentRequired: if the member Name exists, so do those
// in Required. At and Needs are their places in the rule's Props.
type Dependent struct {
	Name     string
	Required []string
	At       int
	Needs    []int
}

// Multiple is the divisor of multipleOf: Coefficient × 10^Exp, where the coefficient
// is positive and does not end in 0.
type Multiple struct {
	Raw         string // as written
	Coefficient uint64
	Exp         int64
}

// Divides reports whether a number is a multiple, exactly and in time proportional to
// its digits. With v = d × 10^e, where d does not end in 0, v is a multiple of
// c × 10^k exactly if e ≥ k and c divides d × 10^(e-k): for a lower e the product of c
// and a power of ten would have to divide d, which does not end in 0.
func (m *Multiple) Divides(v decimal.Decimal) bool {
	if len(v.Digits) == 0 {
		return true
	}
	shift := v.Exp - int64(v.Size()) - m.Exp
	if shift < 0 {
		return false
	}
	// A divisor of 64 bits has at most 63 factors of two or five, so that more tens
	// than that change nothing.
	return mulmod(remainder(v, m.Coefficient), powmod(uint64(min(shift, 64)), m.Coefficient), m.Coefficient) == 0
}

// remainder is the digits of a number, as an integer, modulo c.
func remainder(v decimal.Decimal, c uint64) (rest uint64) {
	for _, ch := range v.Digits {
		if ch != '.' {
			hi, lo := bits.Mul64(rest, 10)
			lo, carry := bits.Add64(lo, uint64(ch-'0'), 0)
			rest = bits.Rem64(hi+carry, lo, c)
		}
	}
	return rest
}

// mulmod is a × b modulo c.
func mulmod(a, b, c uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return bits.Rem64(hi, lo, c)
}

// powmod is 10^n modulo c.
func powmod(n, c uint64) uint64 {
	result, base := 1%c, 10%c
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			result = mulmod(result, base, c)
		}
		base = mulmod(base, base, c)
	}
	return result
}

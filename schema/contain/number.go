package contain

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/agentd/agentd/schema/internal/decimal"
)

// checkInteger looks for an integer between the limits of a state. It starts at
// a limit and walks towards the other, past the values that are excluded: there
// are finitely many of these, so that the walk ends soon even between limits
// far apart.
func (p *prover) checkInteger(st *state) result {
	if st.crossed() {
		return unsat()
	}
	low, lowOK := st.low.amount()
	high, highOK := st.high.amount()
	if !lowOK || !highOK {
		return p.tryNumbers(st, true)
	}
	if len(st.multiples) > 0 {
		return p.checkMultiples(st, low, high, true)
	}
	step := big.NewInt(1)
	var at, end *big.Int
	switch {
	case low != nil:
		at = low.round(true, st.low.open)
		if high != nil {
			end = high.round(false, st.high.open)
		}
	case high != nil:
		at = high.round(false, st.high.open)
		step = big.NewInt(-1)
	default:
		at = big.NewInt(0)
	}
	// Excluded values are skipped one by one; the loop passes at most as many
	// as there are, each for a step of the budget.
	for end == nil || at.Cmp(end) <= 0 {
		if !p.spend(1) {
			return p.unknown(ReasonSteps)
		}
		if raw := at.Append(nil, 10); !p.excluded(st, raw) {
			return satisfied(raw)
		}
		at = new(big.Int).Add(at, step)
	}
	return unsat()
}

// checkFraction looks for a number that is no integer between the limits of a
// state. Between two different numbers there are infinitely many fractions, so
// that only equal limits leave none.
func (p *prover) checkFraction(st *state) result {
	if st.crossed() {
		return unsat()
	}
	low, lowOK := st.low.amount()
	high, highOK := st.high.amount()
	if !lowOK || !highOK {
		return p.tryNumbers(st, false)
	}
	if st.hasDivisor() {
		return p.checkMultiples(st, low, high, false)
	}
	// Values such as 3.5 read better in a witness than 3.0000001.
	half := amount{big.NewInt(5), -1}
	switch {
	case low == nil && high == nil:
		low = &amount{big.NewInt(0), 0}
		fallthrough
	case high == nil:
		high = &amount{new(big.Int).Add(low.round(true, true), big.NewInt(int64(2+p.excludedOf(st)))), 0}
	case low == nil:
		low = &amount{new(big.Int).Sub(high.round(false, true), big.NewInt(int64(2+p.excludedOf(st)))), 0}
	case low.cmp(*high) == 0:
		if raw := []byte(low.String()); !low.isInteger() && !p.barred(st, raw) {
			return satisfied(raw)
		}
		return unsat()
	}
	// First the values that end in .5, then ever closer to the lower limit.
	for next := low.round(false, false); ; next = new(big.Int).Add(next, big.NewInt(1)) {
		v := amount{next, 0}.plus(half)
		if v.cmp(*high) >= 0 || !p.spend(1) {
			break
		}
		if raw := []byte(v.String()); v.cmp(*low) > 0 && !p.barred(st, raw) {
			return satisfied(raw)
		}
	}
	// No value in .5 fits: halve the distance to the lower limit. Each round
	// gives a new value, and an integer can come up only once. Each also has one more
	// digit: a divisor with a large exponent lets none pass before there are as many, so
	// that digits are paid for beyond what limits have.
	const modest = 2048 // bits
	for v := low.middle(*high); p.spend(1 + max(0, v.coefficient.BitLen()-modest)); v = low.middle(v) {
		if raw := []byte(v.String()); !v.isInteger() && !p.barred(st, raw) {
			return satisfied(raw)
		}
	}
	return p.unknown(ReasonSteps)
}

// crossed reports whether no number lies between the limits.
func (st *state) crossed() bool {
	if st.low == nil || st.high == nil {
		return false
	}
	order := st.low.limit.Decimal.Compare(st.high.limit.Decimal)
	return order > 0 || order == 0 && (st.low.open || st.high.open)
}

// tryNumbers is for limits with too many digits to calculate with: a schema may
// say 1e999999999, which has no place in memory as an integer. It tries the
// limits themselves and powers of ten near them, compared as decimals. That
// finds a number in nearly all cases, but cannot show that there is none.
func (p *prover) tryNumbers(st *state, integer bool) result {
	candidates := []string{"0", "1", "-1", "0.5", "-0.5"}
	for _, t := range []*term{st.low, st.high} {
		if t == nil {
			continue
		}
		d := t.limit.Decimal
		sign := ""
		if d.Neg {
			sign = "-"
		}
		candidates = append(candidates, t.limit.Raw)
		for _, shift := range []int64{0, 1, -1, -2} {
			candidates = append(candidates, sign+"1e"+strconv.FormatInt(d.Exp+shift, 10))
		}
	}
	for _, raw := range candidates {
		d := decimal.Parse([]byte(raw))
		if d.IsInteger() == integer && (st.low == nil || st.low.allows(d)) && (st.high == nil || st.high.allows(d)) &&
			!p.barred(st, []byte(raw)) {
			return satisfied([]byte(raw))
		}
	}
	if integer && st.betweenUnits() {
		return unsat()
	}
	return p.unknown(ReasonNumber)
}

// betweenUnits reports whether both limits are smaller than 1 in magnitude. Then
// no integer but 0 can lie between them, and 0 has been tried. This decides
// limits such as 1e-999999999.
func (st *state) betweenUnits() bool {
	if st.low == nil || st.high == nil {
		return false
	}
	return st.low.limit.Decimal.Exp <= 0 && st.high.limit.Decimal.Exp <= 0
}

// amount is coefficient × 10^exp, for arithmetic with numbers of modest size.
// Powers of ten keep sums, halves and comparisons of decimals exact.
type amount struct {
	coefficient *big.Int
	exp         int
}

// amount returns the limit as an amount, or nil if there is no limit. It reports
// false if the limit has more than 400 digits or an exponent beyond 400, because
// aligning two such numbers would write out the zeros between them.
func (t *term) amount() (*amount, bool) {
	if t == nil {
		return nil, true
	}
	const most = 400
	d := t.limit.Decimal
	if d.Size() > most || d.Exp > most || d.Exp < -most {
		return nil, false
	}
	if len(d.Digits) == 0 {
		return &amount{new(big.Int), 0}, true
	}
	// The value is 0.DIGITS × 10^exp, which is DIGITS × 10^(exp-length).
	digits := strings.ReplaceAll(string(d.Digits), ".", "")
	c, _ := new(big.Int).SetString(digits, 10)
	if d.Neg {
		c.Neg(c)
	}
	return &amount{c, int(d.Exp) - len(digits)}, true
}

// power returns 10^n.
func power(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// aligned returns two coefficients for the same exponent.
func (a amount) aligned(b amount) (x, y *big.Int, exp int) {
	exp = min(a.exp, b.exp)
	x = new(big.Int).Mul(a.coefficient, power(a.exp-exp))
	y = new(big.Int).Mul(b.coefficient, power(b.exp-exp))
	return x, y, exp
}

// cmp orders two amounts: -1, 0 or 1.
func (a amount) cmp(b amount) int {
	x, y, _ := a.aligned(b)
	return x.Cmp(y)
}

// plus returns the sum of two amounts.
func (a amount) plus(b amount) amount {
	x, y, exp := a.aligned(b)
	return amount{x.Add(x, y), exp}
}

// middle returns half of the sum, which one more digit writes exactly.
func (a amount) middle(b amount) amount {
	sum := a.plus(b)
	return amount{sum.coefficient.Mul(sum.coefficient, big.NewInt(5)), sum.exp - 1}
}

// isInteger reports whether the amount has no fraction.
func (a amount) isInteger() bool {
	return a.exp >= 0 || new(big.Int).Mod(a.coefficient, power(-a.exp)).Sign() == 0
}

// round returns the nearest integer that is not less, with up, or not greater,
// without. With beyond, the result must differ from the amount, as an open
// limit demands.
func (a amount) round(up, beyond bool) *big.Int {
	exact := a.isInteger()
	var n *big.Int
	if a.exp >= 0 {
		n = new(big.Int).Mul(a.coefficient, power(a.exp))
	} else {
		n = new(big.Int).Div(a.coefficient, power(-a.exp)) // rounds down
		if up && !exact {
			n.Add(n, big.NewInt(1))
		}
	}
	switch {
	case !exact || !beyond:
	case up:
		n.Add(n, big.NewInt(1))
	default:
		n.Sub(n, big.NewInt(1))
	}
	return n
}

// String writes the amount without an exponent, as people write numbers.
func (a amount) String() string {
	digits := new(big.Int).Abs(a.coefficient).String()
	sign := ""
	if a.coefficient.Sign() < 0 {
		sign = "-"
	}
	if a.exp >= 0 {
		return sign + digits + strings.Repeat("0", a.exp)
	}
	if short := 1 - a.exp - len(digits); short > 0 {
		digits = strings.Repeat("0", short) + digits
	}
	point := len(digits) + a.exp
	fraction := strings.TrimRight(digits[point:], "0")
	if fraction == "" {
		return sign + digits[:point]
	}
	return sign + digits[:point] + "." + fraction
}

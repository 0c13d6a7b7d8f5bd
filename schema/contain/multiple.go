package contain

import (
	"math/big"

	"github.com/agentd/agentd/schema/internal/decimal"
	"github.com/agentd/agentd/schema/internal/ir"
)

// hasDivisor reports whether a number must be a multiple of something.
func (st *state) hasDivisor() bool {
	for _, t := range st.multiples {
		if t.op == opMultiple {
			return true
		}
	}
	return false
}

// barred is excluded, and also reports numbers that must not be a multiple and are, or
// the other way round.
func (p *prover) barred(st *state, raw []byte) bool {
	for _, t := range st.multiples {
		if t.divisor.Divides(decimal.Parse(raw)) != (t.op == opMultiple) {
			return true
		}
	}
	return p.excluded(st, raw)
}

// divisorAmount returns a divisor as an amount, unless its exponent is beyond 400: the
// zeros would be written out.
func divisorAmount(m *ir.Multiple) (amount, bool) {
	const most = 400
	return amount{new(big.Int).SetUint64(m.Coefficient), int(m.Exp)}, m.Exp <= most && m.Exp >= -most
}

// common returns the least common multiple of two amounts.
func (a amount) common(b amount) amount {
	x, y, exp := a.aligned(b)
	gcd := new(big.Int).GCD(nil, nil, x, y)
	return amount{x.Mul(x, y.Div(y, gcd)), exp}
}

// checkMultiples looks for a number that is a multiple of all wanted divisors, which is
// a multiple k of their least common one, the unit. That it is no multiple of another
// divisor d then says that k is no multiple of lcm(unit, d)/unit. A fraction is no
// multiple of 1.
func (p *prover) checkMultiples(st *state, low, high *amount, integer bool) result {
	one := amount{big.NewInt(1), 0}
	var unit *amount
	var unwanted []amount
	if integer {
		unit = &one
	} else {
		unwanted = append(unwanted, one)
	}
	for _, t := range st.multiples {
		d, ok := divisorAmount(t.divisor)
		switch {
		case !ok:
			return p.unknown(ReasonNumber)
		case t.op == opNotMultiple:
			unwanted = append(unwanted, d)
		case unit == nil:
			unit = &d
		default:
			common := unit.common(d)
			unit = &common
		}
	}
	// The unwanted divisors of k.
	var divisors []*big.Int
	for _, d := range unwanted {
		x, y, _ := unit.common(d).aligned(*unit)
		q := x.Div(x, y)
		if q.IsInt64() && q.Int64() == 1 {
			return unsat() // every multiple of the unit is a multiple of d
		}
		divisors = append(divisors, q)
	}
	return p.walkMultiples(st, *unit, low, high, divisors)
}

// walkMultiples goes through the multiples of a unit from one limit towards the other.
func (p *prover) walkMultiples(st *state, unit amount, low, high *amount, divisors []*big.Int) result {
	k, step := big.NewInt(0), big.NewInt(1)
	var end *big.Int
	switch {
	case low != nil:
		k = quotient(*low, unit, true, st.low.open)
		if high != nil {
			end = quotient(*high, unit, false, st.high.open)
		}
	case high != nil:
		k, step = quotient(*high, unit, false, st.high.open), big.NewInt(-1)
	}
	for end == nil || k.Cmp(end) <= 0 {
		if !p.spend(1 + (k.BitLen()+unit.coefficient.BitLen())/64) {
			return p.unknown(ReasonSteps)
		}
		wanted := true
		for _, d := range divisors {
			wanted = wanted && new(big.Int).Mod(k, d).Sign() != 0
		}
		if raw := []byte(amount{new(big.Int).Mul(k, unit.coefficient), unit.exp}.String()); wanted && !p.excluded(st, raw) {
			return satisfied(raw)
		}
		k = new(big.Int).Add(k, step)
	}
	return unsat()
}

// quotient is a/b, rounded up or down; with beyond, the result times b differs from a.
func quotient(a, b amount, up, beyond bool) *big.Int {
	x, y, _ := a.aligned(b)
	q, rest := new(big.Int).DivMod(x, y, new(big.Int)) // rounds down, because y is positive
	one := big.NewInt(1)
	switch {
	case rest.Sign() != 0 && up:
		q.Add(q, one)
	case rest.Sign() == 0 && beyond && up:
		q.Add(q, one)
	case rest.Sign() == 0 && beyond:
		q.Sub(q, one)
	}
	return q
}

package decimal

import (
	"bytes"
	"cmp"
	"strconv"
)

// Decimal is the exact value ±0.d₁d₂d₃… × 10^exp of a JSON number, kept as a
// view of its token: an exponent costs no memory, and reading one token
// allocates nothing. Neither float64 nor big.Rat would do: the first takes 2^53
// and 2^53+1 for equal, and the second writes out the zeros of 1e999999999.
type Decimal struct {
	Neg bool
	// Digits starts and ends with a digit other than zero and may hold one
	// decimal point, which carries no meaning. It is empty for zero.
	Digits []byte
	Exp    int64
	// Huge is the exponent's text, without leading zeros, when it has more
	// than 18 digits; exp then is only ±hugeExp. No schema holds such a number.
	Huge    []byte
	hugeNeg bool
	// shift is what exp adds to the written exponent.
	shift int64
}

// hugeExp stands for exponents beyond what int64 arithmetic is safe for.
const hugeExp = 1 << 61

// Parse reads a token of the JSON number grammar, which the caller has
// checked. The form is unique up to the decimal point within digits: leading
// and trailing zeros are cut off and the exponent is adjusted.
func Parse(token []byte) Decimal {
	var d Decimal
	if token[0] == '-' {
		d.Neg = true
		token = token[1:]
	}
	mantissa := token
	for e, c := range token {
		if c|0x20 == 'e' {
			mantissa = token[:e]
			d.readExponent(token[e+1:])
			break
		}
	}
	point := bytes.IndexByte(mantissa, '.')
	if point < 0 {
		point = len(mantissa)
	}
	d.shift = int64(point)
	// The value is 0.DIGITS × 10^shift, wherever the point was written.
	if mantissa[0] == '0' { // 0.00ddd
		first := len(mantissa)
		for i := point + 1; i < len(mantissa); i++ {
			if mantissa[i] != '0' {
				first = i
				break
			}
		}
		d.shift = int64(point + 1 - first)
		mantissa = mantissa[first:]
	}
	end := len(mantissa)
	for end > 0 && (mantissa[end-1] == '0' || mantissa[end-1] == '.') {
		end--
	}
	if end == 0 {
		return Decimal{}
	}
	d.Digits = mantissa[:end]
	d.Exp += d.shift
	return d
}

// readExponent takes in what follows the letter e. Up to 18 digits fit an int64
// with room for shift. A payload may hold more; its number is then larger or
// smaller than any that a schema can hold, which is all that comparisons need.
func (d *Decimal) readExponent(text []byte) {
	neg := text[0] == '-'
	if neg || text[0] == '+' {
		text = text[1:]
	}
	for len(text) > 1 && text[0] == '0' {
		text = text[1:]
	}
	if len(text) > 18 {
		d.Huge, d.hugeNeg, d.Exp = text, neg, hugeExp
	} else {
		for _, c := range text {
			d.Exp = d.Exp*10 + int64(c-'0')
		}
	}
	if neg {
		d.Exp = -d.Exp
	}
}

// Size returns the number of digits, without the point.
func (d Decimal) Size() int {
	if bytes.IndexByte(d.Digits, '.') >= 0 {
		return len(d.Digits) - 1
	}
	return len(d.Digits)
}

// IsInteger reports whether the value has no fraction, however it is written:
// the last digit is not zero, so that it stands before the point exactly if
// the exponent reaches that far.
func (d Decimal) IsInteger() bool {
	return len(d.Digits) == 0 || d.Exp >= int64(d.Size())
}

// Compare orders two numbers: -1, 0 or 1. At most one may be huge, because huge
// exponents are compared as ±hugeExp; schemas hold none.
func (d Decimal) Compare(e Decimal) int {
	switch {
	case len(d.Digits) == 0 && len(e.Digits) == 0:
		return 0
	case len(d.Digits) == 0:
		return sign(!e.Neg) * -1
	case len(e.Digits) == 0:
		return sign(!d.Neg)
	// Different signs decide without a look at the digits.
	case d.Neg != e.Neg:
		return sign(!d.Neg)
	}
	// Both start with a digit other than zero after the point, so that the
	// larger exponent is the larger number.
	order := cmp.Compare(d.Exp, e.Exp)
	// Only numbers of the same magnitude have their digits compared.
	if order == 0 {
		order = compareDigits(d.Digits, e.Digits)
	}
	if d.Neg {
		return -order
	}
	return order
}

// sign is 1 for true and -1 for false.
func sign(positive bool) int {
	if positive {
		return 1
	}
	return -1
}

// compareDigits orders two fractions by their digits, points left out.
func compareDigits(a, b []byte) int {
	i, j := 0, 0
	for {
		if i < len(a) && a[i] == '.' {
			i++
		}
		if j < len(b) && b[j] == '.' {
			j++
		}
		// One is a prefix of the other; its last digit is not zero, so that the
		// longer one is larger in magnitude.
		if i == len(a) || j == len(b) {
			return cmp.Compare(len(a)-i, len(b)-j)
		}
		if a[i] != b[j] {
			return cmp.Compare(a[i], b[j])
		}
		i, j = i+1, j+1
	}
}

// AppendKey appends a text that equal numbers share and others do not: sign,
// digits without point and outer zeros, exponent. It makes 1.0, 1 and 10e-1 one
// value for const, enum and uniqueItems.
func (d Decimal) AppendKey(dst []byte) []byte {
	if len(d.Digits) == 0 {
		return append(dst, '0')
	}
	if d.Neg {
		dst = append(dst, '-')
	}
	if point := bytes.IndexByte(d.Digits, '.'); point >= 0 {
		dst = append(append(dst, d.Digits[:point]...), d.Digits[point+1:]...)
	} else {
		dst = append(dst, d.Digits...)
	}
	dst = append(dst, 'e')
	if d.Huge == nil {
		return strconv.AppendInt(dst, d.Exp, 10)
	}
	shift := d.shift
	if d.hugeNeg {
		dst = append(dst, '-')
		shift = -shift
	}
	return appendSum(dst, d.Huge, shift)
}

// appendSum appends the sum of a number of more than 18 digits and a small
// one, without leading zeros: school arithmetic on the digits, in time
// proportional to their number.
func appendSum(dst, digits []byte, add int64) []byte {
	start := len(dst)
	dst = append(dst, '0') // room for a carry
	dst = append(dst, digits...)
	for i := len(dst) - 1; add != 0 && i >= start; i-- {
		sum := int64(dst[i]-'0') + add%10
		add /= 10
		switch {
		case sum < 0:
			sum += 10
			add--
		case sum > 9:
			sum -= 10
			add++
		}
		dst[i] = '0' + byte(sum)
	}
	zeros := 0
	for dst[start+zeros] == '0' && start+zeros < len(dst)-1 {
		zeros++
	}
	return append(dst[:start], dst[start+zeros:]...)
}

// Small returns the value if it is an integer of at most 18 digits: exactly those that
// [SmallInt] reads, however they are written.
func (d Decimal) Small() (int64, bool) {
	if d.Exp > 18 || !d.IsInteger() {
		return 0, false
	}
	var v int64
	for _, c := range d.Digits {
		if c != '.' {
			v = v*10 + int64(c-'0')
		}
	}
	for range d.Exp - int64(d.Size()) {
		v *= 10
	}
	if d.Neg {
		v = -v
	}
	return v, true
}

// Plain is SmallInt for text that may be anything.
func Plain(text []byte) (int64, bool) {
	digits := text
	if text[0] == '-' {
		digits = text[1:]
	}
	if len(digits) > 18 {
		return 0, false
	}
	var v int64
	for _, c := range digits {
		if c-'0' > 9 {
			return 0, false
		}
		v = v*10 + int64(c-'0')
	}
	if len(digits) < len(text) {
		v = -v
	}
	return v, true
}

// SmallInt reads an integer token without fraction or exponent that surely
// fits an int64.
func SmallInt(token []byte) (int64, bool) {
	digits := token
	if token[0] == '-' {
		digits = token[1:]
	}
	// 10^18 is below 2^63, so that no sum below can overflow.
	if len(digits) > 18 {
		return 0, false
	}
	var v int64
	for _, c := range digits {
		v = v*10 + int64(c-'0')
	}
	if token[0] == '-' {
		v = -v
	}
	return v, true
}

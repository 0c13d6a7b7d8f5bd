package jcs

import (
	"bytes"
	"strconv"

	"github.com/agentd/agentd/internal/ijson"
)

// A token of more than this many exponent digits has its exponent adjusted
// digit by digit, since it may not fit an int64.
const int64ExponentDigits = 18

// maxPlainDigits is how many digits ECMAScript prints of an integer before it
// changes to scientific notation.
const maxPlainDigits = 21

// number reads the number at offset i and appends its exact value.
//
// The value is taken apart into significant digits and a decimal point
// position, as ECMAScript's Number::toString (ECMA-262 section 6.1.6.1.20)
// does with a double, and put together by the same rules.
func (w *writer) number(i int) (end int, err error) {
	end, integer, err := ijson.ScanNumber(w.src, i)
	if err != nil {
		return 0, err
	}
	token := w.src[i:end]
	if integer && len(token) <= maxPlainDigits && !bytes.Equal(token, []byte("-0")) {
		w.out = append(w.out, token...) // nearly all: canonical as it is
		return end, nil
	}
	if plain(token) {
		w.out = append(w.out, token...)
		return end, nil
	}
	token, negative := bytes.CutPrefix(token, []byte("-"))
	exponentNegative := false
	var exponent []byte
	if e := bytes.IndexAny(token, "eE"); e >= 0 {
		token, exponent = token[:e], token[e+1:]
		exponentNegative = exponent[0] == '-'
		exponent = bytes.TrimLeft(exponent, "+-")
	}
	whole, fraction, _ := bytes.Cut(token, []byte("."))
	w.out = appendNumber(w.out, negative, whole, fraction, exponentNegative, exponent)
	return end, nil
}

// plain reports whether a number with a fraction is canonical as it is: in decimal notation,
// without zeros at its end, and large enough not to be printed with an exponent.
func plain(token []byte) bool {
	point := bytes.IndexByte(token, '.')
	if point < 0 || len(token) > maxPlainDigits || token[len(token)-1] == '0' || bytes.ContainsAny(token, "eE") {
		return false
	}
	whole := bytes.TrimPrefix(token[:point], []byte("-"))
	return whole[0] != '0' || !bytes.HasPrefix(token[point+1:], []byte("000000"))
}

func appendNumber(dst []byte, negative bool, whole, fraction []byte, exponentNegative bool, exponent []byte) []byte {
	// value = 0.digits × 10^point, digits without zeros at either end.
	digits, point := whole, len(whole)
	if len(fraction) > 0 {
		digits = append(bytes.Clone(whole), fraction...)
	}
	for len(digits) > 0 && digits[0] == '0' {
		digits = digits[1:]
		point--
	}
	digits = bytes.TrimRight(digits, "0")
	if len(digits) == 0 {
		return append(dst, '0') // also for -0 (RFC 8785 appendix B)
	}
	if negative {
		dst = append(dst, '-')
	}
	exponent = bytes.TrimLeft(exponent, "0")
	if len(exponent) > int64ExponentDigits {
		dst = appendScientific(dst, digits)
		return appendHugeExponent(dst, exponentNegative, exponent, point-1)
	}
	shift := int64(0)
	if len(exponent) > 0 {
		shift, _ = strconv.ParseInt(string(exponent), 10, 64) // fits: 18 digits
		if exponentNegative {
			shift = -shift
		}
	}
	return appendDecimal(dst, digits, int64(point)+shift)
}

// appendDecimal writes 0.digits × 10^point by the four cases of
// Number::toString.
func appendDecimal(dst, digits []byte, point int64) []byte {
	k := int64(len(digits))
	switch {
	case k <= point && point <= maxPlainDigits:
		dst = append(dst, digits...)
		return appendZeros(dst, point-k)
	case 0 < point && point <= maxPlainDigits:
		dst = append(dst, digits[:point]...)
		dst = append(dst, '.')
		return append(dst, digits[point:]...)
	case -6 < point && point <= 0:
		dst = append(dst, '0', '.')
		dst = appendZeros(dst, -point)
		return append(dst, digits...)
	}
	dst = appendScientific(dst, digits)
	if point-1 >= 0 {
		dst = append(dst, '+')
	}
	return strconv.AppendInt(dst, point-1, 10)
}

func appendZeros(dst []byte, n int64) []byte {
	for range n {
		dst = append(dst, '0')
	}
	return dst
}

func appendScientific(dst, digits []byte) []byte {
	dst = append(dst, digits[0])
	if len(digits) > 1 {
		dst = append(dst, '.')
		dst = append(dst, digits[1:]...)
	}
	return append(dst, 'e')
}

// appendHugeExponent writes the sum of the exponent, at least 10^18 in
// magnitude, and delta, which a number's length bounds far below that: the
// sign cannot change.
func appendHugeExponent(dst []byte, negative bool, exponent []byte, delta int) []byte {
	if negative {
		delta = -delta
	}
	sum := bytes.Clone(exponent)
	for i := len(sum) - 1; i >= 0 && delta != 0; i-- {
		d := int(sum[i]-'0') + delta
		delta = d / 10
		if d %= 10; d < 0 {
			d += 10
			delta--
		}
		sum[i] = byte('0' + d)
	}
	sign := byte('+')
	if negative {
		sign = '-'
	}
	dst = append(dst, sign)
	if delta > 0 { // carried into a new digit
		return append(strconv.AppendInt(dst, int64(delta), 10), sum...)
	}
	return append(dst, bytes.TrimLeft(sum, "0")...)
}

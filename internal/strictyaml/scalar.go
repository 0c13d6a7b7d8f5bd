package strictyaml

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
)

// plain resolves a plain scalar by the core schema of YAML 1.2 (section
// 10.3.2), plus underscores between digits. text is the JSON token of a Bool
// or Number, and the content of a String.
func plain(s string) (kind Kind, text string, err error) {
	switch s {
	case "", "~", "null", "Null", "NULL":
		return Null, "", nil
	case "true", "True", "TRUE":
		return Bool, "true", nil
	case "false", "False", "FALSE":
		return Bool, "false", nil
	case ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF", ".nan", ".NaN", ".NAN":
		return String, s, fmt.Errorf("%s has no JSON value", s)
	}
	if !looksNumeric(s) {
		return String, s, nil
	}
	token, ok, err := number(s)
	if !ok {
		return String, s, err
	}
	return Number, token, err
}

// looksNumeric rules out most strings by their first byte, so that reading a
// file does not attempt to parse each word as a number.
func looksNumeric(s string) bool {
	c := s[0]
	return isDigit(c) || c == '.' || c == '-' || c == '+'
}

// number converts a YAML number to a JSON number token of the same value.
// ok is false when s is not a number.
func number(s string) (token string, ok bool, err error) {
	digits := ungroup(s)
	if rest, hex := strings.CutPrefix(digits, "0x"); hex {
		return radix(rest, 16)
	}
	if rest, octal := strings.CutPrefix(digits, "0o"); octal {
		return radix(rest, 8)
	}
	return decimal(digits)
}

// ungroup removes underscores between two digits. Any other underscore stays,
// and the text is then not a number but a string.
func ungroup(s string) string {
	if !strings.Contains(s, "_") {
		return s
	}
	var b strings.Builder
	for i := range len(s) {
		if s[i] == '_' && i > 0 && i+1 < len(s) && isHex(s[i-1]) && isHex(s[i+1]) {
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

var errLongNumber = errors.New("the number is too long")

// radix reads the digits after 0x or 0o. Its cost grows with the square of the
// length, which maxNumber bounds.
func radix(digits string, base int) (string, bool, error) {
	n, ok := new(big.Int), len(digits) > 0
	for i := range len(digits) {
		ok = ok && isHex(digits[i])
	}
	if !ok {
		return "", false, nil
	}
	if len(digits) > maxNumber {
		return "0", true, errLongNumber
	}
	if _, ok := n.SetString(digits, base); !ok {
		return "", false, nil
	}
	return n.String(), true, nil
}

// decimal rewrites [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?
// to the grammar of RFC 8259.
func decimal(s string) (string, bool, error) {
	sign, rest := "", s
	if rest[0] == '-' || rest[0] == '+' {
		sign, rest = strings.TrimPrefix(rest[:1], "+"), rest[1:]
	}
	whole, rest := leadingDigits(rest)
	fraction := ""
	if strings.HasPrefix(rest, ".") {
		fraction, rest = leadingDigits(rest[1:])
	}
	if whole == "" && fraction == "" {
		return "", false, nil
	}
	exponent := ""
	if rest != "" {
		if rest[0] != 'e' && rest[0] != 'E' {
			return "", false, nil
		}
		exponent = rest
		rest = rest[1:]
		if rest != "" && (rest[0] == '-' || rest[0] == '+') {
			rest = rest[1:]
		}
		if d, tail := leadingDigits(rest); d == "" || tail != "" {
			return "", false, nil
		}
	}
	// Checked last: a long text that is no number is a string of any length.
	if len(s) > maxNumber {
		return "0", true, errLongNumber
	}
	whole = strings.TrimLeft(whole, "0") // YAML 1.2 reads 017 as seventeen; JSON has no such token
	if whole == "" {
		whole = "0"
	}
	if fraction != "" {
		fraction = "." + fraction
	}
	return sign + whole + fraction + exponent, true, nil
}

// leadingDigits splits s behind its first run of digits, which may be empty.
func leadingDigits(s string) (digits, rest string) {
	i := 0
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	return s[:i], s[i:]
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isHex reports whether c is a digit of base 16 in either case, as the core schema
// allows.
func isHex(c byte) bool {
	return isDigit(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

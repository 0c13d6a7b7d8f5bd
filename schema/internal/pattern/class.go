package pattern

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/agentd/agentd/internal/truncate"
)

// runeSet is a set of code points, as pairs of first and last, in any order and
// possibly overlapping. Every class is worked out as such a set and written as
// explicit ranges, so that no meaning of RE2 can slip in.
type runeSet []rune

// digitSet is \d of ECMA-262: ASCII only, with and without the flag u.
func digitSet() runeSet { return runeSet{'0', '9'} }

// wordSet is \w of ECMA-262: ASCII only. With the flags u and i together it would
// also hold U+017F and U+212A, which fold to s and k; patterns have no flag i.
func wordSet() runeSet { return runeSet{'0', '9', 'A', 'Z', '_', '_', 'a', 'z'} }

// spaceSet is \s: WhiteSpace and LineTerminator of ECMA-262 sections 12.2 and 12.3.
// RE2 means five characters of ASCII by it, and others mean the Unicode property
// White_Space, which has U+0085 and lacks U+FEFF.
func spaceSet() runeSet {
	return runeSet{
		'\t', '\r', ' ', ' ', 0xA0, 0xA0, 0x1680, 0x1680, 0x2000, 0x200A, 0x2028, 0x2029,
		0x202F, 0x202F, 0x205F, 0x205F, 0x3000, 0x3000, 0xFEFF, 0xFEFF,
	}
}

// normal sorts the ranges and joins those that touch.
func (s runeSet) normal() runeSet {
	var pairs [][2]rune
	for i := 0; i < len(s); i += 2 {
		pairs = append(pairs, [2]rune{s[i], s[i+1]})
	}
	slices.SortFunc(pairs, func(a, b [2]rune) int { return int(a[0]) - int(b[0]) })
	var out runeSet
	for _, p := range pairs {
		// Ranges that touch become one: shorter source, fewer cuts.
		if n := len(out); n > 0 && p[0] <= out[n-1]+1 {
			out[n-1] = max(out[n-1], p[1])
			continue
		}
		out = append(out, p[0], p[1])
	}
	return out
}

// complement returns the code points that are not in the set, surrogates included:
// they occur in no string, so that it makes no difference.
func (s runeSet) complement() runeSet {
	var out runeSet
	next := rune(0)
	s = s.normal()
	for i := 0; i < len(s); i += 2 {
		if s[i] > next {
			out = append(out, next, s[i]-1)
		}
		next = s[i+1] + 1
	}
	if next <= unicode.MaxRune {
		out = append(out, next, unicode.MaxRune)
	}
	return out
}

// re2 writes the set in RE2 syntax. The empty set, as in [], matches nothing and is
// written as the complement of everything.
func (s runeSet) re2() string {
	s = s.normal()
	switch {
	case len(s) == 0:
		return `[^\x{0}-\x{10FFFF}]`
	// A single character is written as a literal, which the parser joins with
	// its neighbours to a string.
	case len(s) == 2 && s[0] == s[1]:
		return regexp.QuoteMeta(string(s[0]))
	}
	var b strings.Builder
	b.WriteByte('[')
	for i := 0; i < len(s); i += 2 {
		fmt.Fprintf(&b, `\x{%X}-\x{%X}`, s[i], s[i+1])
	}
	b.WriteByte(']')
	return b.String()
}

// class translates [...]. The set is worked out here rather than copied, since
// RE2 knows neither the empty class nor \s and \S as ECMA-262 has them.
func (t *translator) class() *Error {
	t.at++
	// A caret means negation only as the first character.
	negated := strings.HasPrefix(t.rest(), "^")
	if negated {
		t.at++
	}
	var set runeSet
	for {
		// The class has no end. ECMA-262 has no exception for a bracket that
		// comes first, so [] is complete and empty.
		if t.at >= len(t.src) {
			return t.errorf(`write \[ for the character`, "a character class is not closed")
		}
		if t.src[t.at] == ']' {
			t.at++
			break
		}
		item, err := t.classRange()
		if err != nil {
			return err
		}
		set = append(set, item...)
	}
	if negated {
		set = set.complement()
	}
	t.emit(set.re2(), true)
	return nil
}

// classRange reads one character, escape or range inside a class. A dash that is
// first or last, or that follows a range, stands for itself.
func (t *translator) classRange() (runeSet, *Error) {
	low, err := t.classAtom()
	if err != nil {
		return nil, err
	}
	rest := t.rest()
	if len(rest) < 2 || rest[0] != '-' || rest[1] == ']' {
		return low, nil
	}
	t.at++
	// A dash stands between two atoms: a range, if both are single characters.
	high, err := t.classAtom()
	if err != nil {
		return nil, err
	}
	if !low.single() || !high.single() {
		// Annex B.1.2 of ECMA-262: with a class at either end, the dash stands for itself.
		return append(append(low, high...), '-', '-'), nil
	}
	if low[0] > high[0] {
		return nil, t.errorf("", "a range in a character class is out of order")
	}
	return runeSet{low[0], high[0]}, nil
}

// single reports whether the set is one character, which can be the end of a range.
func (s runeSet) single() bool { return len(s) == 2 && s[0] == s[1] }

// classAtom reads one character or escape inside a class, where \b means
// backspace.
func (t *translator) classAtom() (runeSet, *Error) {
	rest := t.rest()
	if strings.HasPrefix(rest, `\b`) {
		t.at += 2
		return runeSet{'\b', '\b'}, nil
	}
	if strings.HasPrefix(rest, `\-`) {
		t.at += 2
		return runeSet{'-', '-'}, nil
	}
	if strings.HasPrefix(rest, `\`) {
		return t.charEscape()
	}
	r, size := utf8.DecodeRuneInString(rest)
	t.at += size
	return runeSet{r, r}, nil
}

// charEscape reads an escape that stands for a character or a set of them: those
// that mean the same inside of a class and outside.
func (t *translator) charEscape() (runeSet, *Error) {
	rest := t.rest()
	if len(rest) < 2 {
		return nil, t.errorf(`write \\ for the character`, "a backslash stands at the end")
	}
	// A set of characters, or one of the escapes for control characters.
	if set := shorthand(rest[1]); set != nil {
		t.at += 2
		return set, nil
	}
	switch rest[1] {
	case '0':
		return t.nulEscape()
	case 'c':
		return t.controlEscape()
	case 'x':
		r, ok := hexDigits(rest[2:], 2)
		if !ok {
			return nil, t.errorf("", `\x must be followed by two hexadecimal digits`)
		}
		return t.codePoint(r, 4)
	case 'u':
		return t.unicodeEscape()
	case 'p', 'P':
		return t.property()
	}
	return t.identityEscape()
}

// nulEscape reads \0. A digit must not follow: annex B of ECMA-262 would read \01 as
// an octal escape, which the flag u refuses.
func (t *translator) nulEscape() (runeSet, *Error) {
	if rest := t.rest(); len(rest) > 2 && isDigit(rest[2]) {
		return nil, t.errorf(`write \xHH`, "octal escapes are not part of ECMA-262")
	}
	return t.codePoint(0, 2)
}

// controlEscape reads \cX, the letter's place in the alphabet.
func (t *translator) controlEscape() (runeSet, *Error) {
	rest := t.rest()
	if len(rest) < 3 || !isAlpha(rest[2]) {
		return nil, t.errorf("", `\c must be followed by a letter`)
	}
	return t.codePoint(rune(rest[2]&31), 3)
}

// identityEscape reads a backslash before a character that stands for itself.
// Letters and digits are refused, as with the flag u: in other dialects they
// mean something.
func (t *translator) identityEscape() (runeSet, *Error) {
	r, size := utf8.DecodeRuneInString(t.rest()[1:])
	// Other characters may be escaped without need, as annex B allows.
	if r == '_' || r < utf8.RuneSelf && isAlphanumeric(byte(r)) {
		return nil, t.errorf("", "unknown escape %q", `\`+string(r))
	}
	return t.codePoint(r, 1+size)
}

// shorthand returns the meaning of an escape of one letter; nil where there
// is none. An upper-case letter means all but the lower-case one.
func shorthand(c byte) runeSet {
	switch c {
	case 'd':
		return digitSet()
	case 'w':
		return wordSet()
	case 's':
		return spaceSet()
	case 'D', 'W', 'S':
		return shorthand(c | 0x20).complement()
	}
	if at := strings.IndexByte("tnvfr", c); at >= 0 {
		r := rune("\t\n\v\f\r"[at])
		return runeSet{r, r}
	}
	return nil
}

// unicodeEscape reads \uXXXX, a pair of them, or \u{X…}. Strings are code
// points here, so that a pair is one character, inside of a class too.
func (t *translator) unicodeEscape() (runeSet, *Error) {
	rest := t.rest()[2:]
	if strings.HasPrefix(rest, "{") {
		return t.bracedEscape(rest)
	}
	r, ok := hexDigits(rest, 4)
	if !ok {
		return nil, t.errorf("", `\u must be followed by four hexadecimal digits`)
	}
	// JavaScript strings are UTF-16, and generated patterns often spell a
	// character beyond U+FFFF as two escapes.
	if tail, pair := strings.CutPrefix(rest[4:], `\u`); pair {
		low, _ := hexDigits(tail, 4)
		if r := utf16.DecodeRune(r, low); r != utf8.RuneError {
			return t.codePoint(r, 12)
		}
	}
	return t.codePoint(r, 6)
}

// bracedEscape reads \u{X…}; rest starts at the brace.
func (t *translator) bracedEscape(rest string) (runeSet, *Error) {
	end := strings.IndexByte(rest, '}')
	if end < 2 {
		return nil, t.errorf("", `\u{ must be followed by hexadecimal digits and }`)
	}
	// Any number of leading zeros is allowed here.
	v, err := strconv.ParseUint(rest[1:end], 16, 32)
	if err != nil || v > unicode.MaxRune {
		return nil, t.errorf("", `\u{…} names no code point`)
	}
	return t.codePoint(rune(v), 3+end)
}

// codePoint accepts an escape of the given size for one code point.
func (t *translator) codePoint(r rune, size int) (runeSet, *Error) {
	if r >= 0xD800 && r < 0xE000 {
		return nil, t.errorf("write both halves of the pair together, outside of a class range, or use \\u{…}",
			"a lone surrogate occurs in no string")
	}
	t.at += size
	return runeSet{r, r}, nil
}

// isDigit accepts a decimal digit of ASCII.
func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isHex accepts a hexadecimal digit of either case.
func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// isAlpha accepts a letter of ASCII.
func isAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// isAlphanumeric accepts a letter or digit of ASCII.
func isAlphanumeric(c byte) bool { return isAlpha(c) || isDigit(c) }

// hexDigits reads exactly n hexadecimal digits.
func hexDigits(s string, n int) (rune, bool) {
	if len(s) < n {
		return 0, false
	}
	for i := range n {
		if !isHex(s[i]) {
			return 0, false
		}
	}
	v, err := strconv.ParseUint(s[:n], 16, 32)
	return rune(v), err == nil
}

// property reads \p{…} or \P{…}: a general category or a script, by the tables of
// the Go release. Another release of Unicode assigns more characters and changes
// hardly any, so that engines differ only on the newest ones.
func (t *translator) property() (runeSet, *Error) {
	rest := t.rest()
	end := strings.IndexByte(rest, '}')
	if end < 0 || rest[2] != '{' {
		return nil, t.errorf("", `\p must be followed by a property name in braces`)
	}
	set, ok := propertySet(rest[3:end])
	if !ok {
		return nil, t.beyond("the Unicode property "+truncate.Quote(rest[3:end]),
			`general categories and scripts are known, as in \p{Lu} and \p{Script=Greek}`)
	}
	if rest[1] == 'P' {
		set = set.complement()
	}
	t.at += end + 1
	return set, nil
}

// propertySet asks the parser of Go's regular expressions, which knows the
// categories, their long names and the scripts.
func propertySet(name string) (runeSet, bool) {
	// The long form names the kind of property: General_Category or Script.
	if key, value, ok := strings.Cut(name, "="); ok {
		if !slices.Contains([]string{"General_Category", "gc", "Script", "sc"}, key) {
			return nil, false
		}
		name = value
	}
	// The parser takes more than names: a caret negates there.
	for i := range len(name) {
		if !isAlphanumeric(name[i]) && name[i] != '_' {
			return nil, false
		}
	}
	tree, err := syntax.Parse(`\p{`+name+`}`, syntax.Perl|syntax.UnicodeGroups)
	switch {
	case err != nil:
		return nil, false
	case tree.Op == syntax.OpAnyChar: // \p{Any}
		return runeSet{0, unicode.MaxRune}, true
	}
	return runeSet(slices.Clone(tree.Rune)), tree.Op == syntax.OpCharClass
}

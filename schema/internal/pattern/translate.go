package pattern

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// translator reads an ECMA-262 pattern and writes RE2.
//
// The grammar is that of ECMA-262 section 22.2.1 with the flag u, and with the
// leniency of its annex B where that is harmless and common: a brace that
// starts no quantifier and a closing bracket stand for themselves, and
// punctuation may be escaped without need. What both grammars know but mean
// differently is spelled out: the dot, \d, \w, \s and every class.
type translator struct {
	budget *Budget
	src    string
	at     int
	out    strings.Builder
	depth  int // open groups
	names  []string
	// repeatable is set where a quantifier may follow.
	repeatable bool
	from       int // where the present term starts
	sizes      sizes
}

// errorf returns a fault of the pattern at the present place.
func (t *translator) errorf(hint, format string, args ...any) *Error {
	return &Error{"pattern is malformed at byte " + strconv.Itoa(t.at) + ": " + fmt.Sprintf(format, args...), hint}
}

// beyond returns the fault that a pattern is well-formed but needs backtracking.
// Its cost can be exponential in the string, and the string comes from a peer.
func (t *translator) beyond(what, hint string) *Error {
	return &Error{"pattern uses " + what + " at byte " + strconv.Itoa(t.at) + ", which RE2 cannot express", hint}
}

// rest returns what has not been read.
func (t *translator) rest() string { return t.src[t.at:] }

// pattern translates the whole source, term by term. Groups are counted rather
// than parsed by recursion, so that nesting costs no stack.
func (t *translator) pattern() *Error {
	for t.at < len(t.src) {
		t.from = t.at
		if err := t.term(); err != nil {
			return err
		}
		if t.budget.size < 0 {
			return tooLarge()
		}
	}
	if t.depth > 0 {
		return t.errorf("", "a group is not closed")
	}
	return nil
}

// term translates one character, class, group border, assertion or quantifier.
// Without the flag m, ^ and $ stand for the two ends of the text in both
// syntaxes; ECMA-262 has no exception for a line feed at the end.
func (t *translator) term() *Error {
	r, size := utf8.DecodeRuneInString(t.rest())
	switch r {
	case '(':
		return t.open()
	case ')':
		return t.close()
	case '*', '+', '?':
		return t.quantifier(string(r), 1)
	case '[':
		return t.class()
	case '\\':
		return t.escape()
	// These mean the same in both syntaxes.
	case '|', '^', '$':
		t.emit(string(r), false)
	case '{':
		// A brace that starts no quantifier stands for itself, by annex B of
		// ECMA-262.
		if n, err := t.braces(); n > 0 || err != nil {
			return err
		}
		t.emit(`\{`, true)
	case '.':
		t.emit(`[^\n\r\x{2028}\x{2029}]`, true)
	default:
		t.emit(regexp.QuoteMeta(string(r)), true)
	}
	t.at += size
	return nil
}

// close translates the end of a group.
func (t *translator) close() *Error {
	if t.depth == 0 {
		return t.errorf(`write \) for the character`, "a group is closed that is not open")
	}
	t.depth--
	t.emit(")", false)
	t.repeatable = true
	t.sizes.close()
	t.at++
	return nil
}

// emit writes RE2, and notes whether a quantifier may follow.
func (t *translator) emit(text string, repeatable bool) {
	if t.budget.take(len(text)) {
		t.out.WriteString(text)
	}
	if t.repeatable = repeatable; repeatable {
		t.sizes.atom(t.from)
	}
}

// open translates the start of a group.
func (t *translator) open() *Error {
	rest := t.rest()
	size := 1
	switch {
	case !strings.HasPrefix(rest, "(?"):
	case strings.HasPrefix(rest, "(?:"):
		size = 3
	case strings.HasPrefix(rest, "(?="), strings.HasPrefix(rest, "(?!"):
		return t.beyond("lookahead", "split the condition: allOf, not, or several patterns")
	case strings.HasPrefix(rest, "(?<="), strings.HasPrefix(rest, "(?<!"):
		return t.beyond("lookbehind", "split the condition: allOf, not, or several patterns")
	case strings.HasPrefix(rest, "(?<"):
		end := strings.IndexByte(rest, '>')
		if end < 0 || !isGroupName(rest[3:end]) {
			return t.errorf("", "a group has a malformed name")
		}
		if slices.Contains(t.names, rest[3:end]) {
			return t.errorf("", "two groups have the same name")
		}
		t.names = append(t.names, rest[3:end])
		size = end + 1
	default:
		return t.errorf("flags cannot be set inside a pattern; spell out both cases, as in [Aa]", "unknown kind of group")
	}
	t.depth++
	t.sizes.open(t.from)
	t.emit("(?:", false)
	t.at += size
	return nil
}

// isGroupName accepts identifiers, as ECMA-262 does for the names of groups. The
// names mean nothing here, since nothing refers back to them.
func isGroupName(name string) bool {
	for i, r := range name {
		if r != '_' && r != '$' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r)) {
			return false
		}
	}
	return name != ""
}

// quantifier writes a quantifier of the given size, and whether it is lazy.
func (t *translator) quantifier(text string, size int) *Error {
	if !t.repeatable {
		return t.errorf(`write \ before the character to match it`, "nothing to repeat")
	}
	t.at += size
	if strings.HasPrefix(t.rest(), "?") {
		t.at++
		text += "?"
	}
	t.emit(text, false)
	return nil
}

// braces translates {n}, {n,} or {n,m}, and returns 0 where the brace starts
// none of these and stands for itself.
func (t *translator) braces() (int, *Error) {
	rest := t.rest()
	end := strings.IndexByte(rest, '}')
	if end < 0 {
		return 0, nil
	}
	low, high, ranged := strings.Cut(rest[1:end], ",")
	open := high == "" // {n} or {n,}
	if !isDigits(low) || !open && !isDigits(high) {
		return 0, nil
	}
	// Bounds are compared as text, because they may have any number of digits.
	low, high = trimZeros(low), trimZeros(high)
	if !open && (len(low) > len(high) || len(low) == len(high) && low > high) {
		return 0, t.errorf("", "a quantifier's bounds are out of order")
	}
	text, count := "{"+low, low
	if ranged {
		text += "," + high
	}
	if !open {
		count = high
	}
	t.sizes.repeat(count, t.at+end+1)
	return end, t.quantifier(text+"}", end+1)
}

// isDigits accepts one or more decimal digits.
func isDigits(s string) bool {
	for i := range len(s) {
		if !isDigit(s[i]) {
			return false
		}
	}
	return s != ""
}

// trimZeros removes leading zeros but leaves one digit.
func trimZeros(s string) string {
	for len(s) > 1 && s[0] == '0' {
		s = s[1:]
	}
	return s
}

// escape translates an escape outside a class. There \b and \B are assertions,
// on ASCII words in both syntaxes, and digits other than 0 refer back to groups.
func (t *translator) escape() *Error {
	if rest := t.rest(); len(rest) > 1 {
		switch c := rest[1]; {
		// Both syntaxes mean borders of words of ASCII.
		case c == 'b' || c == 'B':
			t.emit(rest[:2], false)
			t.at += 2
			return nil
		case '1' <= c && c <= '9':
			return t.beyond("a backreference", "write the alternatives out")
		case c == 'k':
			return t.beyond("a backreference", "write the alternatives out")
		}
	}
	set, err := t.charEscape()
	if err != nil {
		return err
	}
	t.emit(set.re2(), true)
	return nil
}

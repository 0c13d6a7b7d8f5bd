package format

import "bytes"

// isRegex reports whether text is a regular expression of ECMA-262 section 22.2.1 with
// the flag u. Only its form is checked, in one pass: what comes from a peer is not
// compiled. A brace that starts no quantifier and a closing bracket stand for
// themselves, as in patterns.
func isRegex(text []byte) bool {
	depth, atom := 0, false // atom: a quantifier may follow
	for i := 0; i < len(text); {
		next := i + 1
		switch c := text[i]; c {
		case '\\':
			next = regexEscape(text, i, "")
			atom = next > 0 && text[i+1] != 'b' && text[i+1] != 'B'
		case '[':
			next, atom = regexClass(text, i+1), true
		case '(':
			depth++
			next, atom = regexGroup(text, i+1), false
		case ')':
			depth--
			atom = true
		case '*', '+', '?', '{':
			quantifier := regexQuantifier(text, i)
			if quantifier > 0 && !atom || depth < 0 {
				return false
			}
			next, atom = max(next, quantifier), quantifier < 0
		default:
			atom = c != '|' && c != '^' && c != '$'
		}
		if next < 0 || depth < 0 {
			return false
		}
		i = next
	}
	return depth == 0
}

// regexQuantifier reads a quantifier and returns its end, or -1 for a brace that stands
// for itself.
func regexQuantifier(text []byte, i int) int {
	end := i + 1
	if text[i] == '{' {
		if end = regexCount(text, i); end < 0 {
			return -1
		}
	}
	if end < len(text) && text[end] == '?' { // as few as possible
		end++
	}
	return end
}

// regexGroup reads what may follow an opening parenthesis, and returns where the group's
// content starts.
func regexGroup(text []byte, i int) int {
	rest := text[i:]
	if len(rest) == 0 || rest[0] != '?' {
		return i
	}
	for _, mark := range []string{"?:", "?=", "?!", "?<=", "?<!"} {
		if bytes.HasPrefix(rest, []byte(mark)) {
			return i + len(mark)
		}
	}
	if end := regexName(rest, 1); end > 0 {
		return i + end
	}
	return -1
}

// regexName reads a name in angle brackets and returns its end, or -1.
func regexName(text []byte, i int) int {
	if i >= len(text) || text[i] != '<' {
		return -1
	}
	end := bytes.IndexByte(text[i:], '>')
	if end < 2 || is(text[i+1], classDigit) {
		return -1
	}
	for _, c := range text[i+1 : i+end] {
		if !is(c, classAlpha|classDigit) && c != '_' && c != '$' && c < 0x80 {
			return -1
		}
	}
	return i + end + 1
}

// regexCount reads a quantifier in braces and returns its end, or -1 where it is none.
func regexCount(text []byte, i int) int {
	end := bytes.IndexByte(text[i:], '}')
	if end < 0 {
		return -1
	}
	least, most, _ := bytes.Cut(text[i+1:i+end], []byte(","))
	if len(least) == 0 || !allDigits(least) || !allDigits(most) {
		return -1
	}
	return i + end + 1
}

// regexClass reads a class behind its bracket and returns its end, or -1.
func regexClass(text []byte, i int) int {
	for i < len(text) {
		switch text[i] {
		case ']':
			return i + 1
		case '\\':
			if i = regexEscape(text, i, "-"); i < 0 {
				return -1
			}
		default:
			i++
		}
	}
	return -1
}

// regexEscape reads an escape and returns its end, or -1. more are characters that may
// be escaped here as well.
func regexEscape(text []byte, i int, more string) int {
	if i+1 >= len(text) {
		return -1
	}
	rest := text[i+2:]
	switch c := text[i+1]; c {
	case '0':
		if len(rest) > 0 && is(rest[0], classDigit) {
			return -1
		}
		return i + 2
	case 'c':
		if len(rest) == 0 || !is(rest[0], classAlpha) {
			return -1
		}
		return i + 3
	case 'x':
		if len(rest) < 2 || !isHexGroup(rest[:2]) {
			return -1
		}
		return i + 4
	case 'k':
		return regexName(text, i+2)
	case 'u':
		if len(rest) >= 4 && isHexGroup(rest[:4]) {
			return i + 6
		}
		return regexBraces(text, i+2, classHex)
	case 'p', 'P':
		return regexBraces(text, i+2, classAlpha|classDigit)
	default:
		if bytes.IndexByte([]byte("123456789dDwWsSbBfnrtv^$\\.*+?()[]{}|/"+more), c) < 0 {
			return -1
		}
		return i + 2
	}
}

// regexBraces reads characters of some classes in braces and returns the end, or -1. The
// names of properties also hold underscores and an equals sign.
func regexBraces(text []byte, i int, classes uint8) int {
	if i >= len(text) || text[i] != '{' {
		return -1
	}
	end := bytes.IndexByte(text[i:], '}')
	if end < 2 {
		return -1
	}
	for _, c := range text[i+1 : i+end] {
		if !is(c, classes) && (classes == classHex || c != '_' && c != '=') {
			return -1
		}
	}
	return i + end + 1
}

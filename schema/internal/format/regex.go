package format

import "bytes"

// isRegex reports whether text is a regular expression of ECMA-262 section 22.2.1 with
// the flag u. Only its form is checked, in one pass: what comes from a peer is not
// compiled. A brace that starts no quantifier and a closing bracket stand for
// themselves, as in patterns.
func isRegex(text []byte) bool {
	depth, atom := 0, false // atom: a quantifier may follow
	for i := 0; i < len(text); {
		switch c := text[i]; c {
		case '\\':
			end := regexEscape(text, i, "")
			if end < 0 {
				return false
			}
			atom = text[i+1] != 'b' && text[i+1] != 'B'
			i = end
			continue
		case '[':
			if i = regexClass(text, i+1); i < 0 {
				return false
			}
			atom = true
			continue
		case '(':
			depth++
			atom = false
			i = regexGroup(text, i+1)
			if i < 0 {
				return false
			}
			continue
		case ')':
			if depth--; depth < 0 {
				return false
			}
			atom = true
		case '*', '+', '?':
			if !atom {
				return false
			}
			if i+1 < len(text) && text[i+1] == '?' {
				i++
			}
			atom = false
		case '{':
			if end := regexCount(text, i); end > 0 {
				if !atom {
					return false
				}
				i, atom = end-1, false
				if i+1 < len(text) && text[i+1] == '?' {
					i++
				}
			} else {
				atom = true
			}
		case '|', '^', '$':
			atom = false
		default:
			atom = true
		}
		i++
	}
	return depth == 0
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
	switch c := text[i+1]; {
	case bytes.IndexByte([]byte("dDwWsSbBfnrtv^$\\.*+?()[]{}|/"+more), c) >= 0, c >= '1' && c <= '9':
		return i + 2
	case c == '0' && (len(rest) == 0 || !is(rest[0], classDigit)):
		return i + 2
	case c == 'c' && len(rest) > 0 && is(rest[0], classAlpha):
		return i + 3
	case c == 'x' && len(rest) >= 2 && is(rest[0], classHex) && is(rest[1], classHex):
		return i + 4
	case c == 'u' && len(rest) >= 4 && isHexGroup(rest[:4]):
		return i + 6
	case c == 'k':
		return regexName(text, i+2)
	case c == 'u' || c == 'p' || c == 'P':
		end := bytes.IndexByte(rest, '}')
		if len(rest) == 0 || rest[0] != '{' || end < 2 {
			return -1
		}
		for _, d := range rest[1:end] {
			if c == 'u' && !is(d, classHex) || !is(d, classAlpha|classDigit) && d != '_' && d != '=' {
				return -1
			}
		}
		return i + 3 + end
	}
	return -1
}
